//! What the documents tell people to type works, and what they refer to is there.
//!
//! Every `sh` block of `README.md`, `docs/guide/*.md` and `docs/cookbook/*.md` is run by `sh -eu` with the program on `PATH`, in one folder that
//! has the repository's `examples/`: in the order of the site's table of contents, top to bottom, as somebody does who reads them all.
//! Blocks marked `text` or otherwise are not run.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A block, and the line on which it starts.
struct Block {
    line: usize,
    script: String,
}

fn blocks(markdown: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    // The fence's indentation, and whether the block is to be run.
    let mut open: Option<(usize, bool)> = None;
    for (i, line) in markdown.lines().enumerate() {
        let fence = line.trim_start().strip_prefix("```");
        match (open, fence) {
            (None, Some(kind)) => {
                let run = kind.trim() == "sh";
                open = Some((line.len() - line.trim_start().len(), run));
                if run {
                    blocks.push(Block { line: i + 1, script: String::new() });
                }
            }
            (Some(_), Some(_)) => open = None,
            (Some((indent, true)), None) => {
                if let Some(block) = blocks.last_mut() {
                    block.script += line.get(indent..).unwrap_or_default();
                    block.script.push('\n');
                }
            }
            _ => {}
        }
    }
    assert!(open.is_none(), "a block that never ends");
    blocks
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The pages of the site, in the order of its table of contents.
fn pages() -> Vec<PathBuf> {
    let contents = std::fs::read_to_string(root().join("mkdocs.yml")).unwrap();
    let pages = contents.lines().filter_map(|line| line.trim().strip_suffix(".md")?.rsplit_once(": "));
    pages.map(|(_, page)| root().join("docs").join(format!("{page}.md"))).collect()
}

#[test]
fn the_documents_can_be_followed_from_top_to_bottom_in_one_folder() {
    let program = Path::new(env!("CARGO_BIN_EXE_nearset")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap_or_default());
    let (mut ran, mut failures) = (0, Vec::new());
    let folder = tempfile::tempdir().unwrap();
    copy(&root().join("examples"), &folder.path().join("examples"));
    for document in [root().join("README.md")].into_iter().chain(pages()) {
        for block in blocks(&std::fs::read_to_string(&document).unwrap()) {
            let output = Command::new("sh")
                .args(["-euc", &block.script])
                .current_dir(folder.path())
                .env("PATH", &path)
                .stdin(Stdio::null())
                .output()
                .unwrap();
            ran += 1;
            if !output.status.success() {
                let name = document.strip_prefix(root()).unwrap().display();
                failures.push(format!(
                    "{name}:{}: {}\n{}{}",
                    block.line,
                    output.status,
                    block.script,
                    String::from_utf8_lossy(&output.stderr)
                ));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(ran > 20, "the documents have {ran} blocks to run");
}

#[test]
fn every_page_is_in_the_table_of_contents() {
    let listed: BTreeSet<PathBuf> = pages().into_iter().collect();
    let there: BTreeSet<PathBuf> = markdown_below(&root().join("docs")).into_iter().collect();
    assert_eq!(listed, there);
}

/// All Markdown files below a folder, hidden folders and what is built aside.
fn markdown_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let (path, name) = (entry.path(), entry.file_name().into_string().unwrap());
        if entry.file_type().unwrap().is_dir() {
            if name != "target" && !name.starts_with('.') {
                found.extend(markdown_below(&path));
            }
        } else if name.ends_with(".md") {
            found.push(path);
        }
    }
    found
}

/// Text outside of code.
fn prose(markdown: &str) -> String {
    let mut is_code = false;
    let mut prose = String::new();
    for line in markdown.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code {
            prose.extend(line.split('`').step_by(2).flat_map(|part| [part, " "]));
            prose.push('\n');
        }
    }
    prose
}

/// The anchor that a heading has.
fn anchor(heading: &str) -> String {
    let kept = |c: char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    heading.trim().to_lowercase().chars().filter(|&c| kept(c)).map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[test]
fn links_lead_somewhere() {
    let mut dead = Vec::new();
    for document in markdown_below(&root()) {
        let text = prose(&std::fs::read_to_string(&document).unwrap());
        for link in text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(link, _)| link) {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { document.clone() } else { document.with_file_name(file) };
            let is_there = match heading {
                "" => target.exists(),
                _ => std::fs::read_to_string(&target).is_ok_and(|text| {
                    let headings = text.lines().filter_map(|line| line.strip_prefix('#'));
                    headings.map(|line| line.trim_start_matches('#')).any(|line| anchor(line) == heading)
                }),
            };
            if !is_there {
                dead.push(format!("{}: {link}", document.strip_prefix(root()).unwrap().display()));
            }
        }
    }
    assert!(dead.is_empty(), "{}", dead.join("\n"));
}

#[test]
fn only_shell_blocks_are_found() {
    let markdown = "a\n```sh\none\ntwo\n```\n```text\nno\n```\n- list\n  ```sh\n  three\n  ```\n```\nplain\n```\n";
    let found: Vec<(usize, String)> = blocks(markdown).into_iter().map(|block| (block.line, block.script)).collect();
    assert_eq!(found, [(2, "one\ntwo\n".to_owned()), (10, "three\n".to_owned())]);
}
