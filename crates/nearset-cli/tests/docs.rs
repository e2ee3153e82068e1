//! What the documents tell people to type works.
//!
//! Every `sh` block of `README.md` and `docs/guide/*.md` is run by `sh -eu` with the program on `PATH`, in a folder that has
//! the repository's `examples/`. The blocks of a document share its folder and run in order, so a later one may use what an
//! earlier one wrote. Blocks marked `text` or otherwise are not run.

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

#[test]
fn shell_blocks_of_the_documents_run() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut documents: Vec<PathBuf> = std::fs::read_dir(root.join("docs/guide"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .collect();
    documents.sort();
    documents.extend(Some(root.join("README.md")).filter(|path| path.exists()));
    let program = Path::new(env!("CARGO_BIN_EXE_nearset")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap_or_default());
    let (mut ran, mut failures) = (0, Vec::new());
    for document in documents {
        let folder = tempfile::tempdir().unwrap();
        if root.join("examples").is_dir() {
            copy(&root.join("examples"), &folder.path().join("examples"));
        }
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
                let name = document.file_name().unwrap().to_string_lossy();
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
    assert!(ran > 0, "no document has a block to run");
}

#[test]
fn only_shell_blocks_are_found() {
    let markdown = "a\n```sh\none\ntwo\n```\n```text\nno\n```\n- list\n  ```sh\n  three\n  ```\n```\nplain\n```\n";
    let found: Vec<(usize, String)> = blocks(markdown).into_iter().map(|block| (block.line, block.script)).collect();
    assert_eq!(found, [(2, "one\ntwo\n".to_owned()), (10, "three\n".to_owned())]);
}
