//! What is inside what, beside the shortest program that answers the same.

use std::collections::BTreeSet;

use crate::support::{Numbers, Workshop, words};

/// Pages, parts of them, edited parts, and copies: long and short ones in any order.
fn corpus(numbers: &mut Numbers, records: usize) -> Vec<String> {
    let mut texts: Vec<Vec<String>> = Vec::new();
    for i in 0..records {
        let text = match (numbers.below(5), i) {
            (0, _) | (_, 0) => {
                let length = [0, 8, 40, 400][numbers.below(4) as usize];
                words(numbers, length)
            }
            _ => {
                let of = texts[numbers.below(i as u64) as usize].clone();
                let from = numbers.below(1 + of.len() as u64 / 2) as usize;
                let mut part = of[from..].to_vec();
                part.truncate(1 + numbers.below(1 + part.len() as u64) as usize);
                for _ in 0..numbers.below(4) {
                    let at = numbers.below(part.len() as u64 + 1) as usize;
                    part.insert(at, format!("w{}", numbers.below(10_000)));
                }
                // Sometimes a page grows around it.
                if numbers.below(3) == 0 { [words(numbers, 60), part].concat() } else { part }
            }
        };
        texts.push(text);
    }
    texts.into_iter().map(|text| text.join(" ")).collect()
}

fn shingles(text: &str) -> BTreeSet<String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let all: BTreeSet<String> = words.windows(3).map(|window| window.join(" ")).collect();
    // A text shorter than a shingle is one.
    if all.is_empty() && !text.is_empty() { [text.to_owned()].into() } else { all }
}

fn share(a: &BTreeSet<String>, b: &BTreeSet<String>) -> f64 {
    if a.is_empty() { 0.0 } else { a.intersection(b).count() as f64 / a.len() as f64 }
}

const OPTIONS: &str = "--metric containment --near 0.8 --shingle words:3 --max-fn 1e-9 -q --force";

fn lines(texts: &[String]) -> String {
    texts.iter().enumerate().map(|(i, text)| format!("{{\"id\":\"r{i}\",\"text\":\"{text}\"}}\n")).collect()
}

#[test]
fn dedup_and_cluster_keep_what_no_kept_text_contains() {
    let shop = Workshop::new();
    let mut numbers = Numbers(5);
    for round in 0..3 {
        let texts = corpus(&mut numbers, 500);
        shop.write("in.jsonl", lines(&texts));
        let sets: Vec<BTreeSet<String>> = texts.iter().map(|text| shingles(text)).collect();
        let mut order: Vec<usize> = (0..sets.len()).collect();
        order.sort_by_key(|&i| (std::cmp::Reverse(sets[i].len()), i));
        let (mut kept, mut expected): (Vec<usize>, Vec<Option<(usize, f64)>>) = (Vec::new(), vec![None; sets.len()]);
        for i in order {
            for &other in &kept {
                let found = share(&sets[i], &sets[other]);
                if found >= 0.8 && expected[i].is_none_or(|(_, most)| found > most) {
                    expected[i] = Some((other, found));
                }
            }
            if expected[i].is_none() {
                kept.push(i);
            }
        }
        let near = expected.iter().flatten().count();
        assert!((60..480).contains(&near), "{near}");
        for threads in [1, 2, 7] {
            shop.ok(&format!("dedup in.jsonl {OPTIONS} --threads {threads} --annotate -o out.jsonl"));
            shop.ok(&format!("cluster in.jsonl {OPTIONS} --threads {threads} -o clusters.tsv"));
            let (out, clusters) = (shop.text("out.jsonl"), shop.text("clusters.tsv"));
            for (i, (line, row)) in out.lines().zip(clusters.lines().skip(1)).enumerate() {
                let record: serde_json::Value = serde_json::from_str(line).unwrap();
                let cells: Vec<&str> = row.split('\t').collect();
                let of = expected[i].map_or(i, |(of, _)| of);
                assert_eq!(cells[..2], [format!("r{i}"), format!("r{of}")], "round {round}");
                assert_eq!(record["near_duplicate"], expected[i].is_some(), "round {round}, record {i}");
                let Some((of, found)) = expected[i] else { continue };
                assert_eq!(record["duplicate_of"], format!("r{of}"), "round {round}, record {i}");
                assert!((record["containment"].as_f64().unwrap() - found).abs() < 1e-12);
                assert!((cells[2].parse::<f64>().unwrap() - found).abs() < 1e-12);
            }
            shop.ok(&format!("dedup in.jsonl {OPTIONS} --threads {threads} -o kept.jsonl --removed gone.jsonl"));
            assert_eq!(shop.text("kept.jsonl").lines().count(), kept.len());
            assert_eq!(shop.text("gone.jsonl").lines().count(), near);
        }
    }
}

#[test]
fn pairs_state_how_much_of_each_is_in_the_other() {
    let shop = Workshop::new();
    let texts = corpus(&mut Numbers(6), 300);
    shop.write("in.jsonl", lines(&texts));
    let sets: Vec<BTreeSet<String>> = texts.iter().map(|text| shingles(text)).collect();
    let mut expected = vec!["a\tb\ta_in_b\tb_in_a".to_owned()];
    for b in 0..sets.len() {
        for a in 0..b {
            let shares = [share(&sets[a], &sets[b]), share(&sets[b], &sets[a])];
            if shares.iter().any(|&share| share >= 0.8) {
                expected.push(format!("r{a}\tr{b}\t{}\t{}", shares[0], shares[1]));
            }
        }
    }
    assert!(expected.len() > 80, "{}", expected.len());
    for threads in [1, 2, 7] {
        shop.ok(&format!("pairs in.jsonl {OPTIONS} --max-copies 1000 --threads {threads} -o pairs.tsv"));
        assert_eq!(Vec::from_iter(shop.text("pairs.tsv").lines()), expected);
    }
}

#[test]
fn a_short_text_does_not_survive_a_later_page_that_contains_it() {
    let shop = Workshop::new();
    let page = words(&mut Numbers(9), 2000);
    let question = page[900..940].join(" ");
    shop.write("in.jsonl", lines(&[question, "something else that nobody says anywhere".to_owned(), page.join(" ")]));
    shop.ok("dedup in.jsonl --metric containment --near 0.9 -o out.jsonl --removed gone.jsonl -q");
    assert_eq!(shop.text("out.jsonl").lines().count(), 2);
    let gone: serde_json::Value = serde_json::from_str(&shop.text("gone.jsonl")).unwrap();
    assert_eq!((&gone["id"], &gone["near"], &gone["containment"]), (&"r0".into(), &"r2".into(), &1.into()));
    let ran = shop.run("dedup in.jsonl --metric containment --keep max:id -o out.jsonl --force");
    assert!(ran.code() == 2 && ran.stderr().contains("most shingles stays"), "{}", ran.stderr());
}
