//! Every metric in every command that compares, beside the shortest program that answers the same.

use std::collections::{BTreeMap, BTreeSet};

use nearset::MetricName;
use nearset_jobs::join::TextMeasure;

use crate::support::{Numbers, Workshop};

/// An item as the tests know it, and how it is written in a record.
#[derive(Debug, Clone, PartialEq)]
enum Item {
    Hash(Vec<u8>),
    Vector(Vec<f32>),
    Text(String),
}

impl Item {
    fn json(&self) -> String {
        match self {
            Item::Hash(bytes) => format!("\"{}\"", bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>()),
            Item::Vector(vector) => format!("{vector:?}"),
            Item::Text(text) => format!("\"{text}\""),
        }
    }
}

/// A metric, by its definition.
struct Case {
    name: &'static str,
    field: &'static str,
    near: f64,
    /// `None` where no filter and no index has it.
    far: Option<f64>,
    options: &'static str,
    /// What `plan` has to be told about items that it does not see.
    length: &'static str,
    /// What of a pair its users state; `None` for what is near nothing.
    between: fn(&Item, &Item) -> Option<f64>,
    larger_is_nearer: bool,
    item: fn(&mut Numbers) -> Item,
    /// The same, changed a little.
    changed: fn(&mut Numbers, &Item) -> Item,
}

impl Case {
    fn is_near(&self, found: f64) -> bool {
        if self.larger_is_nearer { found >= self.near } else { found <= self.near }
    }

    fn is_nearer(&self, a: f64, b: f64) -> bool {
        if self.larger_is_nearer { a > b } else { a < b }
    }

    fn command(&self, command: &str) -> String {
        let Self { name, near, options, .. } = self;
        format!("{command} in.jsonl --metric {name} --near {near} {options} {SURE}")
    }
}

/// So little is missed that these few hundred records have none.
const SURE: &str = "--max-fn 1e-9 -q --force";

const CASES: &[Case] = &[
    Case {
        name: "hamming",
        field: "hash",
        near: 9.0,
        far: Some(40.0),
        options: "",
        length: "--bits 128",
        between: |a, b| match (a, b) {
            (Item::Hash(a), Item::Hash(b)) => Some(a.iter().zip(b).map(|(a, b)| f64::from((a ^ b).count_ones())).sum()),
            _ => None,
        },
        larger_is_nearer: false,
        item: |numbers| Item::Hash((0..16).map(|_| numbers.below(256) as u8).collect()),
        changed: |numbers, item| {
            let Item::Hash(mut bytes) = item.clone() else { return item.clone() };
            for _ in 0..numbers.below(8) {
                bytes[numbers.below(16) as usize] ^= 1 << numbers.below(8);
            }
            Item::Hash(bytes)
        },
    },
    Case {
        name: "symbols",
        field: "text",
        near: 4.0,
        far: Some(25.0),
        options: "",
        length: "--length 40",
        between: |a, b| match (a, b) {
            (Item::Text(a), Item::Text(b)) => Some(a.chars().zip(b.chars()).filter(|(a, b)| a != b).count() as f64),
            _ => None,
        },
        larger_is_nearer: false,
        item: |numbers| Item::Text((0..40).map(|_| ['a', 'c', 'g', 'é'][numbers.below(4) as usize]).collect()),
        changed: |numbers, item| {
            let Item::Text(text) = item else { return item.clone() };
            let mut symbols: Vec<char> = text.chars().collect();
            for _ in 0..numbers.below(5) {
                symbols[numbers.below(40) as usize] = 't';
            }
            Item::Text(symbols.into_iter().collect())
        },
    },
    Case {
        name: "cosine",
        field: "vector",
        near: 0.95,
        far: Some(0.4),
        options: "",
        length: "--dimension 24",
        between: |a, b| {
            let dot = |a: &Item, b: &Item| pairs_of(a, b).map(|(a, b)| a * b).sum::<f64>();
            Some(dot(a, b) / (dot(a, a) * dot(b, b)).sqrt())
        },
        larger_is_nearer: true,
        item: vector,
        changed: moved,
    },
    Case {
        name: "l2",
        field: "vector",
        near: 0.6,
        far: Some(4.0),
        options: "",
        length: "--dimension 24",
        between: |a, b| Some(pairs_of(a, b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt()),
        larger_is_nearer: false,
        item: vector,
        changed: moved,
    },
    Case {
        name: "l1",
        field: "vector",
        near: 2.0,
        far: Some(14.0),
        options: "",
        length: "--dimension 24",
        between: |a, b| Some(pairs_of(a, b).map(|(a, b)| (a - b).abs()).sum()),
        larger_is_nearer: false,
        item: vector,
        changed: moved,
    },
    Case {
        name: "jaccard",
        field: "text",
        near: 0.7,
        far: Some(0.2),
        options: "--shingle words:1",
        length: "",
        between: |a, b| {
            let (a, b) = (bag(a), bag(b));
            let both = a.keys().filter(|word| b.contains_key(*word)).count() as f64;
            Some(both / ((a.len() + b.len()) as f64 - both)).filter(|_| both > 0.0)
        },
        larger_is_nearer: true,
        item: text,
        changed: edited,
    },
    Case {
        name: "dice",
        field: "text",
        near: 0.8,
        far: Some(0.3),
        options: "--shingle words:1",
        length: "",
        between: |a, b| {
            let (a, b) = (bag(a), bag(b));
            let both = a.keys().filter(|word| b.contains_key(*word)).count() as f64;
            Some(2.0 * both / (a.len() + b.len()) as f64).filter(|_| both > 0.0)
        },
        larger_is_nearer: true,
        item: text,
        changed: edited,
    },
    Case {
        name: "weighted-jaccard",
        field: "text",
        near: 0.7,
        far: Some(0.2),
        options: "--shingle words:1",
        length: "",
        between: |a, b| {
            let (a, b) = (bag(a), bag(b));
            let words: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            let count = |bag: &BTreeMap<String, u32>, word: &String| bag.get(word).copied().unwrap_or(0);
            let least: u32 = words.iter().map(|word| count(&a, word).min(count(&b, word))).sum();
            let most: u32 = words.iter().map(|word| count(&a, word).max(count(&b, word))).sum();
            Some(f64::from(least) / f64::from(most)).filter(|_| least > 0)
        },
        larger_is_nearer: true,
        item: text,
        changed: edited,
    },
    Case {
        name: "edit",
        field: "text",
        near: 3.0,
        far: None,
        options: "",
        length: "",
        between: |a, b| edits(a, b).map(|(edits, _)| edits as f64),
        larger_is_nearer: false,
        item: name,
        changed: mistyped,
    },
    Case {
        name: "edit-similarity",
        field: "text",
        near: 0.8,
        far: None,
        options: "",
        length: "",
        between: |a, b| edits(a, b).map(|(edits, longer)| (longer - edits) as f64 / longer as f64),
        larger_is_nearer: true,
        item: name,
        changed: mistyped,
    },
];

/// Of a text, how much is in another; of a pair, the larger share. What is found by it is checked in `containment`.
const CONTAINMENT: Case = Case {
    name: "containment",
    field: "text",
    near: 0.9,
    far: None,
    options: "--shingle words:1",
    length: "",
    between: |a, b| {
        let (a, b) = (bag(a), bag(b));
        let both = a.keys().filter(|word| b.contains_key(*word)).count() as f64;
        Some(both / a.len().min(b.len()) as f64).filter(|_| both > 0.0)
    },
    larger_is_nearer: true,
    item: text,
    changed: edited,
};

fn pairs_of<'i>(a: &'i Item, b: &'i Item) -> impl Iterator<Item = (f64, f64)> {
    let components = |item: &'i Item| match item {
        Item::Vector(vector) => &vector[..],
        _ => &[],
    };
    components(a).iter().zip(components(b)).map(|(&a, &b)| (f64::from(a), f64::from(b)))
}

/// A number from -1 to 1.
fn component(numbers: &mut Numbers) -> f32 {
    numbers.below(20_001) as f32 / 10_000.0 - 1.0
}

fn vector(numbers: &mut Numbers) -> Item {
    Item::Vector((0..24).map(|_| component(numbers)).collect())
}

fn moved(numbers: &mut Numbers, item: &Item) -> Item {
    let Item::Vector(vector) = item else { return item.clone() };
    let by = numbers.below(4) as f32 / 10.0;
    Item::Vector(vector.iter().map(|&old| old + by * component(numbers)).collect())
}

fn text(numbers: &mut Numbers) -> Item {
    let length = if numbers.below(20) == 0 { 0 } else { 20 };
    Item::Text(Vec::from_iter((0..length).map(|_| format!("w{}", numbers.below(400)))).join(" "))
}

fn edited(numbers: &mut Numbers, item: &Item) -> Item {
    let Item::Text(text) = item else { return item.clone() };
    let mut words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    for _ in 0..numbers.below(5) {
        match numbers.below(3) {
            0 => words.push(format!("w{}", numbers.below(400))),
            1 if words.len() > 3 => drop(words.remove(numbers.below(3) as usize)),
            // Repeats count only where they are counted.
            _ => words.extend(words.first().cloned()),
        }
    }
    Item::Text(words.join(" "))
}

/// A text of a few or of many characters, or of none.
fn name(numbers: &mut Numbers) -> Item {
    let length = [0, 3, 6, 11, 18, 30, 70, 150][numbers.below(8) as usize];
    Item::Text((0..length).map(|_| ['a', 'b', 'E', ' ', 'é', '語', '🦀', 'z'][numbers.below(8) as usize]).collect())
}

fn mistyped(numbers: &mut Numbers, item: &Item) -> Item {
    let Item::Text(text) = item else { return item.clone() };
    let mut chars: Vec<char> = text.chars().collect();
    for _ in 0..numbers.below(4).min(chars.len() as u64 / 3) {
        let at = numbers.below(chars.len() as u64) as usize;
        match numbers.below(3) {
            0 => chars.insert(at, 'x'),
            1 => drop(chars.remove(at)),
            _ => chars[at] = 'ü',
        }
    }
    Item::Text(chars.into_iter().collect())
}

/// The edits between two texts, and the characters of the longer one; an empty text is near nothing.
fn edits(a: &Item, b: &Item) -> Option<(usize, usize)> {
    let (Item::Text(a), Item::Text(b)) = (a, b) else { return None };
    let [a, b] = [a, b].map(|text| text.chars().collect::<Vec<char>>());
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, a) in a.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, b) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    (!a.is_empty() && !b.is_empty()).then_some((row[b.len()], a.len().max(b.len())))
}

fn bag(item: &Item) -> BTreeMap<String, u32> {
    let mut bag = BTreeMap::new();
    if let Item::Text(text) = item {
        text.split_whitespace().for_each(|word| *bag.entry(word.to_owned()).or_default() += 1);
    }
    bag
}

/// Families that drift, and copies.
fn corpus(case: &Case, numbers: &mut Numbers, records: usize) -> Vec<Item> {
    let mut items: Vec<Item> = Vec::new();
    for i in 0..records {
        let recent = (i as u64).min(30);
        let item = match (numbers.below(3), i) {
            (0, _) | (_, 0) => (case.item)(numbers),
            (1, _) => {
                let of = numbers.below(i as u64) as usize;
                (case.changed)(numbers, &items[of])
            }
            _ => {
                let of = i - 1 - numbers.below(recent) as usize;
                (case.changed)(numbers, &items[of])
            }
        };
        items.push(item);
    }
    items
}

fn lines(case: &Case, items: &[Item], ranks: &[u64]) -> String {
    let line = |(i, item): (usize, &Item)| {
        format!("{{\"id\":\"r{i}\",\"rank\":{},\"{}\":{}}}\n", ranks[i], case.field, item.json())
    };
    items.iter().enumerate().map(line).collect()
}

/// By record, in the order given: the one that it is near and how near, or nothing.
fn reference(case: &Case, items: &[Item], order: &[usize], follow_chains: bool) -> Vec<Option<(usize, f64)>> {
    let mut entries: Vec<usize> = Vec::new();
    let mut answers = vec![None; items.len()];
    for &i in order {
        let mut nearest: Option<(usize, f64)> = None;
        for &other in &entries {
            let Some(found) = (case.between)(&items[i], &items[other]).filter(|&found| case.is_near(found)) else {
                continue;
            };
            if nearest.is_none_or(|(_, most)| case.is_nearer(found, most)) {
                nearest = Some((other, found));
            }
        }
        let is_copy = nearest.is_some_and(|(other, _)| items[other] == items[i]);
        if nearest.is_none() || follow_chains && !is_copy {
            entries.push(i);
        }
        answers[i] = nearest;
    }
    answers
}

fn measure(case: &Case) -> &'static str {
    if case.larger_is_nearer { "similarity" } else { "distance" }
}

fn assert_answers(case: &Case, shop: &Workshop, name: &str, expected: &[Option<(usize, f64)>]) {
    let text = shop.text(name);
    assert_eq!(text.lines().count(), expected.len(), "{}", case.name);
    for (i, (line, expected)) in text.lines().zip(expected).enumerate() {
        let record: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(record["near_duplicate"], expected.is_some(), "{}, record {i}: {expected:?}, {line}", case.name);
        if let Some((of, near)) = expected {
            let found = record[measure(case)].as_f64().unwrap();
            assert!((found - near).abs() < 1e-6, "{}, record {i}: {found}, {near}", case.name);
            assert_eq!(record["duplicate_of"], format!("r{of}"), "{}, record {i}", case.name);
        }
    }
}

#[test]
fn dedup_answers_as_the_reference_does_by_every_metric() {
    let shop = Workshop::new();
    let mut numbers = Numbers(7);
    for case in CASES {
        let items = corpus(case, &mut numbers, 400);
        let ranks: Vec<u64> = items.iter().map(|_| numbers.below(6)).collect();
        shop.write("in.jsonl", lines(case, &items, &ranks));
        let in_order: Vec<usize> = (0..items.len()).collect();
        let mut by_rank = in_order.clone();
        by_rank.sort_by_key(|&i| std::cmp::Reverse(ranks[i]));
        for (options, order, follow_chains) in
            [("", &in_order, false), ("--chain", &in_order, true), ("--keep max:rank", &by_rank, false)]
        {
            let expected = reference(case, &items, order, follow_chains);
            let near = expected.iter().flatten().count();
            assert!((80..380).contains(&near), "{}: {near}", case.name);
            for threads in [1, 2, 7] {
                let command = case.command("dedup");
                shop.ok(&format!("{command} {options} --threads {threads} --annotate -o out.jsonl"));
                assert_answers(case, &shop, "out.jsonl", &expected);
                shop.ok(&format!("{command} {options} --threads {threads} -o kept.jsonl --removed gone.jsonl"));
                assert_eq!(shop.text("kept.jsonl").lines().count(), items.len() - near);
                assert_eq!(shop.text("gone.jsonl").lines().count(), near);
            }
        }
    }
}

#[test]
fn pairs_and_clusters_are_those_of_the_reference_by_every_metric() {
    let shop = Workshop::new();
    let mut numbers = Numbers(8);
    for case in CASES {
        let items = corpus(case, &mut numbers, 300);
        shop.write("in.jsonl", lines(case, &items, &vec![0; items.len()]));
        let mut pairs: Vec<(usize, usize, f64)> = Vec::new();
        for b in 0..items.len() {
            for a in 0..b {
                pairs.extend(
                    (case.between)(&items[a], &items[b])
                        .filter(|&found| case.is_near(found))
                        .map(|found| (a, b, found)),
                );
            }
        }
        assert!(pairs.len() > 150, "{}: {} pairs", case.name, pairs.len());
        let mut first: Vec<usize> = (0..items.len()).collect();
        // Components: the least number spreads along pairs until nothing changes.
        while pairs.iter().any(|&(a, b, _)| first[a] != first[b]) {
            for &(a, b, _) in &pairs {
                let least = first[a].min(first[b]);
                (first[a], first[b]) = (least, least);
            }
        }
        let stars = reference(case, &items, &Vec::from_iter(0..items.len()), false);
        for threads in [1, 2, 7] {
            let command = case.command("pairs");
            shop.ok(&format!("{command} --threads {threads} --max-copies 100000 -o pairs.tsv"));
            let text = shop.text("pairs.tsv");
            let mut rows = text.lines();
            assert_eq!(rows.next(), Some(&*format!("a\tb\t{}", measure(case))));
            assert_eq!(text.lines().count(), pairs.len() + 1, "{}", case.name);
            for (row, (a, b, near)) in rows.zip(&pairs) {
                let cells: Vec<&str> = row.split('\t').collect();
                assert_eq!(cells[..2], [format!("r{a}"), format!("r{b}")], "{}", case.name);
                assert!((cells[2].parse::<f64>().unwrap() - near).abs() < 1e-6, "{}: {row}, {near}", case.name);
            }
            let command = case.command("cluster");
            for chain in ["", "--chain"] {
                shop.ok(&format!("{command} {chain} --threads {threads} -o clusters.tsv"));
                for (i, row) in shop.text("clusters.tsv").lines().skip(1).enumerate() {
                    let cells: Vec<&str> = row.split('\t').collect();
                    let of = if chain.is_empty() { stars[i].map_or(i, |(of, _)| of) } else { first[i] };
                    assert_eq!(cells[..2], [format!("r{i}"), format!("r{of}")], "{}{chain}", case.name);
                    if let Some(near) = (case.between)(&items[of], &items[i]) {
                        let found: f64 = cells[2].parse().unwrap();
                        assert!((found - near).abs() < 1e-6, "{}: {row}, {near}", case.name);
                    } else {
                        assert_eq!(cells[2], "", "{}: {row}", case.name);
                    }
                }
            }
        }
    }
}

/// By query, the stored items within a limit, at most so many: the nearest first, of equally near ones the earlier.
fn searched(case: &Case, (stored, queries): (&[Item], &[Item]), top: usize, is_limited: bool) -> String {
    let mut rows = format!("query\tfound\t{}\n", measure(case));
    for (query, item) in queries.iter().enumerate() {
        let near = |(number, other): (usize, &Item)| Some((number, (case.between)(item, other)?));
        let mut found: Vec<(usize, f64)> = stored.iter().enumerate().filter_map(near).collect();
        found.retain(|&(_, near)| !is_limited || case.is_near(near));
        let sign = if case.larger_is_nearer { -1.0 } else { 1.0 };
        found.sort_by(|a, b| (sign * a.1).total_cmp(&(sign * b.1)));
        for (number, near) in found.into_iter().take(top) {
            rows += &format!("r{query}\tr{number}\t{near}\n");
        }
    }
    rows
}

#[test]
fn texts_searched_by_edits_are_those_of_the_reference() {
    let shop = Workshop::new();
    let mut numbers = Numbers(10);
    for case in CASES.iter().filter(|case| case.name.starts_with("edit")) {
        let Case { name, near, .. } = case;
        let items = corpus(case, &mut numbers, 400);
        // Some lie on both sides, and one that is looked for is longer than all that are stored.
        let (stored, queries) = (&items[..300], &items[270..]);
        let mut queries = queries.to_vec();
        queries.push(Item::Text("abé語".repeat(60)));
        shop.write("known.jsonl", lines(case, stored, &vec![0; stored.len()]));
        shop.write("new.jsonl", lines(case, &queries, &vec![0; queries.len()]));
        let search = |options: &str| {
            let ran = shop.ok(&format!("search known.jsonl new.jsonl --metric {name} {options} -q"));
            String::from_utf8(ran.stdout().to_vec()).unwrap()
        };
        let within = searched(case, (stored, &queries), usize::MAX, true);
        assert!(within.lines().count() > 150, "{name}: {}", within.lines().count());
        for threads in [1, 2, 7] {
            assert_eq!(search(&format!("--within {near} --threads {threads}")), within, "{name}");
        }
        for top in [1, 3] {
            assert_eq!(search(&format!("--within {near} --top {top}")), searched(case, (stored, &queries), top, true));
            assert_eq!(search(&format!("--top {top}")), searched(case, (stored, &queries), top, false), "{name}");
        }
        assert_eq!(search(""), searched(case, (stored, &queries), 10, false), "{name}");
        assert_eq!(search("--top 0"), searched(case, (stored, &queries), 0, false), "{name}");
    }
}

#[test]
fn searches_by_edits_name_their_mistakes() {
    let shop = Workshop::new();
    shop.write("known.csv", "key,name\na,Warner\nb,Werner\nc,\n");
    shop.write("new.csv", "key,name\nx,Warmer\ny,\n");
    let ran =
        shop.ok("search known.csv new.csv --metric edit --within 1 --field name --id-field key --json -o rows.tsv");
    assert_eq!(shop.text("rows.tsv"), "query\tfound\tdistance\nx\ta\t1\n");
    assert!(
        ran.stderr().contains("3 records") && ran.stderr().contains("none within 1 edit is missed"),
        "{}",
        ran.stderr()
    );
    let summary: serde_json::Value = serde_json::from_slice(ran.stdout()).unwrap();
    assert_eq!((&summary["queries"], &summary["found"], &summary["skipped"]), (&2.into(), &1.into(), &0.into()));
    let found = shop.run("search known.csv new.csv --metric edit --within 1 --field name --exit-code -q -o /dev/null");
    assert_eq!(found.code(), 10);
    // The format is that of the pipe; the file tells its own.
    let piped = shop.ok_with_stdin(
        "search known.csv - --format jsonl --metric edit --within 1 --field name -q",
        b"{\"name\":\"Werner\"}\n",
    );
    assert_eq!(String::from_utf8_lossy(piped.stdout()).lines().count(), 3);
    // Of two files, it is that of both.
    shop.write("known.txt", "{\"name\":\"Warner\"}\n{\"name\":\"Werner\"}\n");
    shop.write("new.txt", "{\"name\":\"Werner\"}\n");
    for new in ["new.txt", "known.txt"] {
        let ran = shop.ok(&format!("search known.txt {new} --format jsonl --metric edit --within 1 --field name -q"));
        let rows = if new == "new.txt" { 3 } else { 5 };
        assert_eq!(String::from_utf8_lossy(ran.stdout()).lines().count(), rows, "{new}");
    }
    shop.write("bad.jsonl", "{\"name\":\"Warner\"}\n{\"name\":7}\n");
    let ran = shop.ok("search bad.jsonl new.csv --metric edit --within 1 --field name --on-error skip");
    assert!(ran.stderr().contains("bad.jsonl:2"), "{}", ran.stderr());
    for (arguments, code, why) in [
        (
            "search known.csv new.csv --metric edit --within 1.5 --field name",
            2,
            "error: --within 1.5: edits are counted in whole",
        ),
        (
            "search known.csv new.csv --metric edit-similarity --within 2 --field name",
            2,
            "error: --within 2: a similarity is above 0 and at most 1",
        ),
        ("search bad.jsonl new.csv --metric edit --within 1 --field name", 1, "bad.jsonl:2"),
        ("search known.csv new.csv --metric edit --within 1", 1, "\"text\""),
        ("search missing.csv new.csv --metric edit --within 1", 1, "missing.csv"),
        ("search known.csv new.csv --metric edit --field name -o known.csv --force", 1, "is also an input"),
        ("search known.csv new.csv --field name", 1, "of texts --metric edit needs none"),
        ("search - new.csv --metric edit --field name", 2, "come from a file"),
        ("search known.csv new.csv --metric hamming --within 3", 2, "`nearset build --index --metric hamming`"),
    ] {
        let ran = shop.run(&format!("{arguments} -q"));
        assert!(ran.code() == code && ran.stderr().contains(why), "{arguments}: {} {}", ran.code(), ran.stderr());
    }
}

/// The table of `docs/guide/pairs.md`: the commands, and what it says of each metric.
fn documented() -> (Vec<String>, Vec<(String, Vec<String>)>) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/pairs.md");
    let text = std::fs::read_to_string(path).unwrap();
    let (_, table) = text.split_once("<!-- table: metrics -->\n").unwrap();
    let (table, _) = table.split_once("<!-- end -->").unwrap();
    let cells =
        |row: &str| row.trim_matches(['|', ' ']).split(" | ").map(|cell| cell.replace('`', "")).collect::<Vec<_>>();
    let mut rows = table.lines().map(cells);
    let commands = rows.next().unwrap()[1..].to_vec();
    let rows = rows.skip(1).map(|mut row| (row.remove(0), row)).collect();
    (commands, rows)
}

/// A metric without its row, its case or its cells fails here. The columns of other front ends are checked by their tests.
#[test]
fn every_metric_does_in_every_command_what_the_documents_say() {
    let known = MetricName::ALL.map(MetricName::as_str).into_iter().chain(TextMeasure::ALL.map(TextMeasure::as_str));
    let known: Vec<&str> = known.collect();
    let cases: Vec<&Case> = CASES.iter().chain([&CONTAINMENT]).collect();
    let (commands, rows) = documented();
    assert_eq!(rows.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), known, "a row for every metric");
    assert_eq!(cases.len(), known.len());
    let shop = Workshop::new();
    let mut numbers = Numbers(11);
    for (name, cells) in rows {
        let case = cases.iter().find(|case| case.name == name).unwrap_or_else(|| panic!("{name} has no case"));
        let Case { near, options, length, .. } = case;
        let items = corpus(case, &mut numbers, 120);
        shop.write("in.jsonl", lines(case, &items, &vec![0; items.len()]));
        let is_exact = name == "hamming";
        let far = case.far.map_or(String::new(), |far| format!("--far {far}"));
        let wanted = format!("--metric {name} --near {near} {options}");
        let sampled = if matches!(&*name, "l1" | "l2") { "--worst-case --max-fp 0.1" } else { "--max-fp 0.1" };
        let filter = format!("build in.jsonl -o x.nearset {wanted} {far} {sampled} --capacity 200 -q --force");
        let index =
            format!("build in.jsonl --index -o i.nearset {wanted} {} -q --force", if is_exact { "" } else { &far });
        assert_eq!(cells.len(), commands.len(), "{name}");
        for (command, cell) in commands.iter().zip(&cells) {
            // What has to be there before, and how the command is typed.
            let (before, typed) = match &**command {
                "pairs" | "cluster" => (None, format!("{command} in.jsonl {wanted} -q")),
                "dedup" => (None, format!("dedup in.jsonl {wanted} -o out.jsonl -q --force")),
                "search" if case.far.is_none() => {
                    (None, format!("search in.jsonl in.jsonl --metric {name} --within {near} -q"))
                }
                "search" => (Some(&index), format!("search i.nearset in.jsonl --within {near} -q")),
                "plan" => {
                    let sample = "--capacity 200 --sample in.jsonl --max-fp 0.1";
                    (None, format!("plan {wanted} {far} {length} {sample}"))
                }
                "build, query" => (Some(&filter), "query x.nearset in.jsonl --keep near -o - -q".to_owned()),
                "build --index" => (None, format!("{index} --json")),
                "Python: filter, index" | "server" => {
                    assert!(cell == "yes" || cell == "no", "{name}, {command}: {cell}");
                    continue;
                }
                other => panic!("{other} is no command that is tested"),
            };
            match &**cell {
                "yes" => {
                    before.inspect(|before| drop(shop.ok(before)));
                    let ran = shop.run(&typed);
                    // 10 is what query finds.
                    assert!([0, 10].contains(&ran.code()), "{name}, {command}: {}", ran.stderr());
                    let found = match &**command {
                        "dedup" => items.len() - shop.text("out.jsonl").lines().count(),
                        "build --index" => 2,
                        _ => String::from_utf8_lossy(ran.stdout()).lines().count(),
                    };
                    assert!(found > 1, "{name}, {command} finds something");
                }
                "no" => {
                    let typed = before.unwrap_or(&typed);
                    let ran = shop.run(typed);
                    // With the reason, and what does it instead.
                    let said = ran.stderr();
                    assert_eq!(ran.code(), 2, "{name}, {command}: {said}");
                    assert!(said.contains(" as ") || said.contains("there is no"), "{name}, {command}: {said}");
                    assert!(said.contains("`nearset pairs`") || said.contains("`nearset pairs --metric"), "{said}");
                }
                other => panic!("{name}, {command}: {other:?} is neither yes nor no"),
            }
        }
    }
}

#[test]
fn hashes_are_read_however_they_are_written() {
    let shop = Workshop::new();
    // The same 64 bits in digits of either case, with 0x, and in Base64 of both alphabets; then one bit more.
    let same = ["d1c4b1a3f0e8877e", "0xD1C4B1A3F0E8877E", "0cSxo/Doh34=", "0cSxo_Doh34="];
    let lines = same.iter().chain(&["d1c4b1a3f0e8877f"]).map(|hash| format!("{hash}\n")).collect::<String>();
    shop.write("in.txt", &lines);
    shop.ok("pairs in.txt --metric hamming --near 3 -o pairs.tsv -q");
    let text = shop.text("pairs.tsv");
    let distances: Vec<&str> = text.lines().skip(1).map(|row| row.rsplit('\t').next().unwrap()).collect();
    assert_eq!(distances, ["0", "0", "0", "0", "0", "0", "1", "1", "1", "1"]);
    for (wrong, why) in [("0cSxo*Doh34=", "'S'"), ("not a hash", "'n'"), ("0cSxo/Doh35=", "'S'")] {
        shop.write("wrong.txt", format!("{lines}{wrong}\n"));
        let ran = shop.run("pairs wrong.txt --metric hamming --near 3 -q -o none.tsv");
        assert!(ran.code() == 1 && ran.stderr().contains("wrong.txt:6"), "{}", ran.stderr());
        assert!(ran.stderr().contains(why) && !shop.exists("none.tsv"), "{}", ran.stderr());
    }
}

#[test]
fn hashes_that_are_taken_for_texts_are_named() {
    let shop = Workshop::new();
    let hashes: Vec<String> = (0..40u64).map(|i| format!("{:016x}", i.wrapping_mul(0x9E37_79B9_7F4A_7C15))).collect();
    shop.write("texts.txt", hashes.iter().map(|hash| format!("{hash}\n")).collect::<String>());
    let said = shop.ok("dedup texts.txt -o out.txt").stderr();
    assert!(said.contains("look like hashes of 64 bits: --metric hamming --near N --field text"), "{said}");
    assert!(shop.ok("pairs texts.txt -o pairs.tsv").stderr().contains("--metric hamming"));
    shop.write("in.jsonl", hashes.iter().map(|hash| format!("{{\"hash\":\"{hash}\"}}\n")).collect::<String>());
    let ran = shop.run("dedup in.jsonl -o out.jsonl");
    assert!(ran.code() == 1 && ran.stderr().contains("\"hash\" holds hashes of 64 bits"), "{}", ran.stderr());
    shop.write("words.txt", "deadbeef\nfacade and decade\n");
    assert!(!shop.ok("dedup words.txt -o out2.txt").stderr().contains("note:"));
}

/// What people type first for a metric works in every command that has metrics.
#[test]
fn every_metric_is_planned_built_asked_and_searched() {
    let shop = Workshop::new();
    let mut numbers = Numbers(9);
    for case in CASES {
        let Case { name, near, far: Some(far), options, length, .. } = case else { continue };
        let items = corpus(case, &mut numbers, 200);
        shop.write("in.jsonl", lines(case, &items, &vec![0; items.len()]));
        let wanted = format!("--metric {name} --near {near} --far {far} {options}");
        // Where nothing is known about unrelated items, the sample tells.
        let said =
            shop.ok(&format!("plan {wanted} {length} --capacity 200 --sample in.jsonl --max-fp 0.1")).stdout().to_vec();
        assert!(!said.is_empty(), "{name}");
        let sampled = if matches!(*name, "l1" | "l2") { "--worst-case --max-fp 0.1" } else { "--max-fp 0.1" };
        shop.ok(&format!("build in.jsonl -o seen.nearset {wanted} --capacity 200 {sampled} -q --force"));
        let asked = shop.run("query seen.nearset in.jsonl --keep near -o near.jsonl -q --force");
        // An empty text is near nothing, itself included.
        let there = items.iter().filter(|item| **item != Item::Text(String::new())).count();
        assert_eq!((asked.code(), shop.text("near.jsonl").lines().count()), (10, there), "{name}: {}", asked.stderr());
        let exact = if *name == "hamming" { format!("--metric hamming --near {near}") } else { wanted };
        shop.ok(&format!("build in.jsonl --index -o index.nearset {exact} -q --force"));
        shop.ok(&format!("search index.nearset in.jsonl --within {near} -o found.tsv -q --force"));
        let found = shop.text("found.tsv");
        let itself = found.lines().skip(1).filter(|row| row.split('\t').next() == row.split('\t').nth(1)).count();
        assert_eq!(itself, there, "{name}");
        assert!(found.lines().count() > there + 50, "{name}");
    }
}
