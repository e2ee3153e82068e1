//! Every paper's headline numbers, by the program itself with few queries.

use std::process::Command;

#[test]
fn no_headline_number_drifts() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("papers");
    let output = Command::new(env!("CARGO_BIN_EXE_papers")).args(["all", "--quick", "--output"]).arg(&folder).output();
    let output = output.expect("the program starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let verdicts = folder.join("kirsch-mitzenmacher-2006").join("verdicts.tsv");
    let verdicts = std::fs::read_to_string(verdicts).expect("verdicts are written");
    assert!(verdicts.contains("20 of 20 within 4 standard errors"), "{verdicts}");
}
