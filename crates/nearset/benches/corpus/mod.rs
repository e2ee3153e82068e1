//! Texts for the benches.

use std::process::Command;

/// Reads the licence corpus, 37,154 documents of 37 MB in all. Returns `None` with a message if it or `xz` is missing.
pub fn licences() -> Option<Vec<String>> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data/scancode-licenses/licenses.jsonl.xz");
    let decoded = Command::new("xz").args(["-dc", path]).output().ok().filter(|output| output.status.success());
    let Some(output) = decoded else {
        eprintln!("skipped: `xz -dc {path}` gives nothing here");
        return None;
    };
    let lines = std::str::from_utf8(&output.stdout).expect("the corpus is UTF-8").lines();
    let text = |line| {
        let record: serde_json::Value = serde_json::from_str(line).expect("a JSON object on each line");
        record["text"].as_str().expect("a text in each record").to_owned()
    };
    Some(lines.map(text).collect())
}
