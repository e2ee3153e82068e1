//! `nearset plan`.

use serde_json::Value;

use crate::support::{Ran, Workshop};

/// A goal of every metric that can be kept.
const GOALS: [&str; 9] = [
    "--metric hamming --bits 256 --near 8 --far 80 --capacity 1e5",
    "--metric hamming --bits 256 --near 4 --far 60 --capacity 1M --max-fn 0",
    "--metric symbols --length 100 --near 3 --far 40 --capacity 10_000",
    "--metric jaccard --near 0.8 --far 0.6 --capacity 1e6",
    "--metric weighted-jaccard --shingle chars:7 --near 0.9 --far 0.6 --capacity 1e6",
    "--metric cosine --dimension 384 --near 0.95 --far 0.7 --capacity 1e6",
    "--metric cosine --dimension 384 --near 0.9 --far -0.2 --capacity 1e3 --minimise time",
    "--metric l1 --dimension 20 --near 1 --far 30 --capacity 1000 --background 60",
    "--metric l2 --dimension 50 --near 1 --far 4 --capacity 1e5 --background 10",
];

fn said(ran: &Ran) -> String {
    String::from_utf8(ran.stdout().to_vec()).unwrap()
}

fn json(workshop: &Workshop, goal: &str) -> Value {
    let stdout = said(&workshop.ok(&format!("plan {goal} --json")));
    serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{goal}: {error}\n{stdout}"))
}

#[test]
fn every_metric_is_planned_in_words_and_in_json() {
    let workshop = Workshop::new();
    for goal in GOALS {
        let plan = json(&workshop, goal);
        let number = |field: &str| plan[field].as_f64().unwrap_or_else(|| panic!("{goal}: {field} in {plan}"));
        assert!(number("false_negative") <= number("max_false_negative") * 1.000001, "{goal}");
        assert!(number("false_positive") <= number("max_false_positive") * 1.000001, "{goal}");
        for field in ["rows", "bands", "threshold", "bits_per_item", "bytes", "capacity"] {
            assert!(number(field) >= 1.0, "{goal}: {field}");
        }
        let total = number("bits_per_item") * number("capacity") / 8.0;
        assert!((number("bytes") / total - 1.0).abs() < 0.01, "{goal}");
        let curve = plan["curve"].as_array().unwrap();
        assert!(curve.len() > 20 && plan["grey_zone"]["from"].is_number() && plan["runners_up"].is_array(), "{goal}");
        // The curve in the metric's own unit says at near and far what the promises say.
        let at = |place: f64, which: &str| {
            let point = curve.iter().find(|point| point["at"].as_f64() == Some(place));
            point.unwrap_or_else(|| panic!("{goal}: {place} in {curve:?}"))[which].as_f64().unwrap()
        };
        assert!(at(number("near"), "full") >= 0.95, "{goal}");
        assert!(at(number("far"), "full") <= 0.01, "{goal}");

        let words = said(&workshop.ok(&format!("plan {goal}")));
        let structure = plan["structure"].as_str().unwrap();
        for expected in ["A query ", "found", "bits per item", structure, "grey zone", "near ", "far ", "│", "Next:"]
        {
            assert!(words.contains(expected), "{goal}: {expected:?} is missing in\n{words}");
        }
        assert!(!words.contains('\u{1b}'), "colours in\n{words}");
        let widest =
            words.lines().filter(|line| !line.starts_with("  nearset ")).map(|line| line.chars().count()).max();
        assert!(widest <= Some(100), "{goal}: {widest:?} columns\n{words}");
    }
}

#[test]
fn the_build_that_it_proposes_makes_the_filter_that_it_planned() {
    let workshop = Workshop::new();
    workshop.write("texts.txt", "one text\nanother text that differs\n");
    workshop.write("hashes.txt", format!("{}\n{}\n", "0".repeat(64), "f".repeat(64)));
    let text = |i: u32| (0..9).map(|j| format!("w{} ", 9 * i + j)).collect::<String>() + "\n";
    workshop.write("sample.txt", (0..2_000).map(text).collect::<String>());
    let worst = "--metric hamming --bits 256 --near 4 --far 128 --capacity 100 --worst-case --max-fp 0.1";
    let fast = "--metric hamming --bits 256 --near 2 --far 80 --capacity 1e4 --minimise time";
    let sampled = "--metric jaccard --near 0.8 --far 0.4 --capacity 1000 --sample sample.txt --seed 3";
    workshop.write("strings.txt", format!("{}\n{}\n", "acgt".repeat(25), "ttga".repeat(25)));
    let goals =
        [(GOALS[0], "hashes.txt"), (GOALS[1], "hashes.txt"), (GOALS[2], "strings.txt"), (GOALS[3], "texts.txt")];
    for (goal, items) in goals.into_iter().chain([(worst, "hashes.txt"), (fast, "hashes.txt"), (sampled, "texts.txt")])
    {
        let words = said(&workshop.ok(&format!("plan {goal}")));
        let build = words.lines().find_map(|line| line.trim().strip_prefix("nearset build")).unwrap();
        workshop.ok(&format!("build --force {}", build.replace("ITEMS", items)));
        let planned = json(&workshop, goal)["bytes"].as_f64().unwrap();
        let built = workshop.read("seen.nearset").len() as f64;
        // The file adds a header and a checksum.
        assert!(built >= planned && built <= 1.001 * planned + 4096.0, "{goal}: {built} bytes for {planned}");
    }
}

#[test]
fn where_no_filter_pays_the_choice_is_explained() {
    let workshop = Workshop::new();
    let goal = "--metric hamming --bits 256 --near 31 --far 90 --capacity 1e6";
    let words = said(&workshop.ok(&format!("plan {goal}")));
    for expected in ["No filter pays", "scan of the hashes", "256", "index of 12 blocks", "1,714", "How to choose"] {
        assert!(words.contains(expected), "{expected:?} is missing in\n{words}");
    }
    let plan = json(&workshop, goal);
    assert_eq!(plan["smaller_than_items"], false);
    assert!(plan["bits_per_item"].as_f64() > Some(256.0));
    let others: Vec<&str> =
        plan["without_a_filter"].as_array().unwrap().iter().filter_map(|other| other["structure"].as_str()).collect();
    assert_eq!(others, ["scan", "multi-index"]);
    // The goal it offers instead is kept by a filter smaller than the hashes.
    let near = words.split("at --near ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
    let offered = json(&workshop, &goal.replace("--near 31", &format!("--near {near}")));
    assert_eq!(offered["smaller_than_items"], true);
}

#[test]
fn impossible_goals_fail_and_name_possible_ones() {
    let workshop = Workshop::new();
    let goal = "--metric l2 --dimension 50 --near 1 --far 1.1 --capacity 100000";
    let ran = workshop.run(&format!("plan {goal} --json"));
    assert_eq!(ran.code(), 1);
    let answer: Value = serde_json::from_str(&said(&ran)).unwrap();
    assert!(answer["error"].as_str().unwrap().contains("no filter keeps both promises"));
    let far = answer["nearest"][0]["far"].as_f64().unwrap();
    json(&workshop, &goal.replace("--far 1.1", &format!("--far {far}")));

    let ran = workshop.run(&format!("plan {goal}"));
    assert_eq!(ran.code(), 1);
    assert!(said(&ran).contains("Possible instead") && said(&ran).contains("--far"), "{}", said(&ran));

    let never = workshop.run("plan --metric jaccard --near 0.8 --far 0.5 --capacity 10 --max-fn 0 --json");
    assert_eq!(never.code(), 1);
    let answer: Value = serde_json::from_str(&said(&never)).unwrap();
    assert!(answer["error"].as_str().unwrap().contains("allow some false negatives"));
}

#[test]
fn wrong_command_lines_name_the_cure() {
    let workshop = Workshop::new();
    let jaccard = "--metric jaccard --capacity 10";
    let hamming = "--metric hamming --bits 64 --capacity 10";
    let cases = [
        (format!("{jaccard} --near 0.6 --far 0.8"), "--near 0.6 must be larger than --far 0.8"),
        (format!("{hamming} --near 9 --far 9"), "--near 9 must be smaller than --far 9"),
        (format!("{jaccard} --near 1.5 --far 0.8"), "--near: 1.5 similarity lies outside of jaccard"),
        (format!("{hamming} --near 3 --far 65"), "from 0 to 64"),
        (format!("{hamming} --near 3 --far nan"), "NaN"),
        (format!("{hamming} --near x --far 20"), "'x' for '--near <NUMBER>'"),
        (format!("{hamming} --near 3 --far 20 --max-fp 0"), "--max-fp: the false-positive rate 0"),
        (format!("{hamming} --near 3 --far 20 --max-fn 1.5"), "--max-fn: the false-negative rate 1.5"),
        ("--metric hamming --near 3 --far 20 --capacity 10".into(), "give --bits N"),
        ("--metric l2 --near 3 --far 20 --capacity 10".into(), "give --dimension N"),
        ("--metric l2 --bits 64 --near 3 --far 20 --capacity 10".into(), "give --dimension"),
        (format!("{hamming} --near 3 --far 20 --shingle words:3"), "leave it out"),
        ("--metric edit --near 3 --far 20 --capacity 10".into(), "use hamming, symbols, jaccard"),
        ("--metric jaccard --near 0.8 --far 0.6 --capacity 0".into(), "at least 1 item"),
        ("--metric jaccard --near 0.8 --far 0.6 --capacity 1.5".into(), "1e6"),
        ("--metric jaccard --near 0.8 --far 0.6".into(), "--capacity"),
        (format!("{jaccard} --near 0.8 --far 0.6 --worst-case --background 0.1"), "cannot be used with"),
    ];
    for (goal, expected) in cases {
        let ran = workshop.run(&format!("plan {goal}"));
        assert_eq!(ran.code(), 2, "{goal}\n{}", ran.stderr());
        assert!(ran.stderr().contains(expected), "{goal}: {expected:?} is missing in\n{}", ran.stderr());
        assert_eq!(said(&ran), "", "{goal}");
    }
}

#[test]
fn the_background_is_measured_on_a_sample() {
    let workshop = Workshop::new();
    // All texts share half of their words, so unrelated ones are at a similarity of a third, not of zero.
    let common: String = (0..30).map(|i| format!("common{i} ")).collect();
    let text = |i: usize| (0..30).map(|j| format!("own{i}x{j} ")).collect::<String>();
    let lines: String = (0..120).map(|i| format!("{{\"body\":\"{common}{}\"}}\n", text(i))).collect();
    workshop.write("texts.jsonl", lines);
    let goal = "--metric jaccard --shingle words:1 --near 0.9 --far 0.5 --capacity 1000";
    let alone = json(&workshop, goal);
    let measured = json(&workshop, &format!("{goal} --sample texts.jsonl --field body"));
    assert_eq!(measured["sample"]["pairs"], 120 * 119 / 2);
    assert_eq!(measured["sample"]["records"], 120);
    let agreement = &measured["sample"]["band_agreement"];
    assert!(agreement["low"].as_f64() <= agreement["mean"].as_f64());
    assert!(agreement["mean"].as_f64() <= agreement["high"].as_f64());
    let median = measured["far_model"]["median_at"].as_f64().unwrap();
    assert!((median - 1.0 / 3.0).abs() < 1e-9, "{median}");
    assert!(measured["bits_per_item"].as_f64() > alone["bits_per_item"].as_f64(), "related items cost more");
    let words = said(&workshop.ok(&format!("plan {goal} --sample texts.jsonl --field body")));
    assert!(words.contains("7,140 pairs among 120 of 120 records"), "{words}");

    // Lengths come from the items.
    let hashes: String = (0..50u64).map(|i| format!("{:016x}\n", i.wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect();
    workshop.write("hashes.txt", hashes);
    let plan = json(&workshop, "--metric hamming --near 1 --far 25 --capacity 1000 --sample hashes.txt");
    assert_eq!(plan["length"], 64);

    let ran = workshop.run(&format!("plan {goal} --sample texts.jsonl"));
    assert_eq!(ran.code(), 1);
    assert!(ran.stderr().contains("texts.jsonl:1") && ran.stderr().contains("text"), "{}", ran.stderr());
    assert_eq!(workshop.run(&format!("plan {goal} --sample missing.jsonl")).code(), 1);
}

#[test]
fn the_picture_is_well_formed_and_labelled() {
    let workshop = Workshop::new();
    for goal in GOALS {
        workshop.ok(&format!("plan {goal} --plot curve.svg --force --json"));
        let svg = workshop.text("curve.svg");
        let opened = check_well_formed(&svg);
        assert!(opened > 30, "{goal}");
        for expected in
            ["near ", "far ", "grey zone", "promised: at least", "nearset with", "the same with one item", "100 %"]
        {
            assert!(svg.contains(expected), "{goal}: {expected:?} is missing");
        }
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{goal}");
        let peer = match goal {
            _ if goal.contains("jaccard --near 0.8") => "9 bands of 13 rows",
            _ if goal.contains("jaccard") => "datasketch",
            _ if goal.contains("hamming") && !goal.contains("--max-fn 0") => "Kirsch &amp; Mitzenmacher",
            _ => continue,
        };
        assert!(svg.contains(peer), "{goal}: {peer:?} is missing");
    }
    let twice = workshop.read("curve.svg");
    workshop.ok(&format!("plan {} --plot curve.svg --force", GOALS[8]));
    assert_eq!(workshop.read("curve.svg"), twice, "the same goal, the same bytes");
}

/// Counts elements, and fails where tags do not match or an ampersand starts no entity.
fn check_well_formed(svg: &str) -> usize {
    let (mut open, mut opened) = (Vec::new(), 0);
    for part in svg.split('<').skip(1) {
        let (tag, text) = part.split_once('>').unwrap_or_else(|| panic!("no end of <{part}"));
        let name = tag.trim_start_matches('/').split([' ', '/']).next().unwrap();
        assert_eq!(tag.matches('"').count() % 2, 0, "<{tag}>");
        match tag {
            _ if tag.starts_with('/') => assert_eq!(open.pop(), Some(name), "</{name}>"),
            _ if tag.ends_with('/') => opened += 1,
            _ => {
                opened += 1;
                open.push(name);
            }
        }
        for entity in text.split('&').skip(1) {
            assert!(["amp;", "lt;", "gt;", "quot;"].iter().any(|known| entity.starts_with(known)), "&{entity}");
        }
    }
    assert!(open.is_empty(), "{open:?} never end");
    opened
}

#[test]
fn examples_of_the_help_run() {
    let workshop = Workshop::new();
    let text = |i: u32| (0..20).map(|j| format!("word{} ", 20 * i + j)).collect::<String>();
    let lines: String = (0..2_500).map(|i| format!("{{\"text\":\"{}\"}}\n", text(i))).collect();
    workshop.write("corpus.jsonl", lines);
    let help = said(&workshop.ok("plan --help"));
    let examples: Vec<&str> = help.lines().filter_map(|line| line.trim().strip_prefix("nearset ")).collect();
    assert!(examples.len() >= 4, "{help}");
    for example in examples {
        workshop.ok(example);
    }
    assert!(workshop.exists("curve.svg"));
}
