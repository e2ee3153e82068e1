//! READMEs whose tables come from the data.
//!
//! Claim: what stands in a README between `<!-- table: NAME.tsv -->` or `<!-- list: NAME.tsv -->` and `<!-- end -->` is
//! that file, so text and data cannot drift apart; a test compares them. The summary's `<!-- verdicts -->` is counted
//! from every paper's `verdicts.tsv`, with its `headline.tsv` beside the counts.
//! Claim: every item of a paper's `contents.tsv` (its sections, theorems, figures, tables and worked examples, as the
//! paper numbers them) has a verdict or says why not, and no verdict is about anything else; tests compare the two, and
//! the list with the paper's text where that is at hand.

use std::{fs, path::Path};

use anyhow::Context as _;

use crate::{
    run::{BEYOND, DIFFERS, REPRODUCED, UNDECIDED},
    table::{Table, numbered_list},
};

const TABLE: &str = "<!-- table: ";
const LIST: &str = "<!-- list: ";
const VERDICTS: &str = "<!-- verdicts -->";
const END: &str = "<!-- end -->";

/// The file that holds a paper's verdicts.
pub const VERDICTS_FILE: &str = "verdicts.tsv";
/// The file that holds the verdicts' reasons.
pub const REASONS_FILE: &str = "reasons.tsv";
/// The file that holds the line that sums a paper up.
pub const HEADLINE_FILE: &str = "headline.tsv";

/// Brings the tables in a folder's README up to date, if it has one.
pub fn refresh(folder: &Path) -> anyhow::Result<()> {
    update(folder, with_tables)
}

/// Brings the count of verdicts in the README over all papers up to date, if there is one.
pub fn refresh_summary<'a>(folder: &Path, papers: impl Iterator<Item = &'a str>) -> anyhow::Result<()> {
    update(folder, |folder, old| with_summary(folder, old, papers))
}

fn update(folder: &Path, new: impl FnOnce(&Path, &str) -> anyhow::Result<String>) -> anyhow::Result<()> {
    let file = folder.join("README.md");
    if !file.exists() {
        return Ok(());
    }
    let old = fs::read_to_string(&file).with_context(|| format!("{} can't be read", file.display()))?;
    let new = new(folder, &old).with_context(|| format!("{} can't be brought up to date", file.display()))?;
    if new == old {
        return Ok(());
    }
    fs::write(&file, new).with_context(|| format!("{} can't be written", file.display()))
}

fn with_tables(folder: &Path, readme: &str) -> anyhow::Result<String> {
    filled(readme, |marker| {
        let name = |kind: &str| marker.strip_prefix(kind).and_then(|rest| rest.strip_suffix(" -->"));
        Ok(match (name(TABLE), name(LIST)) {
            (Some(name), _) => Some(read(&folder.join(name))?.to_markdown()),
            (_, Some(name)) => Some(numbered_list(&read(&folder.join(name))?)),
            (None, None) => None,
        })
    })
}

fn with_summary<'a>(folder: &Path, readme: &str, papers: impl Iterator<Item = &'a str>) -> anyhow::Result<String> {
    let mut summary = Table::new(["paper", "claims", REPRODUCED, DIFFERS, UNDECIDED, BEYOND, "headline"]);
    for paper in papers {
        let file = folder.join(paper).join(VERDICTS_FILE);
        if !file.exists() {
            continue;
        }
        let verdicts = read(&file)?;
        let headline = folder.join(paper).join(HEADLINE_FILE);
        let headline = if headline.exists() { read(&headline)?.rows().concat().concat() } else { String::new() };
        let verdict = verdicts.column("verdict").with_context(|| format!("{paper} has no verdicts"))?;
        let of = |kind: &str| verdicts.rows().iter().filter(|row| row[verdict] == kind).count().to_string();
        summary.row([
            format!("[{paper}]({paper}/README.md)"),
            verdicts.rows().len().to_string(),
            of(REPRODUCED),
            of(DIFFERS),
            of(UNDECIDED),
            of(BEYOND),
            headline,
        ]);
    }
    filled(readme, |marker| Ok((marker == VERDICTS).then(|| summary.to_markdown())))
}

fn read(file: &Path) -> anyhow::Result<Table> {
    let tsv = fs::read_to_string(file).with_context(|| format!("{} can't be read", file.display()))?;
    Ok(Table::from_tsv(&tsv))
}

/// Returns the text with `content` of each marker filled in between it and the next end.
fn filled(old: &str, content: impl Fn(&str) -> anyhow::Result<Option<String>>) -> anyhow::Result<String> {
    let (mut new, mut inside) = (String::new(), None);
    for line in old.lines() {
        if inside.is_some() && line != END {
            continue;
        }
        inside = content(line)?.map(|filling| (line, filling));
        new += line;
        new.push('\n');
        new += inside.as_ref().map_or("", |(_, filling)| filling);
    }
    match inside {
        None => Ok(new),
        Some((marker, _)) => anyhow::bail!("after {marker} a line {END} is missing"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fillings_replace_the_old_content() {
        let filling = |marker: &str| Ok((marker == VERDICTS).then(|| "new\n".to_owned()));
        let text = "a\n<!-- verdicts -->\nold\nolder\n<!-- end -->\nb\n";
        let new = filled(text, filling).unwrap();
        assert_eq!(new, "a\n<!-- verdicts -->\nnew\n<!-- end -->\nb\n");
        assert_eq!(filled(&new, filling).unwrap(), new);
        assert!(filled("<!-- verdicts -->\n", filling).unwrap_err().to_string().contains("is missing"));
    }

    /// A paper's items with the reason why one has no verdict, and the items that its verdicts are about.
    fn items_and_places(paper: &str) -> (Vec<(String, String)>, Vec<String>) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(paper);
        let contents = read(&folder.join("contents.tsv")).unwrap();
        let items = contents.rows().iter().map(|row| (row[0].clone(), row[2].clone())).collect();
        let verdicts = read(&folder.join(VERDICTS_FILE)).unwrap();
        let place = verdicts.column("where").unwrap();
        let places = verdicts.rows().iter().flat_map(|row| row[place].split("; ").map(str::to_owned));
        (items, places.collect())
    }

    #[test]
    fn every_numbered_item_has_a_verdict_or_a_reason() {
        for paper in crate::PAPERS {
            let (items, places) = items_and_places(paper.name);
            for (item, why_not) in &items {
                let judged = places.contains(item);
                assert!(judged || !why_not.is_empty(), "{}: {item} has neither a verdict nor a reason", paper.name);
                assert!(!judged || why_not.is_empty(), "{}: {item} has a verdict, and a reason for none", paper.name);
            }
            for place in &places {
                let listed = items.iter().any(|(item, _)| item == place);
                assert!(listed, "{}: {place} has a verdict and is not in contents.tsv", paper.name);
            }
        }
    }

    /// Kinds of items that texts number, as the texts spell them, and as the lists do.
    const KINDS: [(&str, &str); 17] = [
        ("Theorem", "Theorem"),
        ("THEOREM", "Theorem"),
        ("Lemma", "Lemma"),
        ("Corollary", "Corollary"),
        ("COROLLARY", "Corollary"),
        ("PROPOSITION", "Proposition"),
        ("DEFINITION", "Definition"),
        ("Definition", "Definition"),
        ("REMARK", "Remark"),
        ("Remark", "Remark"),
        ("Figure", "Figure"),
        ("Fig.", "Figure"),
        ("Table", "Table"),
        ("TABLE", "Table"),
        ("Case", "Case"),
        ("Observation", "Observation"),
        ("Exercise", "Exercise"),
    ];

    #[test]
    fn lists_of_contents_have_what_the_texts_number() {
        let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/seeds");
        let Ok(files) = fs::read_dir(&seeds) else {
            return eprintln!("skipped: the papers' texts are not in ../shared/seeds");
        };
        let files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
        for (start, paper) in [
            ("000_", "gregersen-2014"),
            ("001_", "hua-2012"),
            ("002_", "christophides-2019"),
            ("003_", "kirsch-mitzenmacher-2006"),
            ("004_", "kesselheim-mehlhorn"),
        ] {
            let file = files.iter().find(|file| file.file_name().unwrap().to_string_lossy().starts_with(start));
            let text = fs::read_to_string(file.unwrap()).unwrap();
            let (items, _) = items_and_places(paper);
            for (spelled, kind) in KINDS {
                for (at, _) in text.match_indices(&format!("{spelled} ")) {
                    let rest = &text[at + spelled.len() + 1..];
                    let number = rest.split(|c: char| !c.is_ascii_digit() && c != '.').next().unwrap();
                    let number = number.trim_end_matches('.');
                    if number.is_empty() {
                        continue;
                    }
                    let item = format!("{kind} {number}");
                    assert!(items.iter().any(|(listed, _)| *listed == item), "{paper}: {item} is not in contents.tsv");
                }
            }
        }
    }

    #[test]
    fn committed_documents_show_the_committed_data() {
        let home = Path::new(env!("CARGO_MANIFEST_DIR"));
        let papers = || crate::PAPERS.iter().map(|paper| paper.name);
        let read = |folder: &Path| fs::read_to_string(folder.join("README.md")).unwrap();
        for paper in papers() {
            let folder = home.join(paper);
            assert_eq!(with_tables(&folder, &read(&folder)).unwrap(), read(&folder), "{paper} is out of date");
        }
        assert_eq!(with_summary(home, &read(home), papers()).unwrap(), read(home), "the summary is out of date");
    }
}
