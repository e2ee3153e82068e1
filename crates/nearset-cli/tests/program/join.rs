//! Near pairs, clusters and verified removal: exact, whatever the threads, formats and families.

use std::collections::BTreeMap;

use nearset::item::SortedSet;
use nearset::{Seed, Shingler, Shingling};

use crate::support::{Numbers, Workshop, corpus, jsonl, kept, words};

fn set(text: &str) -> SortedSet {
    SortedSet::from(Shingler::new(Shingling::Words(5), Seed::default()).unwrap().shingle_set(text))
}

fn values(lines: &str) -> Vec<serde_json::Value> {
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn summary(ran: &crate::support::Ran) -> serde_json::Value {
    serde_json::from_slice(ran.stdout()).unwrap()
}

/// Rows of a table without its header.
fn rows(table: &str) -> Vec<Vec<&str>> {
    table.lines().skip(1).map(|line| line.split('\t').collect()).collect()
}

/// Texts of 100 words, each of which has so many words at its head replaced in the next.
fn chain(length: usize, replaced: usize) -> Vec<String> {
    let mut numbers = Numbers(9);
    let all = words(&mut numbers, 100 + length * replaced);
    (0..length).map(|i| all[i * replaced..i * replaced + 100].join(" ")).collect()
}

/// The example corpus: ids and sets.
fn licences(shop: &Workshop) -> Vec<(String, SortedSet)> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/licences.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    shop.write("licences.jsonl", &text);
    values(&text)
        .iter()
        .map(|one| (one["id"].as_str().unwrap().to_owned(), set(one["text"].as_str().unwrap())))
        .collect()
}

#[test]
fn pairs_are_those_of_comparing_all() {
    let shop = Workshop::new();
    let licences = licences(&shop);
    shop.ok("pairs licences.jsonl -o pairs.jsonl --near 0.7 --max-fn 0.000001");
    let mut compared = String::new();
    for (i, (b, later)) in licences.iter().enumerate() {
        for (a, earlier) in &licences[..i] {
            let similarity = later.jaccard(earlier).value();
            if similarity >= 0.7 {
                compared += &format!("{{\"a\":\"{a}\",\"b\":\"{b}\",\"similarity\":{similarity}}}\n");
            }
        }
    }
    assert!(compared.lines().count() > 100);
    assert!(shop.text("pairs.jsonl") == compared, "what is found is what comparing all finds");
    assert_eq!(shop.names(), ["licences.jsonl", "pairs.jsonl"], "nothing else is left behind");
}

#[test]
fn whatever_is_removed_is_near_a_record_that_is_kept() {
    let shop = Workshop::new();
    let licences: BTreeMap<String, SortedSet> = licences(&shop).into_iter().collect();
    let ran = shop.ok("dedup licences.jsonl -o out.jsonl --removed removed.jsonl --near 0.7 --json");
    let kept: Vec<String> =
        values(&shop.text("out.jsonl")).iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect();
    let lines = shop.text("removed.jsonl");
    let removed = values(&lines);
    let said = summary(&ran);
    assert_eq!((&said["kept"], &said["near"]), (&kept.len().into(), &removed.len().into()));
    assert_eq!(kept.len() + removed.len(), licences.len());
    for (one, line) in removed.iter().zip(lines.lines()) {
        let (id, near) = (one["id"].as_str().unwrap(), one["near"].as_str().unwrap());
        assert!(kept.iter().any(|kept| kept == near), "{near} stays");
        let similarity = licences[id].jaccard(&licences[near]).value();
        assert!(line.contains(&format!(",\"similarity\":{similarity},")), "{line}");
        assert!(similarity >= 0.7 && one["reason"] == "near a kept record");
    }
    // Of what is kept, hardly a pair is near: 2 % of those at exactly .7 may be missed, and there are few.
    let near = |a: &str, b: &str| licences[a].jaccard(&licences[b]).value() >= 0.7;
    let missed = (0..kept.len()).filter(|&i| kept[..i].iter().any(|earlier| near(earlier, &kept[i]))).count();
    assert!(missed * 100 <= removed.len(), "{missed} of {} missed", removed.len());
    // The same families as clusters: the kept records are their centres.
    shop.ok("cluster licences.jsonl -o clusters.tsv --near 0.7");
    let table = shop.text("clusters.tsv");
    assert!(table.starts_with("id\tcluster\tsimilarity\n"));
    let clusters = rows(&table);
    assert_eq!(clusters.len(), licences.len());
    let centres: Vec<&str> = clusters.iter().filter(|row| row[0] == row[1]).map(|row| row[0]).collect();
    assert_eq!(centres, kept);
    for row in clusters {
        let (one, centre) = (&licences[row[0]], &licences[row[1]]);
        let expected = if one.as_slice().is_empty() { String::new() } else { one.jaccard(centre).value().to_string() };
        assert_eq!(row[2], expected);
    }
}

#[test]
fn a_chain_does_not_delete_its_far_end() {
    let shop = Workshop::new();
    // Neighbours share 88 of 104 shingles; every other one 80 of 112.
    let texts = chain(5, 8);
    assert_eq!(set(&texts[0]).jaccard(&set(&texts[1])).value(), 88.0 / 104.0);
    shop.write("in.jsonl", jsonl(&texts));
    let ids = |name: &str| values(&shop.text(name)).iter().map(|one| one["id"].clone()).collect::<Vec<_>>();
    shop.ok("dedup in.jsonl -o out.jsonl --max-fn 0.001");
    assert_eq!(ids("out.jsonl"), [0, 2, 4]);
    shop.ok("dedup in.jsonl -o chain.jsonl --chain --max-fn 0.001 --removed removed.jsonl");
    assert_eq!(ids("chain.jsonl"), [0]);
    assert!(shop.text("removed.jsonl").contains("\"near\":\"3\",\"similarity\":0.8461538461538461"));
    let clusters = |arguments: &str| {
        shop.ok(&format!("cluster in.jsonl -o clusters.tsv --force --max-fn 0.001 {arguments}"));
        let table = shop.text("clusters.tsv");
        rows(&table).iter().map(|row| row[1].parse().unwrap()).collect::<Vec<u32>>()
    };
    // The fourth is as near to the third as to the fifth, and joins the one before it.
    assert_eq!(clusters(""), [0, 0, 2, 2, 4]);
    assert_eq!(clusters("--chain"), [0; 5]);
    let table = shop.text("clusters.tsv");
    assert_eq!(rows(&table)[4][2], (64.0 / 128.0).to_string(), "the similarity with the chain's other end");
}

#[test]
fn a_hundred_thousand_copies_cost_a_comparison_each() {
    let shop = Workshop::new();
    let text = words(&mut Numbers(4), 60).join(" ");
    let lines: String = (0..100_000).map(|i| format!("{{\"id\":{i},\"text\":\"{text}\"}}\n")).collect();
    shop.write("in.jsonl", lines);
    let said = summary(&shop.ok("dedup in.jsonl -o out.jsonl --json -q"));
    assert_eq!((&said["kept"], &said["compared"]), (&1.into(), &99_999.into()));
    let alarm = &said["alarms"][0];
    assert_eq!((&alarm["records"], &alarm["id"], &alarm["cause"]), (&100_000.into(), &"0".into(), &"cluster".into()));
    assert!(text.starts_with(alarm["excerpt"].as_str().unwrap().trim_end_matches('…')));
    let said = summary(&shop.ok("pairs in.jsonl -o pairs.tsv.zst --max-copies 3 --json -q"));
    assert_eq!((&said["compared"], &said["copies"]), (&99_999.into(), &99_999.into()));
    let (pairs, left_out) = (said["pairs"].as_u64().unwrap(), said["pairs_left_out"].as_u64().unwrap());
    assert_eq!((pairs, pairs + left_out), (4 * 99_999 - 6, 100_000 * 99_999 / 2));
    let ran = shop.ok("cluster in.jsonl -o clusters.tsv");
    assert!(ran.stderr().contains("the largest has 100,000") && ran.stderr().contains("ALARM     100,000 records"));
}

/// A file of the shared data, unpacked; `None` with a message where it can't be had.
fn unpacked(name: &str) -> Option<Vec<u8>> {
    let path = format!("{}/../../../shared/data/scancode-licenses/{name}", env!("CARGO_MANIFEST_DIR"));
    let output = std::process::Command::new("xz").args(["-dc", &path]).output().ok();
    let unpacked = output.filter(|output| output.status.success()).map(|output| output.stdout);
    if unpacked.is_none() {
        eprintln!("skipped: `xz -dc {path}` gives nothing here");
    }
    unpacked
}

#[test]
fn the_near_pairs_of_all_licences_are_found() {
    let (Some(licences), Some(truth)) = (unpacked("licenses.jsonl.xz"), unpacked("gt_pairs_ge50words_w3_J0.5.tsv.xz"))
    else {
        return;
    };
    let shop = Workshop::new();
    shop.write("licences.jsonl", licences);
    let ran = shop.ok("pairs licences.jsonl -o pairs.tsv --shingle words:3 --near 0.8 --json -q");
    let table = shop.text("pairs.tsv");
    let found: std::collections::HashSet<[&str; 2]> =
        rows(&table).iter().map(|row| [row[0].min(row[1]), row[0].max(row[1])]).collect();
    let truth = String::from_utf8(truth).unwrap();
    let near = truth.lines().filter_map(|line| {
        let [a, b, similarity] = line.split('\t').collect::<Vec<_>>().try_into().ok()?;
        (similarity.parse::<f64>().ok()? >= 0.8).then_some([a.min(b), a.max(b)])
    });
    let (hits, all) = near.fold((0u32, 0u32), |(hits, all), pair| (hits + u32::from(found.contains(&pair)), all + 1));
    assert_eq!(all, 175_333);
    // Bands are planned to miss 2 % of what lies exactly at .8; most lies above.
    assert!(f64::from(hits) >= 0.98 * f64::from(all), "{hits} of {all}");
    // Comparing all would take 690 million.
    assert!(summary(&ran)["compared"].as_u64().unwrap() < 3_000_000);
}

#[test]
fn short_empty_and_unspaced_texts() {
    let shop = Workshop::new();
    let chinese =
        "我们认为这些真理是不言而喻的人人生而平等造物者赋予他们若干不可剥夺的权利其中包括生命权自由权和追求幸福的权利";
    let arabic =
        "يولد جميع الناس أحرارا متساوين في الكرامة والحقوق وقد وهبوا عقلا وضميرا وعليهم أن يعامل بعضهم بعضا بروح الإخاء";
    let texts = ["", "", "cat", "dog", "CAT!", chinese, arabic, chinese, arabic, "猫", "犬", "猫", "..."];
    let lines: String = texts.iter().map(|text| format!("{{\"text\":\"{text}\"}}\n")).collect();
    shop.write("in.jsonl", &lines);
    shop.ok("dedup in.jsonl -o out.jsonl");
    let expected: String = ["", "", "cat", "dog", chinese, arabic, "猫", "犬", "..."]
        .iter()
        .map(|text| format!("{{\"text\":\"{text}\"}}\n"))
        .collect();
    assert_eq!(shop.text("out.jsonl"), expected);
    shop.ok("pairs in.jsonl -o pairs.tsv");
    let table = shop.text("pairs.tsv");
    let pairs: Vec<_> = rows(&table).iter().map(|row| (row[0].to_owned(), row[1].to_owned())).collect();
    let pair = |a, b| (format!("in.jsonl:{a}"), format!("in.jsonl:{b}"));
    assert_eq!(pairs, [pair(3, 5), pair(6, 8), pair(7, 9), pair(10, 12)]);
    let table = shop.ok("cluster in.jsonl").stdout().to_vec();
    let table = String::from_utf8(table).unwrap();
    assert_eq!(rows(&table)[0], ["in.jsonl:1", "in.jsonl:1", ""], "an empty text is like nothing, not even itself");
    shop.ok("cluster in.jsonl --chain -o chained.tsv");
    assert!(shop.text("chained.tsv") == table);
}

#[test]
fn threads_splits_and_packing_do_not_show() {
    let shop = Workshop::new();
    let (texts, _) = corpus(2000);
    let lines = jsonl(&texts);
    shop.write("in.jsonl", &lines);
    shop.write("in.jsonl.zst", zstd::encode_all(lines.as_bytes(), 1).unwrap());
    let all: Vec<&str> = lines.split_inclusive('\n').collect();
    for (i, piece) in all.chunks(271).enumerate() {
        shop.write(&format!("pieces/{i:02}.jsonl"), piece.concat());
    }
    let outputs = |input: &str, threads: usize| -> Vec<Vec<u8>> {
        let all = format!("{input} --threads {threads} --force -q");
        shop.ok(&format!("pairs {all} -o pairs.tsv"));
        shop.ok(&format!("cluster {all} -o stars.csv"));
        shop.ok(&format!("cluster {all} -o chains.jsonl --chain"));
        shop.ok(&format!("dedup {all} -o first.jsonl --annotate"));
        shop.ok(&format!("dedup {all} -o longest.jsonl --keep longest --annotate"));
        ["pairs.tsv", "stars.csv", "chains.jsonl", "first.jsonl", "longest.jsonl"].map(|name| shop.read(name)).into()
    };
    let expected = outputs("in.jsonl", 1);
    assert!(expected.iter().all(|output| output.len() > 1000));
    for (input, threads) in [("in.jsonl", 2), ("in.jsonl", 16), ("pieces", 2), ("in.jsonl.zst", 1), ("in.jsonl.zst", 2)]
    {
        assert!(outputs(input, threads) == expected, "{input} by {threads} threads");
    }
    // A pipe is copied as it goes by.
    let piped = shop.ok_with_stdin("pairs - -q", lines.as_bytes());
    assert!(piped.stdout() == expected[0]);
}

#[test]
fn the_record_that_is_wanted_most_is_kept() {
    let shop = Workshop::new();
    let base = words(&mut Numbers(5), 120);
    let other = words(&mut Numbers(6), 120).join(" ");
    // The second is longer by three words, the third is newer, the fourth has no date and no score.
    let longer = [&base[..], &["and".to_owned(), "so".to_owned(), "on".to_owned()]].concat().join(" ");
    let base = base.join(" ");
    let lines = format!(
        "{{\"id\":\"a\",\"score\":9,\"date\":\"2024-01-31\",\"text\":\"{base}\"}}\n\
         {{\"id\":\"b\",\"score\":\"10\",\"date\":\"2024-01-30\",\"text\":\"{longer}\"}}\n\
         {{\"id\":\"c\",\"score\":-1,\"date\":\"2024-02-01\",\"text\":\"{base}\"}}\n\
         {{\"id\":\"d\",\"text\":\"{base}\"}}\n\
         {{\"id\":\"e\",\"score\":0,\"date\":\"2020-01-01\",\"text\":\"{other}\"}}\n"
    );
    shop.write("in.jsonl", lines);
    for (keep, kept) in
        [("first", "a"), ("longest", "b"), ("max:score", "b"), ("min:score", "c"), ("max:date", "c"), ("min:date", "b")]
    {
        shop.ok(&format!("dedup in.jsonl -o out.jsonl --keep {keep} --removed removed.jsonl --force"));
        let ids: Vec<_> = values(&shop.text("out.jsonl")).iter().map(|one| one["id"].clone()).collect();
        assert_eq!(ids, [kept, "e"], "--keep {keep}");
        let removed = values(&shop.text("removed.jsonl"));
        assert_eq!(removed.len(), 3);
        assert!(removed.iter().all(|one| one["near"] == kept), "--keep {keep}");
    }
}

#[test]
fn annotating_names_what_is_near() {
    let shop = Workshop::new();
    let (texts, near) = corpus(90);
    shop.write("in.jsonl", jsonl(&texts));
    shop.ok("dedup in.jsonl -o out.jsonl --chain --annotate");
    let out = values(&shop.text("out.jsonl"));
    assert_eq!(out.len(), 90);
    for (record, near) in out.iter().zip(near) {
        assert_eq!(record["near_duplicate"], near);
        assert_eq!(record["duplicate_of"].is_string(), near);
        assert_eq!(record["similarity"].as_f64().is_some_and(|similarity| similarity >= 0.8), near);
    }
}

#[test]
fn what_cannot_be_is_refused_with_a_cure() {
    let shop = Workshop::new();
    let (texts, _) = corpus(30);
    shop.write("in.jsonl", jsonl(&texts));
    shop.write("bad.jsonl", format!("{}{{\"id\":1}}\n", jsonl(&texts)));
    let refused = |arguments: &str, code: i32, part: &str| {
        let ran = shop.run(arguments);
        assert_eq!(ran.code(), code, "nearset {arguments}\n{}", ran.stderr());
        assert!(ran.stderr().contains(part), "nearset {arguments}\n{}", ran.stderr());
    };
    refused("dedup in.jsonl -o out.jsonl --save seen.nearset", 2, "only --no-verify builds");
    refused("dedup in.jsonl -o out.jsonl --capacity 100", 2, "--no-verify");
    refused("dedup in.jsonl -o out.jsonl --keep longest --no-verify", 2, "--no-verify");
    refused("dedup in.jsonl -o out.jsonl --keep timestamp", 2, "max:FIELD");
    refused("dedup in.jsonl -o out.jsonl --keep max:timestamp", 1, "no record has the field \"timestamp\"");
    refused("dedup in.jsonl -o out.jsonl --removed out.jsonl", 1, "named twice");
    refused("dedup - -o out.jsonl --keep longest", 1, "save it to a file first");
    refused("cluster - --chain", 1, "save it to a file first");
    refused("pairs in.jsonl -o pairs.parquet", 1, ".tsv, .csv or .jsonl");
    refused("pairs in.jsonl -o in.jsonl --force", 1, "is also an input");
    refused("pairs in.jsonl --near 1.5", 2, "between 0 and 1");
    refused("pairs in.jsonl --threads 0", 2, "at least one thread");
    refused("pairs absent.jsonl", 1, "check the path");
    for command in ["pairs bad.jsonl -o out.tsv", "cluster bad.jsonl -o out.tsv", "dedup bad.jsonl -o out.jsonl"] {
        refused(command, 1, "bad.jsonl:31: no field \"text\"");
        assert_eq!(shop.names(), ["bad.jsonl", "in.jsonl"], "nothing is left of {command}");
    }
    let ran = shop.ok("dedup bad.jsonl -o out.jsonl --on-error skip --removed removed.jsonl");
    assert!(ran.stderr().contains("skipped   1 that could not be read"), "{}", ran.stderr());
    assert!(shop.text("removed.jsonl").contains("\"reason\":\"unreadable: no field"));
    refused("pairs in.jsonl -o out.jsonl", 1, "exists already");
}

#[test]
fn help_shows_examples() {
    let shop = Workshop::new();
    for command in ["pairs", "cluster"] {
        let help = shop.ok(&format!("{command} --help")).stdout().to_vec();
        let help = String::from_utf8(help).unwrap();
        assert!(help.contains("Examples:") && help.contains("--max-fn"), "{help}");
    }
}

/// Pages of one template, each with a text of its own, behind as many records that have nothing in common; the first pages have copies.
fn templated(numbers: &mut Numbers, count: usize) -> Vec<String> {
    let frame = words(numbers, 200).join(" ");
    let mut texts: Vec<String> = (0..count).map(|_| words(numbers, 120).join(" ")).collect();
    let pages: Vec<String> = (0..count).map(|_| format!("{frame} {}", words(numbers, 45).join(" "))).collect();
    let copies = pages[..20].iter().map(|page| format!("{page} indeed")).collect::<Vec<_>>();
    texts.extend(pages);
    texts.extend(copies);
    texts
}

#[test]
fn pages_of_one_template_stay_and_their_copies_go_wherever_they_stand() {
    let shop = Workshop::new();
    let texts = templated(&mut Numbers(21), 3000);
    let lines = jsonl(&texts);
    shop.write("pages.jsonl", &lines);
    let ran = shop.ok("dedup pages.jsonl -o out.jsonl --json");
    assert_eq!((summary(&ran)["near"].as_u64(), summary(&ran)["cut_short"].as_u64()), (Some(20), Some(0)));
    // The pages come first in a pipe, and what is read ahead of it is not lost.
    let pages: Vec<&str> = lines.lines().skip(3000).collect();
    let piped = shop.ok_with_stdin("dedup - -o piped.jsonl --json", pages.join("\n").as_bytes());
    assert_eq!(summary(&piped)["near"].as_u64(), Some(20));
    assert_eq!(shop.text("piped.jsonl").lines().count(), 3000);
}

#[test]
fn texts_without_words_are_compared_by_their_bytes() {
    let shop = Workshop::new();
    let texts = ["🎉🎉", "---", "🎉🎉", "", "", "🎉"].map(str::to_owned);
    shop.write("signs.jsonl", jsonl(&texts));
    let ran = shop.ok("dedup signs.jsonl -o out.jsonl --json");
    assert_eq!((summary(&ran)["kept"].as_u64(), summary(&ran)["near"].as_u64()), (Some(5), Some(1)));
}

#[test]
fn copies_are_counted_and_removed_texts_are_written_where_asked_for() {
    let shop = Workshop::new();
    let (texts, near) = corpus(90);
    shop.write("in.jsonl", jsonl(&texts));
    for keep in ["first", "longest"] {
        let command = format!(
            "dedup in.jsonl -o out.jsonl --removed r.jsonl --removed-text --copies c.jsonl --keep {keep} --force"
        );
        shop.ok(&command);
        let removed = values(&shop.text("r.jsonl"));
        assert_eq!(removed.len(), near.iter().filter(|near| **near).count());
        let mut counts = BTreeMap::<String, u64>::new();
        for one in &removed {
            assert_eq!(one["text"], texts[one["id"].as_str().unwrap().parse::<usize>().unwrap()]);
            *counts.entry(one["near"].as_str().unwrap().to_owned()).or_default() += 1;
        }
        let copies = values(&shop.text("c.jsonl"));
        let told = copies.iter().map(|one| (one["id"].as_str().unwrap().to_owned(), one["copies"].as_u64().unwrap()));
        assert_eq!(told.collect::<BTreeMap<_, _>>(), counts, "{keep}");
    }
}

#[test]
fn texts_that_are_too_short_to_be_seen_are_told_with_what_would_see_them() {
    let shop = Workshop::new();
    let mut numbers = Numbers(9);
    let mut texts: Vec<String> = (0..200).map(|_| words(&mut numbers, 12).join(" ")).collect();
    // Edited copies, a word each, which no five-word shingles of so short texts show.
    let copies: Vec<String> = texts[..50].iter().map(|text| text.replacen(" w", " x", 1)).collect();
    texts.extend(copies);
    texts.extend(["🙂🙂".to_owned(), "-----".to_owned(), "🙂🙂".to_owned(), "-----".to_owned()]);
    shop.write("in.jsonl", jsonl(&texts));
    let ran = shop.ok("dedup in.jsonl -o out.jsonl");
    assert!(ran.stderr().contains("short     100.0 % have fewer than 16 shingles"), "{}", ran.stderr());
    assert!(ran.stderr().contains("--shingle chars:8 --near 0.6 sees such edits"), "{}", ran.stderr());
    assert_eq!(shop.text("out.jsonl").lines().count(), 252, "equal texts are found, whatever they are made of");
    let ran = shop.ok("dedup in.jsonl -o words.jsonl --shingle words:1 --near 0.6");
    assert!(!ran.stderr().contains("short     "), "one of these shingles has one word: {}", ran.stderr());
    let ran = shop.ok("dedup in.jsonl -o seen.jsonl --shingle chars:8 --near 0.6");
    assert_eq!(shop.text("seen.jsonl").lines().count(), 202);
    assert!(!ran.stderr().contains("short     "), "{}", ran.stderr());
}

#[test]
fn memory_and_scratch_space_are_stated_and_kept_to() {
    let shop = Workshop::new();
    let (texts, near) = corpus(6000);
    let lines = jsonl(&texts);
    shop.write("in.jsonl", &lines);
    shop.write("in.jsonl.zst", zstd::encode_all(lines.as_bytes(), 3).unwrap());
    let ran = shop.ok("dedup in.jsonl -o out.jsonl");
    assert!(ran.stderr().contains("if all of 6,000 records are kept, of "), "{}", ran.stderr());
    assert!(!ran.stderr().contains("scratch"), "{}", ran.stderr());
    // Of 64 MiB of cache the sets of so small a file could fill 30 MB.
    let ran = shop.ok("dedup in.jsonl -o rounds.jsonl --memory 20M");
    assert!(ran.stderr().contains("rounds    what memory can't hold goes to"), "{}", ran.stderr());
    assert!(shop.text("rounds.jsonl") == shop.text("out.jsonl"));
    shop.ok("dedup in.jsonl -o longest.jsonl --keep longest -q");
    let ran = shop.ok("dedup in.jsonl -o longest.rounds.jsonl --memory 20M --keep longest");
    assert!(ran.stderr().contains("rounds    what memory can't hold goes to"), "{}", ran.stderr());
    assert!(shop.text("longest.rounds.jsonl") == shop.text("longest.jsonl"));
    // A text that shares most of it with all others is looked up by many keys.
    let mut numbers = Numbers(70);
    let template = words(&mut numbers, 120).join(" ");
    let pages: Vec<String> = (0..5000).map(|_| format!("{template} {}", words(&mut numbers, 70).join(" "))).collect();
    shop.write("pages.jsonl", jsonl(&pages));
    for command in ["dedup", "dedup --keep longest", "pairs", "cluster", "cluster --chain"] {
        let bytes = |memory: &str| {
            let ran = shop.ok(&format!("{command} pages.jsonl -o pages.out.jsonl --json --force {memory}"));
            let summary: serde_json::Value = serde_json::from_slice(ran.stdout()).unwrap();
            (summary["index_bytes"].as_u64().unwrap(), shop.text("pages.out.jsonl"))
        };
        let ((all, expected), (some, found)) = (bytes(""), bytes("--memory 500k"));
        assert!(all > 1_000_000 && some < 500_000, "{command}: {some} of {all} bytes");
        assert!(found == expected, "{command}");
    }
    // What is held is held whole.
    for (command, cure) in
        [("dedup", "--no-verify"), ("pairs", "split the corpus\n"), ("cluster", "split the corpus\n")]
    {
        let ran = shop.run(&format!("{command} in.jsonl -o none.jsonl --memory 1M --metric edit --near 2"));
        assert_eq!(ran.code(), 1, "{}", ran.stderr());
        let error = ran.stderr();
        assert!(error.contains("are needed if all of ") && error.contains(cure), "{error}");
        assert!(!shop.exists("none.jsonl"));
    }
    // A pipe does not tell how long it is.
    let ran = shop.run_with_stdin("dedup - -o none.jsonl --memory 1M", lines.as_bytes());
    assert_eq!(ran.code(), 1, "{}", ran.stderr());
    assert!(ran.stderr().contains("which is all there is; nothing was written"), "{}", ran.stderr());
    assert!(!shop.exists("none.jsonl"));
    std::fs::create_dir(shop.path("room")).unwrap();
    let ran = shop.ok("dedup in.jsonl.zst -o packed.jsonl --scratch room");
    assert!(ran.stderr().contains("that can't be read again where they lie, in room"), "{}", ran.stderr());
    assert!(shop.text("packed.jsonl") == kept(&lines, &near));
    assert_eq!(std::fs::read_dir(shop.path("room")).unwrap().count(), 0, "it is gone with the run");
    // Two runs whose outputs have one name, at once.
    shop.write("other.jsonl.zst", zstd::encode_all(jsonl(&texts[3000..]).as_bytes(), 3).unwrap());
    for folder in ["one", "two"] {
        std::fs::create_dir(shop.path(folder)).unwrap();
    }
    let start = |input: &str, folder: &str| {
        let command = format!("dedup {input} -o {folder}/out.jsonl --scratch room --keep longest -q");
        shop.command(&command).spawn().unwrap()
    };
    let children = [start("in.jsonl.zst", "one"), start("other.jsonl.zst", "two")];
    children.into_iter().for_each(|mut child| assert!(child.wait().unwrap().success()));
    let alone = |input: &str| {
        shop.ok(&format!("dedup {input} -o alone.jsonl --keep longest --force -q"));
        shop.text("alone.jsonl")
    };
    assert!(shop.text("one/out.jsonl") == alone("in.jsonl.zst"));
    assert!(shop.text("two/out.jsonl") == alone("other.jsonl.zst"));
    let ran = shop.run("dedup in.jsonl.zst -o none.jsonl --scratch nowhere");
    assert!(ran.code() == 1 && ran.stderr().contains("nowhere"), "{}", ran.stderr());
}
