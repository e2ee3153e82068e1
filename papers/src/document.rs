//! READMEs whose tables come from the data.
//!
//! Claim: what stands in a README between `<!-- table: NAME.tsv -->` and `<!-- end -->` is that file, so text and data
//! cannot drift apart; a test compares them. The summary's `<!-- verdicts -->` is counted from every paper's
//! `verdicts.tsv`, with its `headline.tsv` beside the counts.

use std::{fs, path::Path};

use anyhow::Context as _;

use crate::table::Table;

const TABLE: &str = "<!-- table: ";
const VERDICTS: &str = "<!-- verdicts -->";
const END: &str = "<!-- end -->";

/// The file that holds a paper's verdicts.
pub const VERDICTS_FILE: &str = "verdicts.tsv";
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
        let Some(name) = marker.strip_prefix(TABLE).and_then(|rest| rest.strip_suffix(" -->")) else { return Ok(None) };
        Ok(Some(read(&folder.join(name))?.to_markdown()))
    })
}

fn with_summary<'a>(folder: &Path, readme: &str, papers: impl Iterator<Item = &'a str>) -> anyhow::Result<String> {
    let mut summary = Table::new(["paper", "claims", "reproduced", "differs", "can't be decided", "headline"]);
    for paper in papers {
        let file = folder.join(paper).join(VERDICTS_FILE);
        if !file.exists() {
            continue;
        }
        let verdicts = read(&file)?;
        let headline = folder.join(paper).join(HEADLINE_FILE);
        let headline = if headline.exists() { read(&headline)?.rows().concat().concat() } else { String::new() };
        let kinds: Vec<&str> = verdicts.rows().iter().filter_map(|row| row.last().map(String::as_str)).collect();
        let starting = |with: &str| kinds.iter().filter(|kind| kind.starts_with(with)).count().to_string();
        summary.row([
            format!("[{paper}]({paper}/README.md)"),
            kinds.len().to_string(),
            starting("reproduced"),
            starting("differs"),
            starting("can't"),
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
