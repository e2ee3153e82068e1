//! Benchmark items out of files: which fields are evidence, and what stands in them.

use std::sync::Arc;

use nearset::Item as AnyItem;
use nearset_records::{
    Arena, Batch, Cure, Fields, Format, InputError, ItemField, ReadOptions, Reader, RecordError, RecordFault, Source,
    extract,
};
use serde::{Deserialize, Serialize};

use crate::run::{OnError, RunError};

/// What questions are usually called.
const QUESTIONS: &[&str] = &["question", "prompt", "problem", "query", "instruction", "input", "question_stem", "goal"];
/// What answers are usually called.
const ANSWERS: &[&str] =
    &["answer", "answers", "completion", "canonical_solution", "solution", "response", "output", "target", "code"];
/// What choices are usually called.
const CHOICES: &[&str] = &["choices", "options", "endings"];
/// What a text is called that is all there is.
const TEXTS: &[&str] = &["text", "content", "sentence"];
/// What ids are called, if not as the user says.
const IDS: &[&str] = &["task_id", "question_id", "uid", "idx"];

/// A benchmark item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct BenchmarkItem {
    /// Its file, by the order in which files were given.
    pub file: usize,
    /// Its id, or file and line.
    pub id: String,
    /// What is evidence: the names of fields and their texts.
    pub fields: Vec<(String, String)>,
}

impl BenchmarkItem {
    /// Returns an item of a file, by its number.
    pub fn new(file: usize, id: impl Into<String>, fields: Vec<(String, String)>) -> Self {
        Self { file, id: id.into(), fields }
    }

    /// Returns the text of its fields together.
    pub fn text(&self) -> String {
        let texts: Vec<&str> = self.fields.iter().map(|(_, text)| &**text).collect();
        texts.join("\n")
    }
}

/// Returns those of a record's fields that are usual for evidence: a question or else a text, an answer, choices.
pub fn usual_fields<'n>(names: &[&'n str]) -> Vec<&'n str> {
    let first_of = |usual: &[&str]| usual.iter().find_map(|one| names.iter().copied().find(|name| name == one));
    let question = first_of(QUESTIONS).or_else(|| first_of(TEXTS));
    question.into_iter().chain(first_of(ANSWERS)).chain(first_of(CHOICES)).collect()
}

/// Reads the items of benchmarks. Without names of fields, those are taken that are usual.
pub(super) fn read_items(
    sources: &[Source],
    names: &[String],
    id: Option<&str>,
    on_error: OnError,
) -> Result<Vec<BenchmarkItem>, RunError> {
    let mut items = Vec::new();
    let mut is_found = vec![false; names.len()];
    let mut others = Vec::new();
    for (file, source) in sources.iter().enumerate() {
        if !source.is_rereadable() {
            let why = "the fields of items are read one after the other";
            return Err(RunError::once(source, why, Cure::SaveToFile));
        }
        let mut read = Items { file, source, id, on_error, items: Vec::new(), found: Vec::new() };
        if !names.is_empty() {
            for (name, is_found) in names.iter().zip(&mut is_found) {
                *is_found |= read.field(name)?;
            }
        } else if matches!(source.format, Format::Jsonl | Format::Csv | Format::Tsv | Format::Parquet) {
            let has_question = read.first_of(QUESTIONS)?;
            if !has_question {
                read.first_of(TEXTS)?;
            }
            read.first_of(ANSWERS)?;
            read.first_of(CHOICES)?;
        } else {
            read.field("text")?;
        }
        let Items { items: own, found, .. } = read;
        if own.iter().all(|item| item.fields.is_empty()) {
            let name = Arc::clone(&source.name);
            if own.is_empty() && found.is_empty() && source.bytes == Some(0) {
                return Err(RunError::EmptyBenchmark { name });
            }
            return Err(RunError::NoEvidence { name, wanted: names.to_vec(), found });
        }
        if let (OnError::Fail, Some(empty)) = (on_error, own.iter().position(|item| item.fields.is_empty())) {
            let (name, id) = (Arc::clone(&source.name), own[empty].id.clone());
            return Err(RunError::NoEvidenceInItem { name, id });
        }
        items.extend(own.into_iter().filter(|item| !item.fields.is_empty()));
        others = found;
    }
    // A field that nobody has is a slip, and evidence that is not looked for.
    if let (Some(missing), Some(source)) = (is_found.iter().position(|is_found| !is_found), sources.last()) {
        let (name, wanted) = (Arc::clone(&source.name), vec![names[missing].clone()]);
        return Err(RunError::NoEvidence { name, wanted, found: others });
    }
    Ok(items)
}

struct Items<'s> {
    file: usize,
    source: &'s Source,
    id: Option<&'s str>,
    on_error: OnError,
    items: Vec<BenchmarkItem>,
    /// Fields that are there instead.
    found: Vec<String>,
}

impl Items<'_> {
    /// Reads the first of the fields that any record has.
    fn first_of(&mut self, names: &[&str]) -> Result<bool, RunError> {
        for name in names {
            if self.field(name)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Reads a field of all records. Returns whether any has it.
    fn field(&mut self, name: &str) -> Result<bool, RunError> {
        if !self.is_there(name)? {
            return Ok(false);
        }
        let own = self.id.map(str::to_owned);
        let has_own = self.has_id(name, own.clone())?;
        let others = IDS.iter().map(|id| Some((*id).to_owned()));
        let mut id = own;
        if !has_own {
            for other in others {
                if self.has_id(name, other.clone())? {
                    id = other;
                    break;
                }
            }
        }
        let fields = Fields::new(name, ItemField::Texts).with_id(id);
        let (mut number, mut any) = (0, false);
        let on_error = self.on_error;
        let (file, items, found) = (self.file, &mut self.items, &mut self.found);
        each_record(self.source, &fields, |extracted, i| {
            let text = match extracted.item(i) {
                Ok(AnyItem::Text(text)) => Some(text),
                Ok(_) => None,
                Err(error) => match &error.fault {
                    RecordFault::MissingField { found: keys, .. } => {
                        if found.is_empty() {
                            found.clone_from(keys);
                        }
                        None
                    }
                    RecordFault::WrongType { .. } | RecordFault::Null { .. } | RecordFault::MissingCell { .. } => None,
                    _ if on_error == OnError::Skip => None,
                    _ => return Err(RecordError::clone(error).into()),
                },
            };
            if items.len() == number {
                items.push(BenchmarkItem::new(file, extracted.id(i), Vec::new()));
            }
            if let Some(text) = text.filter(|text| !text.trim().is_empty()) {
                any = true;
                // A record without an earlier field had no id either.
                if let Some(id) = extracted.own_id(i) {
                    id.clone_into(&mut items[number].id);
                }
                items[number].fields.push((name.to_owned(), text.to_owned()));
            }
            number += 1;
            Ok(true)
        })?;
        Ok(any)
    }

    /// Returns whether there may be a field of this name, as far as the head of the file tells.
    fn is_there(&mut self, name: &str) -> Result<bool, RunError> {
        let fields = Fields::new(name, ItemField::Texts).with_id(None);
        match each_record(self.source, &fields, |_, _| Ok(false)) {
            Ok(()) => Ok(true),
            Err(RunError::Input(InputError::MissingColumn { found, .. })) => {
                self.found = found;
                Ok(false)
            }
            // A number that says which choice is right.
            Err(RunError::Input(InputError::ColumnType { .. })) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns whether a record with the field has an id of this name.
    fn has_id(&self, field: &str, id: Option<String>) -> Result<bool, RunError> {
        let mut has = false;
        each_record(self.source, &Fields::new(field, ItemField::Texts).with_id(id), |extracted, i| {
            has = extracted.own_id(i).is_some();
            Ok(!has)
        })?;
        Ok(has)
    }
}

/// Hands over every record of a source, as long as `each` wants more.
fn each_record(
    source: &Source,
    fields: &Fields,
    mut each: impl FnMut(&nearset_records::Extracted<'_>, usize) -> Result<bool, RunError>,
) -> Result<(), RunError> {
    let mut reader = Reader::new(vec![source.clone()], ReadOptions::new(fields.clone()));
    let (mut batch, mut arena) = (Batch::new(), Arena::new());
    while reader.read_batch(&mut batch)? {
        let extracted = extract(&batch, fields, &mut arena);
        for i in 0..extracted.len() {
            if !each(&extracted, i)? {
                return Ok(());
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(name: &str, text: &str, fields: &[&str]) -> Result<Vec<BenchmarkItem>, RunError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        let sources = nearset_records::resolve(&[path.to_str().unwrap()], None).unwrap().list;
        let fields: Vec<String> = fields.iter().map(|name| (*name).to_owned()).collect();
        read_items(&sources, &fields, Some("id"), OnError::Fail)
    }

    fn shown(items: &[BenchmarkItem]) -> Vec<String> {
        let field = |(name, text): &(String, String)| format!(" {name}={text}");
        items.iter().map(|item| item.id.clone() + &item.fields.iter().map(field).collect::<String>()).collect()
    }

    #[test]
    fn usual_fields_and_ids_are_found() {
        let human = "{\"task_id\":\"t/0\",\"prompt\":\"def f\",\"canonical_solution\":\"return\"}\n";
        assert_eq!(shown(&items("a.jsonl", human, &[]).unwrap()), ["t/0 prompt=def f canonical_solution=return"]);
        let mixed =
            "{\"id\":1,\"problem\":\"p\"}\n{\"id\":2,\"problem\":\"q\",\"answer\":7,\"options\":[\"x\",\"y\"]}\n";
        assert_eq!(shown(&items("b.jsonl", mixed, &[]).unwrap()), ["1 problem=p", "2 problem=q answer=7 options=x\ny"]);
        let table = "id,question,answer\nfirst,\"why, then\",because\n";
        assert_eq!(shown(&items("c.csv", table, &[]).unwrap()), ["first question=why, then answer=because"]);
        assert_eq!(shown(&items("c.csv", table, &["answer"]).unwrap()), ["first answer=because"]);
        assert_eq!(items("d.txt", "one\ntwo\n", &[]).unwrap().len(), 2);
    }

    #[test]
    fn records_without_evidence_are_errors() {
        let error = |text: &str, fields: &[&str]| items("a.jsonl", text, fields).unwrap_err().to_string();
        assert!(error("{\"riddle\":\"r\"}\n", &[]).contains("the fields there are riddle"));
        assert!(error("{\"riddle\":\"r\"}\n", &["hint"]).contains("no record has hint"));
        assert!(error("{\"riddle\":\"r\"}\n", &["riddle", "hint"]).contains("no record has hint"));
        let error = error("{\"id\":5,\"question\":\"q\"}\n{\"id\":6,\"question\":null}\n", &[]);
        assert!(error.contains("has nothing in the fields that others have"), "{error}");
    }
}
