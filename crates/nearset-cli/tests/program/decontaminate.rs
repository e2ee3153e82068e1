//! Benchmark items out of a corpus.

use serde_json::Value;

use crate::support::{Numbers, Workshop, parquet, parquet_rows, words};

/// Questions of 20 words, with answers, as a benchmark.
fn questions(count: usize) -> Vec<String> {
    let mut numbers = Numbers(18);
    (0..count).map(|_| words(&mut numbers, 20).join(" ")).collect()
}

/// Pages of 300 words; every third holds a question, capitalised and with one word changed, on a line of its own.
fn pages(count: usize, questions: &[String]) -> Vec<String> {
    let mut numbers = Numbers(3);
    (0..count)
        .map(|i| {
            let (before, after) = (words(&mut numbers, 150).join(" "), words(&mut numbers, 150).join(" "));
            if i % 3 != 0 {
                return format!("{before} {after}");
            }
            let mut leak: Vec<String> = questions[i % questions.len()].split(' ').map(str::to_uppercase).collect();
            leak[7] = "changed".to_owned();
            format!("{before}\\n{}\\n{after}", leak.join(", "))
        })
        .collect()
}

fn lines(texts: &[String]) -> String {
    texts.iter().enumerate().map(|(i, text)| format!("{{\"id\":\"page-{i}\",\"text\":\"{text}\"}}\n")).collect()
}

/// A benchmark of 30 questions, and 120 pages of which 40 hold one.
fn shop() -> (Workshop, String) {
    let shop = Workshop::new();
    let questions = questions(30);
    let items: String = questions
        .iter()
        .enumerate()
        .map(|(i, question)| format!("{{\"id\":\"q{i}\",\"question\":\"{question}\",\"answer\":\"{i}\"}}\n"))
        .collect();
    shop.write("bench.jsonl", items + "{\"id\":\"short\",\"question\":\"Which is true?\",\"answer\":\"Both\"}\n");
    let corpus = lines(&pages(120, &questions));
    shop.write("corpus.jsonl", &corpus);
    (shop, corpus)
}

fn removed(shop: &Workshop, name: &str) -> Vec<Value> {
    shop.text(name).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn records_that_hold_items_go_and_are_named() {
    let (shop, corpus) = shop();
    let look = "decontaminate corpus.jsonl --benchmark bench.jsonl --dry-run";
    assert_eq!(shop.run(look).code(), 10);
    let ran = shop.ok("decontaminate corpus.jsonl --benchmark bench.jsonl -o clean.jsonl --removed leaks.jsonl --json");
    let expected: String =
        corpus.split_inclusive('\n').enumerate().filter(|(i, _)| i % 3 != 0).map(|(_, line)| line).collect();
    assert_eq!(shop.text("clean.jsonl"), expected);
    let leaks = removed(&shop, "leaks.jsonl");
    assert_eq!(leaks.len(), 40);
    for (leak, i) in leaks.iter().zip((0..120).step_by(3)) {
        assert_eq!((leak["id"].as_str(), leak["line"].as_u64()), (Some(&*format!("page-{i}")), Some(i + 1)));
        let finding = &leak["findings"][0];
        assert_eq!(finding["item"].as_str(), Some(&*format!("q{}", i % 30)));
        assert_eq!((finding["benchmark"].as_str(), finding["field"].as_str()), (Some("bench.jsonl"), Some("question")));
        assert_eq!(finding["line"].as_u64(), Some(2));
        let page: Value = serde_json::from_str(corpus.lines().nth(i as usize).unwrap()).unwrap();
        let bytes = |end: usize| finding["bytes"][end].as_u64().unwrap() as usize;
        assert_eq!(finding["text"].as_str(), Some(&page["text"].as_str().unwrap()[bytes(0)..bytes(1)]));
        // Of 18 grams 3 have the changed word.
        let share = finding["share"].as_f64().unwrap();
        assert!((share - 15.0 / 18.0).abs() < 0.02 && finding["score"].as_f64().unwrap() > 2.0, "{finding}");
        assert!(finding["item_text"].as_str().unwrap().starts_with('w'));
    }
    let summary: Value = serde_json::from_slice(ran.stdout()).unwrap();
    assert_eq!((summary["contaminated"].as_u64(), summary["clean"].as_u64()), (Some(40), Some(80)));
    assert_eq!(summary["benchmarks"][0]["too_short"][0].as_str(), Some("short"));
    assert!(ran.stderr().contains("too short to decide") && ran.stderr().contains("promise"), "{}", ran.stderr());
    // Cleaned once, it is clean.
    shop.ok("decontaminate clean.jsonl --benchmark bench.jsonl --dry-run");
}

#[test]
fn threads_shards_and_saved_sets_show_in_nothing() {
    let (shop, corpus) = shop();
    shop.ok("decontaminate --benchmark bench.jsonl --save set.nearset");
    let findings = |name: &str| -> Vec<Value> {
        removed(&shop, name).into_iter().map(|mut leak| leak["findings"].take()).collect()
    };
    shop.ok("decontaminate corpus.jsonl --benchmark bench.jsonl -o clean.jsonl --removed whole.jsonl --threads 1");
    for threads in [1, 2, 7] {
        shop.ok(&format!(
            "decontaminate corpus.jsonl --against set.nearset -o again.jsonl --removed again-leaks.jsonl --threads {threads} --force"
        ));
        assert_eq!(shop.read("again.jsonl"), shop.read("clean.jsonl"));
        assert_eq!(shop.read("again-leaks.jsonl"), shop.read("whole.jsonl"));
    }
    for size in [1, 17, 50] {
        let all: Vec<&str> = corpus.split_inclusive('\n').collect();
        let (mut kept, mut found) = (String::new(), Vec::new());
        for shard in all.chunks(size) {
            shop.write("shard.jsonl", shard.concat());
            shop.ok("decontaminate shard.jsonl --against set.nearset -o part.jsonl --removed leaks.jsonl --force -q");
            kept += &shop.text("part.jsonl");
            found.extend(findings("leaks.jsonl"));
        }
        assert_eq!(kept, shop.text("clean.jsonl"), "shards of {size}");
        assert_eq!(found, findings("whole.jsonl"), "shards of {size}");
    }
}

#[test]
fn items_are_cut_out_of_every_format() {
    let (shop, corpus) = shop();
    let texts: Vec<String> = corpus
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["text"].as_str().unwrap().to_owned())
        .collect();
    let quoted = |separator: char| {
        let row = |(i, text): (usize, &String)| format!("{i}{separator}\"{text}\"{separator}x\n");
        format!("id{separator}text{separator}more\n{}", texts.iter().enumerate().map(row).collect::<String>())
    };
    shop.write("corpus.csv", quoted(','));
    shop.write("corpus.tsv", quoted('\t'));
    shop.write("corpus.txt", texts.iter().map(|text| text.replace('\n', " ") + "\n").collect::<String>());
    parquet(&shop.path("corpus.parquet"), &texts);
    for kind in ["jsonl", "csv", "tsv", "txt", "parquet"] {
        let ran = shop.ok(&format!(
            "decontaminate corpus.{kind} --benchmark bench.jsonl -o cut.{kind} --mask --removed leaks.jsonl --force --json"
        ));
        let summary: Value = serde_json::from_slice(ran.stdout()).unwrap();
        assert_eq!((summary["masked"].as_u64(), summary["contaminated"].as_u64()), (Some(40), Some(40)), "{kind}");
        assert_eq!(removed(&shop, "leaks.jsonl").len(), 40, "{kind}");
        shop.ok(&format!("decontaminate cut.{kind} --benchmark bench.jsonl --dry-run"));
    }
    // What holds nothing is copied as it is, and of the others only the item is gone.
    for (i, (before, after)) in corpus.lines().zip(shop.text("cut.jsonl").lines()).enumerate() {
        let text = |line| serde_json::from_str::<Value>(line).unwrap()["text"].as_str().unwrap().to_owned();
        if i % 3 == 0 {
            assert_eq!(text(after).split_whitespace().count(), 300, "{i}");
            assert!(text(before).starts_with(text(after).lines().next().unwrap()), "{i}");
        } else {
            assert_eq!(before, after);
        }
    }
    let rows = parquet_rows(&shop.path("cut.parquet"));
    assert_eq!(rows.len(), 120);
    assert!(rows[119].contains("n: 119"), "{}", rows[119]);
    // A record of nothing but an item is left out.
    shop.write("only.jsonl", format!("{{\"text\":\"{}\"}}\n{{\"text\":\"\"}}\n", questions(1)[0]));
    shop.ok("decontaminate only.jsonl --benchmark bench.jsonl -o rest.jsonl --mask");
    assert_eq!(shop.text("rest.jsonl"), "{\"text\":\"\"}\n");
}

#[test]
fn annotations_and_reports_say_what_was_found() {
    let (shop, _) = shop();
    shop.ok("decontaminate corpus.jsonl --benchmark bench.jsonl -o marked.jsonl --annotate --report leaks.html");
    let marked = removed(&shop, "marked.jsonl");
    assert_eq!(marked.len(), 120);
    assert_eq!(marked[3]["contaminated"], Value::Bool(true));
    assert_eq!(marked[3]["leak_of"].as_str(), Some("bench.jsonl: q3"));
    assert_eq!((&marked[1]["contaminated"], &marked[1]["leak_of"]), (&Value::Bool(false), &Value::Null));
    let page = shop.text("leaks.html");
    assert!(page.contains("Found of bench.jsonl") && page.contains("q3") && page.contains("too short to decide"));
    // Annotating again replaces what is there.
    shop.ok("decontaminate marked.jsonl --benchmark bench.jsonl -o again.jsonl --annotate");
    assert_eq!(shop.read("again.jsonl"), shop.read("marked.jsonl"));
}

#[test]
fn errors_name_the_cure() {
    let (shop, _) = shop();
    shop.write("odd.jsonl", "{\"riddle\":\"what has four legs in the morning and two at noon\"}\n");
    let ran = shop.run("decontaminate corpus.jsonl --benchmark odd.jsonl --dry-run");
    assert_eq!(ran.code(), 1);
    assert!(ran.stderr().contains("riddle") && ran.stderr().contains("--fields"), "{}", ran.stderr());
    shop.ok("decontaminate corpus.jsonl --benchmark odd.jsonl --fields riddle --dry-run");
    let ran = shop.run("decontaminate corpus.jsonl --benchmark bench.jsonl");
    assert_eq!(ran.code(), 2);
    assert!(ran.stderr().contains("--dry-run"), "{}", ran.stderr());
    let ran = shop.run("decontaminate corpus.jsonl --against bench.jsonl --dry-run");
    assert!(ran.stderr().contains("is no benchmark set"), "{}", ran.stderr());
    // What was read for the set is not written over.
    let ran = shop.run("decontaminate corpus.jsonl --benchmark bench.jsonl -o bench.jsonl --force");
    assert_eq!(ran.code(), 1, "{}", ran.stderr());
    shop.write("nested.jsonl", format!("{{\"page\":{{\"text\":\"{}\"}}}}\n", questions(1)[0]));
    let nested = "decontaminate nested.jsonl --benchmark bench.jsonl -o out.jsonl --text-field page.text";
    shop.ok(nested);
    shop.write("nested.jsonl", format!("{{\"page\":{{\"text\":\"and more: {}\"}}}}\n", questions(1)[0]));
    let ran = shop.run(&format!("{nested} --mask --force"));
    assert!(ran.stderr().contains("part of another"), "{}", ran.stderr());
}

#[test]
fn a_saved_set_replaces_nothing_that_is_needed() {
    let (shop, corpus) = shop();
    let run = |arguments: &str| shop.run(&format!("decontaminate corpus.jsonl --benchmark bench.jsonl {arguments}"));
    assert_eq!(run("--save corpus.jsonl -o clean.jsonl --force").code(), 1);
    assert_eq!(shop.text("corpus.jsonl"), corpus);
    assert_eq!(run("--save clean.jsonl -o clean.jsonl --force").code(), 1);
    shop.write("there.jsonl", "precious");
    assert_eq!(run("--save set.nearset -o there.jsonl").code(), 1);
    assert!(!shop.exists("set.nearset") && !shop.exists("clean.jsonl"), "nothing appears if something is refused");
    // An input that was taken for a benchmark is not called clean.
    let swallowed = shop.run("decontaminate --save set.nearset --benchmark bench.jsonl corpus.jsonl --dry-run");
    assert!(swallowed.code() == 2 && !shop.exists("set.nearset"), "{}", swallowed.stderr());
}

#[test]
fn a_second_column_of_the_name_stays_where_it_is() {
    let (shop, _) = shop();
    let leak = questions(30)[0].clone();
    shop.write("in.csv", format!("text,text,label\nclean words here,other,a\nbefore {leak} after,other,b\n"));
    shop.ok("decontaminate in.csv --benchmark bench.jsonl -o out.csv --mask");
    assert_eq!(shop.text("out.csv"), "text,text,label\nclean words here,other,a\nbefore  after,other,b\n");
}
