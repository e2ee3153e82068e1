//! Repeated parts out of texts.

use std::collections::HashSet;

use serde_json::Value;

use crate::support::{Numbers, Ran, Workshop, parquet, parquet_rows};

/// What the program should leave of texts, written plainly; `None` for a record that goes.
struct Rule {
    unit: &'static str,
    min_words: usize,
    max_share: f64,
    keeps_empty: bool,
}

impl Rule {
    fn parts(&self, text: &str) -> Vec<String> {
        let lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
        match self.unit {
            "line" => lines,
            "paragraph" => {
                let mut parts: Vec<String> = Vec::new();
                let mut after_blank = false;
                for line in lines {
                    let is_blank = line.trim().is_empty();
                    match parts.last_mut() {
                        Some(last) if is_blank || !after_blank => last.push_str(&line),
                        _ => parts.push(line.clone()),
                    }
                    after_blank = is_blank;
                }
                parts
            }
            // The texts here have no other ends of sentences. What is blank behind one belongs to it.
            _ => {
                let mut parts: Vec<String> = Vec::new();
                for part in lines.iter().flat_map(|line| line.split_inclusive("! ")) {
                    match parts.last_mut() {
                        Some(last) if part == "\n" && last.ends_with("! ") => last.push('\n'),
                        _ => parts.push(part.to_owned()),
                    }
                }
                parts
            }
        }
    }

    fn cut(&self, texts: &[String]) -> Vec<Option<String>> {
        let mut seen: HashSet<Vec<String>> = HashSet::new();
        let mut cut = |text: &String| {
            let (mut rest, mut repeated, mut new) = (String::new(), 0, HashSet::new());
            for part in self.parts(text) {
                let words: Vec<String> = part
                    .to_lowercase()
                    .replace('ß', "ss")
                    .split(|c: char| !c.is_alphanumeric())
                    .filter(|word| !word.is_empty())
                    .map(str::to_owned)
                    .collect();
                let is_short = words.len() < self.min_words.max(1);
                if is_short || !seen.contains(&words) && new.insert(words) {
                    rest.push_str(&part);
                } else {
                    repeated += part.len();
                }
            }
            if repeated as f64 / text.len().max(1) as f64 > self.max_share {
                return None;
            }
            seen.extend(new);
            (repeated == 0 || self.keeps_empty || !rest.trim().is_empty()).then_some(rest)
        };
        texts.iter().map(&mut cut).collect()
    }

    fn arguments(&self) -> String {
        let Self { unit, min_words, max_share, keeps_empty } = self;
        let empty = if *keeps_empty { "keep" } else { "drop" };
        format!("--unit {unit} --min-words {min_words} --max-share {max_share} --empty {empty}")
    }
}

/// Texts of up to 12 lines, most of which many have, in other case and punctuation; some are blank or have no words.
pub fn texts(count: usize) -> Vec<String> {
    let mut numbers = Numbers(25);
    let vocabulary = ["Home", "über", "news", "Copyright", "log", "in", "Straße", "page"];
    let line = |numbers: &mut Numbers| match numbers.below(8) {
        0 => String::new(),
        1 => "---".to_owned(),
        _ => {
            let words = 1 + numbers.below(4);
            let mut line = String::new();
            for _ in 0..words {
                let word = vocabulary[numbers.below(vocabulary.len() as u64) as usize];
                line.push_str(&if numbers.below(2) == 0 { word.to_uppercase() } else { word.to_owned() });
                line.push_str([" ", ", ", " | ", "! "][numbers.below(4) as usize]);
            }
            line
        }
    };
    (0..count)
        .map(|_| {
            let lines: Vec<String> = (0..numbers.below(13)).map(|_| line(&mut numbers)).collect();
            lines.join("\n")
        })
        .collect()
}

pub fn jsonl(texts: &[String]) -> String {
    texts.iter().enumerate().map(|(i, text)| serde_json::json!({"id": i, "text": text}).to_string() + "\n").collect()
}

fn left(texts: &[Option<String>]) -> String {
    let rest = texts.iter().enumerate().filter_map(|(i, text)| Some((i, text.as_ref()?)));
    rest.map(|(i, text)| serde_json::json!({"id": i, "text": text}).to_string() + "\n").collect()
}

#[test]
fn what_is_left_is_what_a_plain_program_leaves() {
    let shop = Workshop::new();
    let texts = texts(400);
    shop.write("in.jsonl", jsonl(&texts));
    for unit in ["line", "paragraph", "sentence"] {
        for (min_words, max_share, keeps_empty) in [(1, 1.0, false), (3, 1.0, true), (1, 0.5, false), (2, 0.3, true)] {
            let rule = Rule { unit, min_words, max_share, keeps_empty };
            let expected = left(&rule.cut(&texts));
            let arguments = rule.arguments();
            assert!(expected.len() < jsonl(&texts).len() && !expected.is_empty(), "{arguments}");
            for how in ["--threads 1", "--threads 3", "--no-verify --capacity 10000"] {
                shop.ok(&format!("dedup in.jsonl -o out.jsonl --force {arguments} {how}"));
                let found = shop.text("out.jsonl");
                let different = found.lines().zip(expected.lines()).find(|(found, expected)| found != expected);
                assert_eq!((different, found.len()), (None, expected.len()), "{arguments} {how}");
            }
        }
    }
}

#[test]
fn parts_that_were_cut_are_listed_and_counted() {
    let shop = Workshop::new();
    shop.write(
        "in.jsonl",
        "{\"text\":\"Log in\\nOne.\"}\n{\"text\":\"Two\\nlog IN!\\nthree\"}\n{\"text\":\"log in\"}\n",
    );
    let ran = shop.ok("dedup in.jsonl -o out.jsonl --unit line --removed removed.jsonl --json");
    let summary: Value = serde_json::from_slice(ran.stdout()).unwrap();
    assert_eq!((&summary["units"], &summary["repeated"], &summary["emptied"]), (&6.into(), &2.into(), &1.into()));
    assert_eq!(summary["frequent"][0], serde_json::json!({"times": 2, "text": "log in"}));
    let removed: Vec<Value> =
        shop.text("removed.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let expected = serde_json::json!([{"bytes": [4, 12], "line": 2, "text": "log IN!\n"}]);
    assert_eq!((removed.len(), &removed[0]["line"], &removed[0]["repeated"]), (2, &2.into(), &expected));
    assert_eq!(removed[1]["reason"], "nothing but lines that were there before");
    shop.ok("dedup in.jsonl -o marked.jsonl --unit line --annotate");
    let marked: Value = serde_json::from_str(shop.text("marked.jsonl").lines().nth(1).unwrap()).unwrap();
    assert_eq!((&marked["text"], &marked["repeated_spans"]), (&"Two\nlog IN!\nthree".into(), &"[[4,12]]".into()));
    // A dry run says the same, and writes nothing.
    let names = shop.names();
    shop.ok("dedup in.jsonl --dry-run --unit line");
    assert_eq!(shop.names(), names);
}

#[test]
fn bytes_are_compared_as_they_are() {
    let shop = Workshop::new();
    shop.write("in.txt", "a+b\na-b\n a+b\nA+B\n");
    shop.ok("dedup in.txt --format text -o words.txt --unit line");
    shop.ok("dedup in.txt --format text -o bytes.txt --unit line --shingle bytes:1");
    assert_eq!((shop.text("words.txt"), shop.text("bytes.txt")), ("a+b\n".to_owned(), "a+b\na-b\nA+B\n".to_owned()));
    shop.write("code.txt", "a+b\na-b\n\ta + b\nA+B\n}\n}\n");
    let said = shop.ok("dedup code.txt --format text -o code.out.txt --unit line --shingle code:1").stderr();
    assert_eq!(shop.text("code.out.txt"), "a+b\na-b\nA+B\n}\n");
    assert!(said.contains("whose tokens were there before"), "{said}");
}

#[test]
fn rows_of_parquet_lose_their_repeated_lines() {
    let shop = Workshop::new();
    let texts: Vec<String> = ["One\nhome", "Two\nHome", "home"].map(str::to_owned).into();
    parquet(&shop.path("in.parquet"), &texts);
    shop.ok("dedup in.parquet -o out.parquet --unit line");
    let rows = ["{text: \"One\nhome\", n: 0}", "{text: \"Two\n\", n: 1}"];
    assert_eq!(parquet_rows(&shop.path("out.parquet")), rows);
}

#[test]
fn a_second_run_finds_nothing() {
    let shop = Workshop::new();
    shop.write("in.jsonl", jsonl(&texts(200)));
    shop.ok("dedup in.jsonl -o once.jsonl --unit line");
    shop.ok("dedup once.jsonl -o twice.jsonl --unit line");
    assert_eq!(shop.text("once.jsonl"), shop.text("twice.jsonl"));
}

#[test]
fn memory_that_will_not_do_is_told_before() {
    let shop = Workshop::new();
    shop.write("in.jsonl", jsonl(&texts(400)));
    let ran = shop.run("dedup in.jsonl -o out.jsonl --unit line --memory 1000");
    let told = ran.stderr();
    assert!(ran.code() == 1 && told.contains("of memory are needed") && told.contains("--no-verify"), "{told}");
    assert!(!shop.exists("out.jsonl"));
    let ran = shop.run("dedup in.jsonl -o out.jsonl --unit line --max-share 2");
    assert!(ran.code() == 2 && ran.stderr().contains("--max-share 2: it must be from 0 to 1"), "{}", ran.stderr());
}

#[test]
fn texts_of_several_fields_are_marked_and_not_cut() {
    let shop = Workshop::new();
    shop.write("in.csv", "id,a,b\n1,,the same words\n2,,the same words\n");
    let ran = shop.run("dedup in.csv --unit line --text-field a,b -o out.csv");
    let is_refused = |ran: &Ran, where_from: &str| {
        let told = ran.stderr();
        let words = [where_from, "\"a,b\"", "put back into several", "name one with --text-field"];
        assert!(
            ran.code() == 1 && words.iter().all(|word| told.contains(word)) && !told.contains("--annotate"),
            "{told}"
        );
    };
    is_refused(&ran, "in.csv: no column");
    assert!(!shop.exists("out.csv"));
    shop.ok("dedup in.csv --unit line --text-field a,b -o out.csv --annotate");
    shop.write(
        "items.csv",
        "id,question\n1,\"what is the capital of the old kingdom in the north of the land of ninety lakes\"\n",
    );
    let ran = shop.run("decontaminate in.csv --benchmark items.csv --text-field a,b -o clean.csv --mask");
    is_refused(&ran, "in.csv: no column");
    shop.write("in.jsonl", "{\"a\":\"the same words\",\"b\":\"\"}\n");
    is_refused(&shop.run("dedup in.jsonl --unit line --text-field a,b -o out.jsonl"), "in.jsonl:1: no field");
    parquet(&shop.path("in.parquet"), &["the same words".to_owned()]);
    is_refused(&shop.run("dedup in.parquet --unit line --text-field a,b -o out.parquet"), "in.parquet: no column");
}

#[test]
fn a_field_whose_own_name_has_a_comma_is_cut() {
    let shop = Workshop::new();
    shop.write("in.csv", "id,\"a,b\"\n1,the same words\n2,\"the same words\nand others\"\n");
    shop.ok("dedup in.csv --unit line --text-field a,b -o out.csv");
    assert_eq!(shop.text("out.csv"), "id,\"a,b\"\n1,the same words\n2,and others\n");
    shop.write("in.jsonl", "{\"a,b\":\"the same words\"}\n{\"a,b\":\"the same words\\nand others\"}\n");
    shop.ok("dedup in.jsonl --unit line --text-field a,b -o out.jsonl");
    assert_eq!(shop.text("out.jsonl"), "{\"a,b\":\"the same words\"}\n{\"a,b\":\"and others\"}\n");
    let item = "what is the capital of the old kingdom in the north of the land of ninety lakes";
    shop.write("items.csv", format!("id,question\n1,{item}\n"));
    shop.write("pages.csv", format!("id,\"a,b\"\n1,before it {item} and after it\n"));
    shop.ok("decontaminate pages.csv --benchmark items.csv --text-field a,b -o clean.csv --mask");
    let clean = shop.text("clean.csv");
    assert!(clean.contains("before it") && !clean.contains("ninety"), "{clean}");
}
