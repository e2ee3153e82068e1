//! A benchmark set: items, the weights of their 3-grams, and what is looked for.
//!
//! Invariant: weights are fixed when the set is built. A saved set has the items and the weights, so every run that takes it
//! gives the same answers.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use nearset::{Item as AnyItem, Shingler};
use nearset_records::{Fields, OutputError, OutputFile, OutputOptions, ReadOptions, Reader, Source};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::items::{BenchmarkItem, read_items};
use super::measure::{Cut, Frequencies, Hit, ONE, Passages, Room, Thresholds, cutter};
use super::places::{Places, without};
use crate::run::{OnError, RunError};
use crate::scan::scan;

/// Where items come from, and how to read them.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct BenchmarkOptions {
    /// Fields that are evidence, each alone and all together; where none is named, those that are usual.
    pub fields: Vec<String>,
    /// The field of the id.
    pub id: Option<String>,
    /// Ordinary texts: what is common in them weighs less.
    pub background: Vec<Source>,
    /// What a background record's text is called.
    pub background_fields: Fields,
    /// What to do with a record that cannot be read.
    pub on_error: OnError,
    /// Threads that cut the background.
    pub threads: usize,
}

impl BenchmarkOptions {
    /// The usual options: no background, which would be read from these fields.
    pub fn new(background_fields: Fields) -> Self {
        Self {
            fields: Vec::new(),
            id: Some("id".to_owned()),
            background: Vec::new(),
            background_fields,
            on_error: OnError::Fail,
            threads: 1,
        }
    }
}

/// Benchmark items with the weights of their 3-grams.
#[derive(Debug, Clone, PartialEq)]
pub struct Benchmark {
    /// What people call the files.
    files: Vec<String>,
    items: Vec<BenchmarkItem>,
    /// Background documents that the weights are from, beside the items.
    background: u64,
    weights: Vec<(u64, u32)>,
}

/// The first line of a saved set.
#[derive(Serialize, Deserialize)]
struct Head {
    nearset: String,
    version: u32,
    files: Vec<String>,
    background: u64,
    items: usize,
    grams: usize,
    /// Of all lines that follow.
    checksum: String,
}

const KIND: &str = "benchmark set";
const VERSION: u32 = 1;

impl Benchmark {
    /// Weighs items that are at hand. `files` are what people call those that the items name.
    pub fn new(files: Vec<String>, items: Vec<BenchmarkItem>) -> Self {
        let (frequencies, background) = (frequencies(&items), 0);
        Self { files, items, background, weights: frequencies.weights() }
    }

    /// Reads items, and weighs them with the background.
    ///
    /// # Errors
    /// If a file can't be read, or has no field that is evidence.
    pub fn read(sources: &[Source], options: BenchmarkOptions) -> Result<Self, RunError> {
        let BenchmarkOptions { fields, id, background, background_fields, on_error, threads } = options;
        let items = read_items(sources, &fields, id.as_deref(), on_error)?;
        let mut frequencies = frequencies(&items);
        let items_only = frequencies.texts;
        if !background.is_empty() {
            let reader = Reader::new(background, ReadOptions::new(background_fields.clone()));
            let cutter = cutter();
            let Frequencies { texts, grams, counts } = &mut frequencies;
            let grams = &*grams;
            let known = |text: &str| {
                let found = cutter.shingle_set(text).into_iter().filter_map(|gram| grams.binary_search(&gram).ok());
                found.collect::<Vec<usize>>()
            };
            // Texts are cut by all threads, and counted by one: the order does not matter to a count.
            scan(
                reader,
                &background_fields,
                threads,
                |extracted, _| {
                    let text = |i| match extracted.item(i) {
                        Ok(AnyItem::Text(text)) => Ok(Some(known(text))),
                        Ok(_) => Ok(None),
                        Err(_) if on_error == OnError::Skip => Ok(None),
                        Err(error) => Err(error.clone()),
                    };
                    (0..extracted.len()).map(text).collect::<Result<Vec<_>, _>>()
                },
                |_, cut| {
                    let cut = match cut {
                        Err(error) if on_error == OnError::Skip && !error.is_fatal() => return Ok(()),
                        cut => cut.map_err(RunError::from)??,
                    };
                    for known in cut.into_iter().flatten() {
                        *texts += 1;
                        known.into_iter().for_each(|gram| counts[gram] += 1);
                    }
                    Ok::<(), RunError>(())
                },
            )?;
        }
        let documents = frequencies.texts - items_only;
        let files = sources.iter().map(|source| source.name.to_string()).collect();
        Ok(Self { files, items, background: documents, weights: frequencies.weights() })
    }

    /// Returns the items.
    pub fn items(&self) -> &[BenchmarkItem] {
        &self.items
    }

    /// Returns what people call the files of the items.
    pub fn files(&self) -> &[String] {
        &self.files
    }

    /// Returns how many background documents it was weighed with.
    pub fn background(&self) -> u64 {
        self.background
    }

    /// Returns what tells it from others: equal sets have equal digests.
    pub fn digest(&self) -> String {
        format!("{:016x}", xxh3_64(self.body().as_bytes()))
    }

    /// Everything but the head: the weights on a line, and a line per item.
    fn body(&self) -> String {
        let weights: Vec<u32> = self.weights.iter().map(|&(_, weight)| weight).collect();
        let mut body = serde_json::to_string(&weights).expect("numbers are JSON");
        body.push('\n');
        for item in &self.items {
            body.push_str(&serde_json::to_string(item).expect("texts are JSON"));
            body.push('\n');
        }
        body
    }

    /// Saves the set for later runs.
    ///
    /// # Errors
    /// If the file is there already and may not be replaced, or can't be written.
    pub fn save(&self, path: &Path, options: &OutputOptions) -> Result<(), OutputError> {
        let body = self.body();
        let head = Head {
            nearset: KIND.to_owned(),
            version: VERSION,
            files: self.files.clone(),
            background: self.background,
            items: self.items.len(),
            grams: self.weights.len(),
            checksum: format!("{:016x}", xxh3_64(body.as_bytes())),
        };
        let mut out = OutputFile::create(path, options)?;
        out.write(serde_json::to_string(&head).expect("texts and numbers are JSON").as_bytes())?;
        out.write(b"\n")?;
        out.write(body.as_bytes())?;
        out.finish()
    }

    /// Opens a saved set.
    ///
    /// # Errors
    /// If it can't be read, is no benchmark set, or is damaged.
    pub fn open(path: &Path) -> Result<Self, RunError> {
        let bad = |why: &'static str| RunError::BadBenchmark { path: path.to_owned(), why };
        let bytes = std::fs::read(path)
            .map_err(|cause| nearset_records::InputError::Unreadable { path: path.into(), cause })?;
        let text = std::str::from_utf8(&bytes).map_err(|_| bad("is no benchmark set"))?;
        let (head, body) = text.split_once('\n').ok_or_else(|| bad("is no benchmark set"))?;
        let head: Head = serde_json::from_str(head).map_err(|_| bad("is no benchmark set"))?;
        if head.nearset != KIND {
            return Err(bad("is no benchmark set"));
        }
        if head.version != VERSION {
            return Err(bad("is of a version that this build does not read: build the set again"));
        }
        if head.checksum != format!("{:016x}", xxh3_64(body.as_bytes())) {
            return Err(bad("is damaged: build the set again"));
        }
        let damaged = |_| bad("is damaged: build the set again");
        let (weights, items) = body.split_once('\n').ok_or_else(|| bad("is damaged: build the set again"))?;
        let weights: Vec<u32> = serde_json::from_str(weights).map_err(damaged)?;
        let items: Vec<BenchmarkItem> =
            items.lines().map(serde_json::from_str).collect::<Result<_, _>>().map_err(damaged)?;
        let Frequencies { grams, .. } = frequencies(&items);
        let fits = grams.len() == weights.len()
            && weights.iter().all(|&weight| weight <= ONE)
            && items.iter().all(|item| item.file < head.files.len());
        if !fits {
            return Err(bad("has other weights than its items need: build the set again"));
        }
        let weights = grams.into_iter().zip(weights).collect();
        Ok(Self { files: head.files, items, background: head.background, weights })
    }

    /// Makes ready to look for the items.
    pub fn finder(self: Arc<Self>, thresholds: Thresholds) -> Finder {
        let cutter = cutter();
        let parts =
            self.items.iter().enumerate().flat_map(|(item, of)| {
                parts(&cutter, of).map(move |(part, grams)| Cut { item: item as u32, part, grams })
            });
        let passages = Passages::new(parts.collect::<Vec<_>>(), &self.weights, thresholds);
        let mut decidable = vec![false; self.items.len()];
        passages.iter().for_each(|passage| decidable[passage.item as usize] = true);
        Finder { benchmark: self, cutter, passages, thresholds, decidable }
    }
}

/// Counts the grams of all items: in how many items each is.
fn frequencies(items: &[BenchmarkItem]) -> Frequencies {
    let cutter = cutter();
    let grams = |item| parts(&cutter, item).flat_map(|(_, grams)| grams).collect();
    Frequencies::new(items.iter().map(grams))
}

/// The number of the part that is all fields together.
const TOGETHER: u32 = u32::MAX;

/// Cuts each field, and all of them together where there are several. What is shorter than two grams is no evidence.
fn parts<'i>(cutter: &'i Shingler, item: &'i BenchmarkItem) -> impl Iterator<Item = (u32, Vec<u64>)> + 'i {
    let together = (item.fields.len() > 1).then(|| (TOGETHER, item.text()));
    let alone = item.fields.iter().enumerate().map(|(i, (_, text))| (i as u32, text.clone()));
    alone.chain(together).filter_map(|(part, text)| {
        let mut grams = Vec::new();
        cutter.shingles(&text, &mut grams);
        (grams.len() > 1).then_some((part, grams))
    })
}

/// An item found in a text.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Finding {
    /// The item, by its number in the set.
    pub item: usize,
    /// The field that was found, or all of them.
    pub field: String,
    /// Which share of the field's weight is there.
    pub share: f64,
    /// How many times the weight is there that is needed to be found.
    pub score: f64,
    /// Where in the text it is.
    pub bytes: Range<usize>,
    /// The line of the text that it begins on, from 1.
    pub line: usize,
}

/// What a search needs room for.
#[derive(Debug, Default)]
pub struct FinderRoom {
    room: Room,
    hits: Vec<Hit>,
}

/// Looks for the items of a set in texts.
#[derive(Debug)]
pub struct Finder {
    benchmark: Arc<Benchmark>,
    pub(super) cutter: Shingler,
    pub(super) passages: Passages,
    pub(super) thresholds: Thresholds,
    decidable: Vec<bool>,
}

impl Finder {
    /// Returns what is looked for.
    pub fn benchmark(&self) -> &Benchmark {
        &self.benchmark
    }

    /// Returns from where on something is found.
    pub fn thresholds(&self) -> Thresholds {
        self.thresholds
    }

    /// Returns whether an item is long enough to be told from chance.
    ///
    /// # Panics
    /// If there is no such item.
    pub fn is_decidable(&self, item: usize) -> bool {
        self.decidable[item]
    }

    /// Returns the memory that it takes.
    pub fn bytes(&self) -> u64 {
        self.passages.bytes()
    }

    /// Makes room for searching.
    pub fn room(&self) -> FinderRoom {
        FinderRoom::default()
    }

    /// Returns every item that a text holds, by where it begins. An item that is there several times is found as often.
    pub fn find(&self, text: &str, room: &mut FinderRoom) -> Vec<Finding> {
        self.cutter.shingles(text, &mut room.room.grams);
        self.passages.find(&mut room.room, &mut room.hits);
        if room.hits.is_empty() {
            return Vec::new();
        }
        let mut findings = Vec::new();
        let mut places = Places::new(text);
        let score = |hit: &Hit| hit.matched as f64 / self.passages.get(hit.passage).needed as f64;
        let item_of = |hit: &Hit| self.passages.get(hit.passage).item;
        for hits in room.hits.chunk_by_mut(|a, b| item_of(a) == item_of(b)) {
            // An item's passages overlap, and of those that were found at one place the surest counts.
            hits.sort_by(|a, b| {
                score(b).total_cmp(&score(a)).then(a.first.cmp(&b.first)).then(a.passage.cmp(&b.passage))
            });
            let mut taken: BTreeMap<u32, u32> = BTreeMap::new();
            for hit in &*hits {
                let before = taken.range(..=hit.last).next_back();
                if before.is_some_and(|(_, &last)| last >= hit.first) {
                    continue;
                }
                taken.insert(hit.first, hit.last);
                let passage = self.passages.get(hit.passage);
                let item = &self.benchmark.items[passage.item as usize];
                let field = match item.fields.get(passage.part as usize) {
                    Some((name, _)) => name.clone(),
                    None => item.fields.iter().map(|(name, _)| &**name).collect::<Vec<_>>().join("+"),
                };
                findings.push(Finding {
                    item: passage.item as usize,
                    field,
                    share: hit.matched as f64 / passage.total as f64,
                    score: score(hit),
                    line: 0,
                    bytes: places.bytes(hit.first as usize, hit.last as usize),
                });
            }
        }
        findings.sort_by_key(|finding| (finding.bytes.start, finding.bytes.end, finding.item));
        let (mut line, mut counted) = (1, 0);
        for finding in &mut findings {
            let start = finding.bytes.start;
            line += text.as_bytes()[counted..start].iter().filter(|&&byte| byte == b'\n').count();
            (finding.line, counted) = (line, start);
        }
        findings
    }

    /// Cuts out what is found, and what is found in the rest, until nothing is. Of a text in which each cut brings the next item together,
    /// `MOST_PASSES` times, nothing is left.
    pub fn mask(&self, text: &str, findings: &[Finding], room: &mut FinderRoom) -> String {
        let cut = |text: &str, findings: &[Finding]| {
            let cuts: Vec<Range<usize>> = findings.iter().map(|finding| finding.bytes.clone()).collect();
            without(text, &cuts)
        };
        let mut rest = cut(text, findings);
        for _ in 0..MOST_PASSES {
            let findings = self.find(&rest, room);
            if findings.is_empty() {
                return rest;
            }
            rest = cut(&rest, &findings);
        }
        String::new()
    }

    /// Returns whether anything is left of a text.
    pub(super) fn has_words(&self, text: &str, room: &mut FinderRoom) -> bool {
        self.cutter.shingles(text, &mut room.room.grams);
        !room.room.grams.is_empty()
    }
}

/// How often a text is cut before it is given up.
const MOST_PASSES: usize = 32;

/// Returns whether a file is a saved benchmark set.
pub fn is_benchmark(path: &Path) -> bool {
    use std::io::Read;
    let wanted = format!("{{\"nearset\":\"{KIND}\"");
    let mut head = vec![0; wanted.len()];
    std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut head)).is_ok() && head == wanted.as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(id: &str, question: &str, answer: &str) -> BenchmarkItem {
        let fields = [("question", question), ("answer", answer)];
        let fields = fields.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        BenchmarkItem::new(0, id, fields)
    }

    const FERRY: &str = "A ferry carries 47 lorries across the strait every morning and 31 in the afternoon. How many lorries cross in a week?";

    fn finder() -> Finder {
        let items = vec![
            item("ferry", FERRY, "It carries 47 + 31 = 78 lorries per day, so 7 * 78 = 546 per week."),
            item("short", "Which is true?", "Neither"),
            item("cjk", "一辆汽车以每小时六十公里的速度行驶三个半小时，请问它一共行驶了多少公里？", "210"),
            item("code", "def rotate_left(values, k):\n    k %= len(values)\n    return values[k:] + values[:k]", "x"),
        ];
        Arc::new(Benchmark::new(vec!["bench.jsonl".to_owned()], items)).finder(Thresholds::USUAL)
    }

    fn found(text: &str) -> Vec<(String, String)> {
        let finder = finder();
        let name = |finding: &Finding| {
            (finder.benchmark().items()[finding.item].id.clone(), text[finding.bytes.clone()].to_owned())
        };
        finder.find(text, &mut FinderRoom::default()).iter().map(name).collect()
    }

    #[test]
    fn items_are_found_where_they_are() {
        let page = format!("An old page.\n\nQ: {}\nA: who knows", FERRY.to_uppercase());
        let expected = FERRY.to_uppercase().trim_end_matches('?').to_owned();
        assert_eq!(found(&page), [("ferry".to_owned(), expected)]);
        let finding = &finder().find(&page, &mut FinderRoom::default())[0];
        assert_eq!((finding.line, finding.share, &*finding.field), (3, 1.0, "question"));
        assert_eq!(found("Which is true? Neither of the two, as so often with ferries and lorries."), []);
    }

    #[test]
    fn scripts_without_spaces_and_code_are_found() {
        let page = "题目：一辆汽车以每小时六十公里的速度行驶三个半小时，请问它一共行驶了多少公里？解答如下";
        assert_eq!(found(page)[0].0, "cjk");
        let page = "Here:\n    def rotate_left(values, k):\n        k %= len(values)\n        return values[k:] + values[:k]\n# done";
        assert_eq!(found(page)[0].0, "code");
    }

    #[test]
    fn every_copy_is_found_and_cut() {
        let page = format!("one {FERRY} two {FERRY} three");
        assert_eq!(found(&page).len(), 2);
        let (finder, mut room) = (finder(), FinderRoom::default());
        let findings = finder.find(&page, &mut room);
        assert_eq!(finder.mask(&page, &findings, &mut room), "one ? two ? three");
    }

    #[test]
    fn short_items_are_undecidable() {
        let finder = finder();
        assert_eq!([0, 1, 2, 3].map(|item| finder.is_decidable(item)), [true, false, true, true]);
    }

    #[test]
    fn a_saved_set_opens_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bench.nearset");
        let benchmark = finder().benchmark.clone();
        benchmark.save(&path, &OutputOptions::default()).unwrap();
        assert!(is_benchmark(&path));
        assert_eq!(Benchmark::open(&path).unwrap(), *benchmark);
        let whole = std::fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            std::fs::write(&path, &damaged).unwrap();
            // The head says what the set is, and names files, which may be anything.
            let opened = Benchmark::open(&path);
            assert!(opened.is_err() || opened.unwrap().items == benchmark.items, "byte {at}");
        }
    }

    #[test]
    fn the_frozen_set_is_read_and_built_again() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let sources = |name: &str| nearset_records::resolve(&[root.join(name).to_str().unwrap()], None).unwrap().list;
        let frozen = Benchmark::open(&root.join("testdata/decontaminate/v1.nearset")).unwrap();
        let mut options = BenchmarkOptions::new(Fields::new("text", nearset_records::ItemField::Text));
        options.background = sources("examples/licences.jsonl");
        let mut built = Benchmark::read(&sources("testdata/decontaminate/items.jsonl"), options).unwrap();
        assert_eq!((frozen.background(), frozen.items()[2].fields[1].1.as_str()), (720, "210"));
        built.files.clone_from(&frozen.files);
        assert_eq!(built, frozen);
    }

    #[test]
    fn a_background_makes_common_words_weigh_less() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: String| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            nearset_records::resolve(&[path.to_str().unwrap()], None).unwrap().list
        };
        let items = write("items.jsonl", format!("{{\"id\":1,\"question\":\"{FERRY}\",\"choices\":[\"5\",\"46\"]}}\n"));
        let pages = write("pages.txt", "how many lorries cross in a week is often asked\n".repeat(2000));
        let mut options = BenchmarkOptions::new(Fields::new("text", nearset_records::ItemField::Text));
        let alone = Benchmark::read(&items, options.clone()).unwrap();
        assert_eq!(alone.items[0].fields[1], ("choices".to_owned(), "5\n46".to_owned()));
        options.background = pages;
        let weighed = Benchmark::read(&items, options).unwrap();
        assert_eq!((alone.background(), weighed.background()), (0, 2000));
        let total = |set: &Benchmark| set.weights.iter().map(|&(_, weight)| u64::from(weight)).sum::<u64>();
        // Of the grams, 5 are in every page, and weigh nothing among 2001 texts that have them.
        assert!(total(&weighed).abs_diff(total(&alone) - 5 * u64::from(ONE)) < 100, "{}", total(&weighed));
    }
}
