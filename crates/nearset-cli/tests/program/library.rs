//! Libraries: what earlier runs kept, compared with and named by later ones.

use std::time::Duration;

use crate::support::{Numbers, Workshop, corpus, jsonl, words};

/// Families with chains, templates and copies, shuffled: 16 records in a family on average.
fn mixed(records: usize) -> Vec<String> {
    let mut numbers = Numbers(21);
    let header = words(&mut numbers, 60);
    let mut families: Vec<Vec<String>> = Vec::new();
    (0..records)
        .map(|i| {
            if i % 16 == 0 {
                let own = words(&mut numbers, 60);
                families.push(if i % 48 == 0 { [&header[..], &own].concat() } else { own });
            }
            let family = numbers.below(families.len() as u64) as usize;
            for _ in 0..numbers.below(3) {
                let at = numbers.below(families[family].len() as u64) as usize;
                families[family][at] = format!("w{}", numbers.below(10_000));
            }
            families[family].join(" ")
        })
        .collect()
}

fn info(shop: &Workshop, library: &str) -> serde_json::Value {
    serde_json::from_slice(shop.ok(&format!("info {library} --json")).stdout()).unwrap()
}

fn copy_folder(shop: &Workshop, from: &str, to: &str) {
    std::fs::create_dir_all(shop.path(to)).unwrap();
    for entry in std::fs::read_dir(shop.path(from)).unwrap() {
        let name = entry.unwrap().file_name();
        std::fs::copy(shop.path(from).join(&name), shop.path(to).join(&name)).unwrap();
    }
}

#[test]
fn thirty_batches_keep_what_one_run_keeps() {
    let shop = Workshop::new();
    let texts = mixed(3000);
    let lines = jsonl(&texts);
    let lines: Vec<&str> = lines.split_inclusive('\n').collect();
    let mut kept = Vec::new();
    for (i, batch) in lines.chunks(100).enumerate() {
        shop.write("in.jsonl", batch.concat());
        let against = if i == 0 { "" } else { "--against seen.library" };
        let ran = shop.ok(&format!("dedup in.jsonl -o out.jsonl --force {against} --save seen.library --json"));
        kept.push(shop.text("out.jsonl"));
        let summary: serde_json::Value = serde_json::from_slice(ran.stdout()).unwrap();
        assert_eq!(summary["saved"], "seen.library");
        if i == 0 {
            copy_folder(&shop, "seen.library", "first.library");
        } else {
            assert!(summary["libraries"][0][1].as_u64() > Some(0), "{summary}");
        }
    }
    // The model is that of the first batch in both.
    shop.write("rest.jsonl", lines[100..].concat());
    shop.ok("dedup rest.jsonl -o rest.out.jsonl --against first.library --removed removed.jsonl");
    assert!(kept[1..].concat() == shop.text("rest.out.jsonl"));
    assert!(shop.text("removed.jsonl").contains("\"reason\":\"near a record of first.library\""));
    let library = info(&shop, "seen.library");
    let records: usize = kept.iter().map(|batch| batch.lines().count()).sum();
    assert_eq!(library["records"], records);
    // Of 30 segments, 8 and 8 and 8 were merged.
    assert_eq!(library["segments"], 3 + 6);
    // What it holds is found again, by itself and by its name.
    shop.write("all.jsonl", lines.concat());
    shop.ok("dedup all.jsonl -o none.jsonl --against seen.library --annotate");
    for line in shop.text("none.jsonl").lines() {
        let record: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(record["near_duplicate"], true, "{line}");
        assert!(record["similarity"].as_f64() >= Some(0.8) && record["duplicate_of"].is_string());
    }
}

#[test]
fn what_is_named_is_as_near_as_is_said() {
    let shop = Workshop::new();
    let texts = mixed(400);
    shop.write("a.jsonl", jsonl(&texts[..200]));
    let rest: String = (200..400).map(|i| format!("{{\"id\":\"b{i}\",\"text\":\"{}\"}}\n", texts[i])).collect();
    shop.write("b.jsonl", rest);
    let shingles = |text: &str| -> std::collections::BTreeSet<Vec<String>> {
        let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
        words.windows(5).map(<[String]>::to_vec).collect()
    };
    for options in ["", "--keep longest", "--near 0.7"] {
        shop.ok("dedup a.jsonl -o a.out.jsonl --save seen.library --force");
        shop.ok(&format!("dedup b.jsonl -o b.out.jsonl --against seen.library --removed r.jsonl --force {options}"));
        let removed = shop.text("r.jsonl");
        assert!(removed.lines().filter(|line| line.contains("seen.library")).count() > 5, "{options}");
        for line in removed.lines() {
            let record: serde_json::Value = serde_json::from_str(line).unwrap();
            let text = |id: &str| &texts[id.trim_start_matches('b').parse::<usize>().unwrap()];
            let [a, b] = ["id", "near"].map(|name| shingles(text(record[name].as_str().unwrap())));
            let similarity = a.intersection(&b).count() as f64 / a.union(&b).count() as f64;
            // JSON is read to the last bit but one.
            assert!((record["similarity"].as_f64().unwrap() - similarity).abs() < 1e-12, "{options}: {line}");
        }
    }
}

#[test]
fn libraries_are_merged_and_refused_with_a_cure() {
    let shop = Workshop::new();
    let texts = mixed(300);
    shop.write("a.jsonl", jsonl(&texts[..150]));
    shop.write("b.jsonl", jsonl(&texts[150..]));
    shop.ok("dedup a.jsonl -o a.out.jsonl --save a.library");
    shop.ok("dedup b.jsonl -o b.out.jsonl --save b.library");
    shop.ok("dedup b.jsonl -o c.out.jsonl --save c.library --near 0.9");
    shop.ok("merge a.library b.library -o both.library");
    let records = |library| info(&shop, library)["records"].as_u64().unwrap();
    assert_eq!(records("both.library"), records("a.library") + records("b.library"));
    for (input, library) in [("a.jsonl", "a.library"), ("b.jsonl", "b.library")] {
        shop.ok(&format!("dedup {input} -o one.jsonl --against {library} --force"));
        shop.ok(&format!("dedup {input} -o two.jsonl --against both.library --force"));
        assert_eq!((shop.text("one.jsonl"), shop.text("two.jsonl")), (String::new(), String::new()), "all is there");
    }
    shop.write("file.library", "no folder");
    std::fs::create_dir(shop.path("folder")).unwrap();
    shop.write("folder/precious", "mine");
    for (arguments, code, why) in [
        ("dedup a.jsonl -o x.jsonl --save a.library", 1, "a.library exists"),
        ("dedup a.jsonl -o x.jsonl --save folder", 1, "folder is no library"),
        ("dedup a.jsonl -o x.jsonl --save folder --force", 1, "folder is no library"),
        ("dedup a.jsonl -o x.jsonl --against folder", 1, "folder is no library"),
        ("dedup a.jsonl -o x.jsonl --against missing.library", 1, "missing.library"),
        ("dedup a.jsonl -o x.jsonl --against a.library --shingle words:3", 1, "made with shingles words:5"),
        ("dedup a.jsonl -o x.jsonl --against a.library --seed 7", 1, "made with the seed 42"),
        ("dedup a.jsonl -o x.jsonl --against a.library --save a.library --near 0.9", 1, "made with near 0.8"),
        ("dedup a.jsonl -o x.jsonl --against a.library --no-verify", 2, "Leave out --no-verify"),
        ("dedup a.jsonl -o x.jsonl --save nowhere/a.library", 1, "nowhere/a.library"),
        ("merge a.library c.library -o x.library", 1, "made with near 0.9"),
        ("merge a.library b.library -o both.library", 1, "both.library exists"),
    ] {
        let ran = shop.run(arguments);
        assert_eq!(ran.code(), code, "{arguments}: {}", ran.stderr());
        assert!(ran.stderr().contains(why), "{arguments}: {}", ran.stderr());
        assert!(!shop.exists("x.jsonl") && !shop.exists("x.library") && !shop.exists("x.jsonl.partial"), "{arguments}");
    }
    assert_eq!(shop.text("folder/precious"), "mine");
    // Another promise chooses other keys, from the sets.
    shop.ok("dedup b.jsonl -o looser.jsonl --against a.library --near 0.6");
    shop.ok("dedup a.jsonl -o replaced.jsonl --save c.library --force");
    assert_eq!(records("c.library"), records("a.library"));
}

/// A run that fails leaves the library as it was.
#[test]
fn a_run_that_fails_leaves_the_library_as_it_was() {
    let shop = Workshop::new();
    let texts = mixed(300);
    shop.write("a.jsonl", jsonl(&texts[..150]));
    shop.write("bad.jsonl", format!("{}broken\n", jsonl(&texts[150..])));
    shop.ok("dedup a.jsonl -o a.out.jsonl --save a.library");
    let before = shop.text("a.library/manifest.json");
    let names = |folder: &str| {
        let mut names: Vec<_> =
            std::fs::read_dir(shop.path(folder)).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let files = names("a.library");
    assert_eq!(shop.run("dedup bad.jsonl -o x.jsonl --against a.library --save a.library").code(), 1);
    assert_eq!((shop.text("a.library/manifest.json"), names("a.library")), (before, files));
    assert_eq!(shop.run("dedup bad.jsonl -o x.jsonl --save b.library").code(), 1);
    assert!(!shop.exists("b.library"));
}

/// Every byte matters, and every damage is said to be one.
#[test]
fn damage_is_named() {
    let shop = Workshop::new();
    shop.write("a.jsonl", jsonl(&mixed(200)));
    shop.ok("dedup a.jsonl -o a.out.jsonl --save whole.library");
    let mut numbers = Numbers(4);
    let files: Vec<String> = std::fs::read_dir(shop.path("whole.library"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .filter(|name| name != "lock")
        .collect();
    assert_eq!(files.len(), 4);
    for name in &files {
        let whole = shop.read(&format!("whole.library/{name}"));
        for case in 0..12 {
            copy_folder(&shop, "whole.library", "a.library");
            let path = shop.path("a.library").join(name);
            let mut bytes = whole.clone();
            match case {
                0 => std::fs::remove_file(&path).unwrap(),
                1 => bytes.truncate(bytes.len() / 2),
                2 => bytes.push(7),
                _ if bytes.is_empty() => continue,
                _ => {
                    let at = numbers.below(bytes.len() as u64) as usize;
                    bytes[at] ^= 1 << numbers.below(8);
                }
            }
            if case > 0 {
                if bytes == whole {
                    continue;
                }
                std::fs::write(&path, &bytes).unwrap();
            }
            let ran = shop.run("info a.library");
            let said = ran.stderr();
            assert_eq!(ran.code(), 1, "{name}, case {case}");
            let is_named = ["damaged", "is no library", "of version"].iter().any(|what| said.contains(what));
            assert!(is_named, "{name}, case {case}: {said}");
            // A run either finds the damage or was not touched by it; it never dies.
            let ran = shop.run("dedup a.jsonl -o out.jsonl --force --against a.library");
            assert!([0, 1].contains(&ran.code()), "{name}, case {case}: {}", ran.stderr());
        }
    }
    // Of a later version, and whole by its own checksum.
    let manifest = shop.text("whole.library/manifest.json");
    let line = manifest.lines().next().unwrap().replacen("\"version\":1", "\"version\":2", 1);
    let check = xxhash_rust::xxh3::xxh3_64(line.as_bytes());
    shop.write("whole.library/manifest.json", format!("{line}\n{check:016x}\n"));
    let ran = shop.run("info whole.library");
    assert!(
        ran.code() == 1 && ran.stderr().contains("of version 2, which this nearset does not know"),
        "{}",
        ran.stderr()
    );
}

/// Killed at any moment, a run leaves the old library or the new one, and resumed it leaves the new one.
#[test]
fn a_killed_run_leaves_the_old_library_or_the_new_one() {
    let shop = Workshop::new();
    let texts = corpus(3000).0;
    shop.write("a.jsonl", jsonl(&texts[..1000]));
    shop.write("b.jsonl", jsonl(&texts[1000..]));
    shop.ok("dedup a.jsonl -o a.out.jsonl --save old.library");
    copy_folder(&shop, "old.library", "new.library");
    let command = |library: &str| format!("dedup b.jsonl -o out.jsonl --against {library} --save {library} -q");
    shop.ok(&command("new.library"));
    let (expected, outcome) = (shop.text("new.library/manifest.json"), shop.text("out.jsonl"));
    let old = shop.text("old.library/manifest.json");
    std::fs::remove_file(shop.path("out.jsonl")).unwrap();
    let mut kills = 0;
    for round in 0..6 {
        copy_folder(&shop, "old.library", &format!("{round}.library"));
        let library = format!("{round}.library");
        for delay in (round + 1..).step_by(9) {
            let mut child = shop
                .command(&format!("{} --resume", command(&library)))
                .env("NEARSET_CHECKPOINT_BYTES", "50000")
                .spawn()
                .unwrap();
            std::thread::sleep(Duration::from_millis(delay));
            child.kill().unwrap();
            child.wait().unwrap();
            let manifest = shop.text(&format!("{library}/manifest.json"));
            assert!(manifest == old || manifest == expected, "{manifest}");
            shop.ok(&format!("info {library}"));
            if shop.exists("out.jsonl") && !shop.exists("out.jsonl.resume/state.json") {
                break;
            }
            kills += 1;
        }
        assert!(shop.text(&format!("{library}/manifest.json")) == expected, "round {round}");
        assert!(shop.text("out.jsonl") == outcome, "round {round}");
        std::fs::remove_file(shop.path("out.jsonl")).unwrap();
        let _ = std::fs::remove_dir(shop.path("out.jsonl.resume"));
    }
    assert!(kills > 6, "killed only {kills} times");
}
