//! Bad input and bad places: said with file and line, and nothing half-written.

use crate::support::{Workshop, corpus, jsonl};

const GOOD: &str = "{\"text\":\"some words that are fine\"}\n";

#[test]
fn a_broken_record_fails_with_its_line_or_is_skipped() {
    let shop = Workshop::new();
    for (bad, what) in [
        (&b"{\"text\": \"cut off\n"[..], "invalid JSON"),
        (b"{\"body\": \"no text here\"}\n", "no field \"text\": there are \"body\""),
        (b"{\"text\": 7}\n", "is a number, not a string"),
        (b"{\"text\": \"\xff\xfe\"}\n", "invalid UTF-8"),
        (b"[1]\n", "an array instead of a JSON object"),
    ] {
        let mut bytes = GOOD.as_bytes().to_vec();
        bytes.extend_from_slice(bad);
        bytes.extend_from_slice(b"{\"text\":\"and other words behind it\"}\n");
        shop.write("in.jsonl", bytes);
        let ran = shop.run("dedup in.jsonl -o out.jsonl --removed removed.jsonl --save f.nearset");
        assert_eq!(ran.code(), 1);
        assert!(ran.stderr().contains("in.jsonl:2:") && ran.stderr().contains(what), "{}", ran.stderr());
        assert!(ran.stderr().contains("--on-error skip"));
        assert_eq!(shop.names(), ["in.jsonl"], "nothing is left");
        let ran = shop.ok("dedup in.jsonl -o out.jsonl --removed removed.jsonl --on-error skip --force");
        assert_eq!(shop.text("out.jsonl").lines().count(), 2);
        assert!(ran.stderr().contains("in.jsonl:2:") && ran.stderr().contains("skipped   1 that"), "{}", ran.stderr());
        assert!(shop.text("removed.jsonl").contains("\"line\":2,\"reason\":\"unreadable: "));
        std::fs::remove_file(shop.path("out.jsonl")).unwrap();
        std::fs::remove_file(shop.path("removed.jsonl")).unwrap();
    }
}

#[test]
fn many_errors_are_counted() {
    let shop = Workshop::new();
    shop.write("in.jsonl", format!("{GOOD}{}", "nonsense\n".repeat(57)));
    let ran = shop.ok("dedup in.jsonl --dry-run --on-error skip");
    assert_eq!(ran.stderr().matches("skipped   in.jsonl:").count(), 20);
    assert!(ran.stderr().contains("and 37 more"));
}

#[test]
fn a_truncated_zstd_file_is_told() {
    let shop = Workshop::new();
    let (texts, _) = corpus(2000);
    let packed = zstd::encode_all(jsonl(&texts).as_bytes(), 3).unwrap();
    shop.write("in.jsonl.zst", &packed[..packed.len() / 2]);
    shop.write("z.jsonl", GOOD);
    let ran = shop.run("dedup in.jsonl.zst z.jsonl -o out.jsonl");
    assert_eq!(ran.code(), 1);
    assert!(ran.stderr().contains("in.jsonl.zst: the zstd stream ends too early"), "{}", ran.stderr());
    assert!(!shop.exists("out.jsonl") && !shop.exists("out.jsonl.partial"));
    let ran = shop.ok("dedup in.jsonl.zst z.jsonl -o out.jsonl --on-error skip");
    assert!(ran.stderr().contains("in.jsonl.zst broke off after"), "{}", ran.stderr());
    let out = shop.text("out.jsonl");
    assert!(out.ends_with(GOOD) && out.lines().count() > 10, "whole records before the cut and all of the next file");
}

#[test]
fn outputs_are_refused_where_they_would_destroy() {
    let shop = Workshop::new();
    shop.write("in.jsonl", GOOD);
    shop.write("there.jsonl", "precious");
    for (arguments, why) in [
        ("dedup in.jsonl -o in.jsonl --force", "is also an input"),
        ("dedup in.jsonl -o ./in.jsonl --force", "is also an input"),
        ("dedup in.jsonl -o out.jsonl --removed in.jsonl --force", "is also an input"),
        ("dedup in.jsonl -o there.jsonl", "exists already"),
        ("dedup in.jsonl -o out.jsonl --save there.jsonl", "exists already"),
        ("dedup in.jsonl -o out.jsonl --removed out.jsonl", "named twice"),
        ("dedup in.jsonl -o nowhere/out.jsonl", "does not exist"),
        ("dedup in.jsonl -o out.csv", "records come out as they went in"),
        ("dedup missing.jsonl -o out.jsonl", "missing.jsonl"),
        ("dedup in.jsonl -o out.jsonl --against there.jsonl", "not a nearset file"),
        ("dedup in.jsonl -o out.jsonl --near 1.5", "between 0 and 1"),
    ] {
        let ran = shop.run(arguments);
        assert_eq!(ran.code(), 1, "{arguments}: {}", ran.stderr());
        assert!(ran.stderr().contains(why), "{arguments}: {}", ran.stderr());
    }
    assert_eq!(shop.text("in.jsonl"), GOOD);
    assert_eq!(shop.text("there.jsonl"), "precious");
    assert_eq!(shop.names(), ["in.jsonl", "there.jsonl"]);
    shop.ok("dedup in.jsonl -o there.jsonl --force");
    assert_eq!(shop.text("there.jsonl"), GOOD);
}

#[test]
fn a_second_run_does_not_disturb_the_first() {
    use std::io::Write;
    use std::process::Stdio;
    let shop = Workshop::new();
    shop.write("in.jsonl", GOOD);
    let mut first =
        shop.command("dedup - -o out.jsonl --removed removed.jsonl -q").stdin(Stdio::piped()).spawn().unwrap();
    while !shop.exists("removed.jsonl.partial") {
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    for options in ["", " --force", " --resume"] {
        let ran = shop.run(&format!("dedup in.jsonl -o out.jsonl --removed removed.jsonl{options}"));
        assert_eq!(ran.code(), 1);
        assert!(ran.stderr().contains("another run is writing to it"), "{}", ran.stderr());
    }
    first.stdin.take().unwrap().write_all(GOOD.as_bytes()).unwrap();
    assert!(first.wait().unwrap().success());
    assert_eq!(shop.text("out.jsonl"), GOOD);
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    use std::io::Read;
    use std::process::Stdio;
    let shop = Workshop::new();
    let (texts, _) = corpus(6000);
    shop.write("in.jsonl", jsonl(&texts));
    let mut child =
        shop.command("dedup in.jsonl -o - -q").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut some = [0; 100];
    child.stdout.take().unwrap().read_exact(&mut some).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert!(output.status.success());
}
