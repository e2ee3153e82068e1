//! What a join answers, by the shortest program that does: every record is compared with every kept one before it. All engines equal it.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::{Numbers, Workshop, words};

/// A record that is to be decided on.
#[derive(Debug, Clone)]
struct Record {
    id: String,
    text: String,
    /// Which of [`RANKS`] stands in its field.
    rank: usize,
}

/// What stands in the field that says which records are wanted, as JSON: the most wanted first, and the least wanted of its kind.
const RANKS: [&str; 7] = ["12", "3", "-1.5", "\"b\"", "\"a\"", "\"\"", ""];

/// Where numbers end, and other texts.
const KINDS: [usize; 2] = [3, 6];

/// What becomes of a record: the one it is near and how near, or nothing if it stays.
type Answer = Option<(String, f64)>;

#[derive(Debug, Clone, Copy)]
enum Keep {
    First,
    Longest,
    Max,
    Min,
}

fn shingles(text: &str) -> BTreeSet<&str> {
    let starts: Vec<usize> = text.match_indices(' ').map(|(at, _)| at + 1).collect();
    let from = std::iter::once(0).chain(starts.iter().copied());
    let ends = starts.iter().map(|start| start - 1).chain([text.len()]).skip(4);
    let all: BTreeSet<&str> = from.zip(ends).map(|(from, to)| &text[from..to]).collect();
    // A text shorter than a shingle is one.
    if all.is_empty() && !text.is_empty() { [text].into() } else { all }
}

/// Pairs that somebody marked, by their ids, and whether as duplicates.
type Marks = BTreeMap<(String, String), bool>;

/// Decides on records, those of a library before all others. The answers are those of the records themselves, in the order of reading.
fn reference(library: &[Record], records: &[Record], near: f64, keep: Keep, follow_chains: bool) -> Vec<Answer> {
    decided(library, records, near, keep, follow_chains, &Marks::new())
}

fn decided(
    library: &[Record],
    records: &[Record],
    near: f64,
    keep: Keep,
    follow_chains: bool,
    marks: &Marks,
) -> Vec<Answer> {
    let mut order: Vec<usize> = (0..records.len()).collect();
    order.sort_by_key(|&i| match keep {
        Keep::First => (0, 0),
        Keep::Longest => (0, -(records[i].text.len() as i64)),
        // Numbers come before texts either way, and a record without the field last.
        Keep::Max => (0, records[i].rank as i64),
        Keep::Min => (KINDS.iter().filter(|end| records[i].rank >= **end).count(), -(records[i].rank as i64)),
    });
    let mut entries: Vec<(&Record, BTreeSet<&str>)> =
        library.iter().map(|record| (record, shingles(&record.text))).collect();
    let mut answers = vec![None; records.len()];
    for i in order {
        let set = shingles(&records[i].text);
        let mut nearest: Answer = None;
        let mut forced: Answer = None;
        for (other, theirs) in &entries {
            let (a, b) = (records[i].id.clone(), other.id.clone());
            let marked = marks.get(&(a.clone(), b.clone())).or(marks.get(&(b, a)));
            let shared = set.intersection(theirs).count() as f64;
            let similarity = shared / (set.len() as f64 + theirs.len() as f64 - shared);
            if marked == Some(&true) && forced.is_none() {
                forced = Some((other.id.clone(), similarity));
            }
            // Of equally near ones the earliest; an empty text is near nothing.
            if marked != Some(&false)
                && similarity >= near
                && nearest.as_ref().is_none_or(|(_, most)| similarity > *most)
            {
                nearest = Some((other.id.clone(), similarity));
            }
        }
        let nearest = forced.or(nearest);
        let is_copy = nearest.as_ref().is_some_and(|(_, similarity)| *similarity == 1.0);
        if nearest.is_none() || follow_chains && !is_copy {
            entries.push((&records[i], set));
        }
        answers[i] = nearest;
    }
    answers
}

/// Families that drift, so that they form chains; copies, so that there are ties; templates, alone and with families in them; short texts
/// and empty ones.
fn corpus(numbers: &mut Numbers, records: usize) -> Vec<Record> {
    let template = words(numbers, 40);
    let mut families: Vec<Vec<String>> = Vec::new();
    (0..records)
        .map(|i| {
            let text = match numbers.below(20) {
                0 => words(numbers, 1 + i % 6).join(" "),
                1 => String::new(),
                2..8 => {
                    let own = words(numbers, 60);
                    families.push(if i % 2 == 0 { own } else { [&template[..], &own[..12]].concat() });
                    families[families.len() - 1].join(" ")
                }
                _ if families.is_empty() => template.join(" "),
                _ => {
                    let family = numbers.below(families.len() as u64) as usize;
                    for _ in 0..numbers.below(3) {
                        let at = numbers.below(families[family].len() as u64) as usize;
                        families[family][at] = format!("w{}", numbers.below(10_000));
                    }
                    families[family].join(" ")
                }
            };
            Record { id: format!("r{i}"), text, rank: numbers.below(RANKS.len() as u64) as usize }
        })
        .collect()
}

fn lines(records: &[Record]) -> String {
    let line = |one: &Record| {
        let rank = RANKS[one.rank];
        let rank = if rank.is_empty() { String::new() } else { format!("\"rank\":{rank},") };
        format!("{{\"id\":\"{}\",{rank}\"text\":\"{}\"}}\n", one.id, one.text)
    };
    records.iter().map(line).collect()
}

/// What an annotated output says.
fn answers(shop: &Workshop, name: &str) -> Vec<Answer> {
    let answer = |line: &str| {
        let record: serde_json::Value = serde_json::from_str(line).unwrap();
        let of = record["duplicate_of"].as_str()?.to_owned();
        Some((of, record["similarity"].as_f64().unwrap()))
    };
    shop.text(name).lines().map(answer).collect()
}

fn assert_same(found: &[Answer], expected: &[Answer], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (i, (found, expected)) in found.iter().zip(expected).enumerate() {
        let is_same = match (found, expected) {
            // JSON is read to the last bit but one.
            (Some((a, x)), Some((b, y))) => a == b && (x - y).abs() < 1e-12,
            (None, None) => true,
            _ => false,
        };
        assert!(is_same, "{what}: record {i} is {found:?} and not {expected:?}");
    }
}

/// So little is missed that these few thousand records have none.
const SURE: &str = "--max-fn 1e-9 -q --force";

#[test]
fn every_engine_answers_as_the_reference_does() {
    let shop = Workshop::new();
    let mut numbers = Numbers(31);
    for near in [0.8, 0.6] {
        let records = corpus(&mut numbers, 700);
        let text = lines(&records);
        shop.write("in.jsonl", &text);
        shop.write("in.jsonl.zst", zstd::encode_all(text.as_bytes(), 3).unwrap());
        for (options, keep, follow_chains) in [
            ("", Keep::First, false),
            ("--chain", Keep::First, true),
            ("--keep longest", Keep::Longest, false),
            ("--keep max:rank", Keep::Max, false),
            ("--keep min:rank --chain", Keep::Min, true),
        ] {
            let expected = reference(&[], &records, near, keep, follow_chains);
            let removed = expected.iter().flatten().count();
            assert!(removed > 100 && removed < 600, "{options}: {removed} of {}", records.len());
            let mut engines =
                vec![("in.jsonl", 1, ""), ("in.jsonl", 5, "--exhaustive"), ("in.jsonl.zst", 2, "--memory 1G")];
            // More candidates are no more that is near.
            engines.push(("in.jsonl", 2, "--candidates 0.4 --exhaustive"));
            // Rounds of a few records, and of one batch.
            engines.extend([("in.jsonl", 1, "--memory 20000"), ("in.jsonl.zst", 4, "--memory 60000 --exhaustive")]);
            engines.push(("in.jsonl", 3, "--memory 400000"));
            for (input, threads, more) in engines {
                let what = format!("{input} --near {near} {options} {more} --threads {threads}");
                shop.ok(&format!("dedup {what} -o out.jsonl --annotate {SURE}"));
                assert_same(&answers(&shop, "out.jsonl"), &expected, &what);
            }
        }
        let ran = shop.ok_with_stdin(&format!("dedup - -o - --near {near} --annotate {SURE}"), text.as_bytes());
        shop.write("out.jsonl", ran.stdout());
        let expected = reference(&[], &records, near, Keep::First, false);
        assert_same(&answers(&shop, "out.jsonl"), &expected, "a pipe");
    }
}

#[test]
fn libraries_answer_as_the_reference_does() {
    let shop = Workshop::new();
    let mut numbers = Numbers(32);
    let records = corpus(&mut numbers, 900);
    for (options, memory) in [("", ""), ("--chain", ""), ("", "--memory 15000"), ("--chain", "--memory 15000")] {
        let _ = std::fs::remove_dir_all(shop.path("seen.library"));
        let expected = reference(&[], &records, 0.8, Keep::First, !options.is_empty());
        let mut found = Vec::new();
        for (i, batch) in records.chunks(130).enumerate() {
            shop.write("in.jsonl", lines(batch));
            let against = if i == 0 { "" } else { "--against seen.library" };
            // With a budget, every other batch keeps to it.
            let more = if i % 2 == 0 { memory } else { "" };
            shop.ok(&format!(
                "dedup in.jsonl -o out.jsonl --annotate {against} --save seen.library {options} {more} {SURE}"
            ));
            found.extend(answers(&shop, "out.jsonl"));
        }
        assert_same(&found, &expected, &format!("batches {options} {memory}"));
    }
    // A preference chooses among the records of a run; those of the library come before them.
    let (old, new) = records.split_at(300);
    shop.write("old.jsonl", lines(old));
    shop.write("new.jsonl", lines(new));
    shop.ok(&format!("dedup old.jsonl -o old.out.jsonl --save old.library --annotate {SURE}"));
    let stayed: Vec<Record> = old
        .iter()
        .zip(answers(&shop, "old.out.jsonl"))
        .filter(|(_, answer)| answer.is_none())
        .map(|(one, _)| one.clone())
        .collect();
    for (options, keep) in [
        ("", Keep::First),
        ("--memory 15000", Keep::First),
        ("--keep max:rank", Keep::Max),
        ("--keep max:rank --memory 15000", Keep::Max),
        ("--keep longest", Keep::Longest),
    ] {
        shop.ok(&format!("dedup new.jsonl -o out.jsonl --annotate --against old.library {options} {SURE}"));
        assert_same(&answers(&shop, "out.jsonl"), &reference(&stayed, new, 0.8, keep, false), options);
    }
}

#[test]
fn a_run_that_is_killed_and_resumed_answers_as_the_reference_does() {
    for (options, keep) in [
        ("", Keep::First),
        ("--memory 50000", Keep::First),
        ("--keep max:rank --memory 50000 --save seen.library", Keep::Max),
    ] {
        killed_and_resumed(options, keep);
    }
}

fn killed_and_resumed(options: &str, keep: Keep) {
    let shop = Workshop::new();
    let records = corpus(&mut Numbers(33), 1500);
    shop.write("in.jsonl", lines(&records));
    let expected = reference(&[], &records, 0.8, keep, false);
    let mut kills = 0;
    for delay in (4..).step_by(6) {
        let command = format!("dedup in.jsonl -o out.jsonl --annotate --max-fn 1e-9 -q --threads 1 --resume {options}");
        let mut child = shop.command(&command).env("NEARSET_CHECKPOINT_BYTES", "30000").spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(delay));
        child.kill().unwrap();
        child.wait().unwrap();
        if shop.exists("out.jsonl") && !shop.exists("out.jsonl.resume/state.json") {
            break;
        }
        kills += 1;
    }
    assert!(kills > 0);
    assert_same(&answers(&shop, "out.jsonl"), &expected, "resumed");
    if options.contains("--save") {
        // What was kept is in the library, and what went is near it.
        shop.ok("dedup in.jsonl -o again.jsonl -q --max-fn 1e-9 --against seen.library");
        assert!(
            records.iter().filter(|record| record.text.is_empty()).count() == shop.text("again.jsonl").lines().count()
        );
    }
}

#[test]
fn pairs_and_clusters_are_the_same_in_any_memory() {
    let shop = Workshop::new();
    let mut numbers = Numbers(35);
    let records = corpus(&mut numbers, 900);
    let text = lines(&records);
    shop.write("in.jsonl", &text);
    shop.write("in.jsonl.zst", zstd::encode_all(text.as_bytes(), 3).unwrap());
    let sets: Vec<_> = records.iter().map(|record| shingles(&record.text)).collect();
    let mut near = Vec::new();
    for (j, b) in sets.iter().enumerate() {
        for (i, a) in sets[..j].iter().enumerate() {
            let shared = a.intersection(b).count() as f64;
            let similarity = shared / (a.len() as f64 + b.len() as f64 - shared);
            if similarity >= 0.8 {
                near.push((records[i].id.clone(), records[j].id.clone(), similarity));
            }
        }
    }
    assert!(near.len() > 500, "{} pairs", near.len());
    for command in ["pairs", "cluster", "cluster --chain"] {
        shop.ok(&format!("{command} in.jsonl -o expected.tsv {SURE}"));
        let expected = shop.text("expected.tsv");
        if command == "pairs" {
            let row = |line: &str| {
                let mut cells = line.split('\t');
                let mut cell = || cells.next().unwrap().to_owned();
                (cell(), cell(), cell().parse::<f64>().unwrap())
            };
            let found: Vec<_> = expected.lines().skip(1).map(row).collect();
            assert_eq!(found.len(), near.len());
            for ((a, b, x), (c, d, y)) in found.iter().zip(&near) {
                assert!(a == c && b == d && (x - y).abs() < 1e-5, "{a} {b} {x} is not {c} {d} {y}");
            }
        }
        for (input, threads, memory) in [("in.jsonl", 1, 15_000), ("in.jsonl.zst", 3, 40_000), ("in.jsonl", 2, 150_000)]
        {
            let what = format!("{command} {input} --memory {memory} --threads {threads}");
            let ran = shop.ok(&format!("{what} -o out.tsv --max-fn 1e-9 --force"));
            assert!(ran.stderr().contains("rounds    what memory can't hold goes to"), "{}", ran.stderr());
            assert!(shop.text("out.tsv") == expected, "{what}");
        }
        if command != "cluster --chain" {
            let ran = shop.ok_with_stdin(&format!("{command} - --memory 40000 {SURE}"), text.as_bytes());
            assert!(ran.stdout() == expected.as_bytes(), "{command} from a pipe");
        }
    }
}

#[test]
fn marked_pairs_are_treated_as_said_by_every_engine() {
    let shop = Workshop::new();
    let mut numbers = Numbers(34);
    let records = corpus(&mut numbers, 700);
    shop.write("in.jsonl", lines(&records));
    shop.write("in.jsonl.zst", zstd::encode_all(lines(&records).as_bytes(), 3).unwrap());
    let plain = reference(&[], &records, 0.8, Keep::First, false);
    let mut marks = Marks::new();
    for (record, answer) in records.iter().zip(&plain).filter(|(record, _)| !record.text.is_empty()) {
        let other = &records[numbers.below(records.len() as u64) as usize];
        match answer {
            // Every third that would go is different from what it is near.
            Some((of, _)) if numbers.below(3) == 0 => {
                marks.insert((record.id.clone(), of.clone()), false);
            }
            // Some that have nothing in common are duplicates.
            None if numbers.below(4) == 0 && !other.text.is_empty() && other.id != record.id => {
                marks.insert((record.id.clone(), other.id.clone()), true);
            }
            _ => {}
        }
    }
    // Either order is the same pair.
    let mirrored: Vec<_> = marks.keys().filter(|(a, b)| marks.contains_key(&(b.clone(), a.clone()))).cloned().collect();
    marks.retain(|key, _| !mirrored.contains(key));
    let line =
        |((a, b), said): (&(String, String), &bool)| format!("{{\"a\":\"{a}\",\"b\":\"{b}\",\"duplicate\":{said}}}\n");
    let mut decisions: String = marks.iter().map(line).collect();
    decisions += "{\"a\":\"r0\",\"b\":\"of no record\",\"duplicate\":true}\n";
    shop.write("decisions.jsonl", decisions);
    for (options, keep, follow_chains) in [
        ("", Keep::First, false),
        ("--chain", Keep::First, true),
        ("--memory 20000", Keep::First, false),
        ("--exhaustive --candidates 0.5", Keep::First, false),
        ("--keep longest", Keep::Longest, false),
        ("--keep max:rank", Keep::Max, false),
        ("--keep max:rank --memory 20000", Keep::Max, false),
    ] {
        let expected = decided(&[], &records, 0.8, keep, follow_chains, &marks);
        let differ =
            expected.iter().zip(&reference(&[], &records, 0.8, keep, follow_chains)).filter(|(a, b)| a != b).count();
        assert!(differ > 100, "{options}: the marks change {differ} answers");
        for (input, threads) in [("in.jsonl", 1), ("in.jsonl.zst", 3)] {
            let what = format!("{input} {options} --threads {threads}");
            let said = shop
                .ok(&format!("dedup {what} -o out.jsonl --annotate --decisions decisions.jsonl --max-fn 1e-9 --force"));
            assert_same(&answers(&shop, "out.jsonl"), &expected, &what);
            let said = said.stderr();
            assert!(said.contains("pairs as decisions.jsonl says; 1 of its ids"), "{said}");
        }
    }
    shop.ok("dedup in.jsonl --dry-run -q --removed removed.jsonl --decisions decisions.jsonl");
    let marked = shop.text("removed.jsonl").lines().filter(|line| line.contains("marked as a duplicate")).count();
    assert!(marked > 20, "{marked} removals name their reason");
}

#[test]
fn a_marked_id_that_two_records_have_is_refused() {
    let shop = Workshop::new();
    let text = "one two three four five six seven";
    let line = |id: &str| format!("{{\"id\":\"{id}\",\"text\":\"{text}\"}}\n");
    shop.write("in.jsonl", line("a") + &line("b") + &line("a"));
    shop.write("decisions.jsonl", "{\"a\":\"a\",\"b\":\"b\",\"duplicate\":false}");
    for options in ["", "--keep longest", "--memory 20000"] {
        let ran = shop.run(&format!("dedup in.jsonl -o out.jsonl {options} --decisions decisions.jsonl"));
        let error = ran.stderr();
        assert_eq!(ran.code(), 1, "{error}");
        assert!(error.contains("the id \"a\" is marked, and two records have it"), "{error}");
        assert!(!shop.path("out.jsonl").exists());
    }
}
