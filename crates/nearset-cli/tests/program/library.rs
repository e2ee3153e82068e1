//! Libraries: what earlier runs kept, compared with and named by later ones.

use std::time::Duration;

use crate::resume::stop_half_way;
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
fn a_library_is_no_filter_to_ask() {
    let shop = Workshop::new();
    shop.write("in.jsonl", "{\"text\": \"one two three four five six\"}\n");
    shop.ok("dedup in.jsonl -o out.jsonl --save seen.library");
    for command in ["query seen.library in.jsonl", "search seen.library in.jsonl"] {
        let ran = shop.run(command);
        assert!(ran.code() == 1 && ran.stderr().contains("dedup --against"), "{command}: {}", ran.stderr());
    }
}

/// They are held in memory, whatever else lies in files.
#[test]
fn the_plan_counts_what_pages_of_a_template_have_in_common() {
    let (shop, mut numbers, count) = (Workshop::new(), Numbers(22), 1000);
    let template = words(&mut numbers, 196);
    let [pages, others] = [48, 244].map(|own| {
        let page = |_| [&template[..244 - own], &words(&mut numbers, own)].concat().join(" ");
        shop.write("in.jsonl", jsonl(&(0..count).map(page).collect::<Vec<_>>()));
        shop.ok("dedup in.jsonl -o out.jsonl --save seen.library --force");
        shop.write("new.jsonl", jsonl(&[template.join(" ")]));
        let ran = shop.ok("dedup new.jsonl --against seen.library --dry-run --json");
        std::fs::remove_dir_all(shop.path("seen.library")).unwrap();
        let summary: serde_json::Value = serde_json::from_slice(ran.stdout()).unwrap();
        summary["plan"]["needs"]["bytes"].as_u64().unwrap()
    });
    assert!(pages >= others + 100 * count, "{pages} {others}");
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
        let _ = std::fs::remove_dir_all(shop.path("seen.library"));
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
    shop.ok("dedup b.jsonl -o chain.out.jsonl --save chain.library --chain");
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
        ("dedup a.jsonl -o x.jsonl --save a.library --force", 1, "--force replaces no library"),
        ("dedup a.jsonl -o x.jsonl --save x.jsonl", 1, "named twice"),
        ("dedup a.jsonl --dry-run --save x.library", 2, "--dry-run writes no records"),
        ("dedup a.jsonl --dry-run --no-verify --save x.nearset", 2, "--dry-run writes no records"),
        ("dedup a.jsonl -o x.jsonl --against chain.library", 1, "made with chains followed"),
        ("dedup a.jsonl -o x.jsonl --against a.library --save a.library --chain", 1, "made with chains not followed"),
        ("dedup a.jsonl -o x.jsonl --against folder", 1, "folder is no library"),
        ("dedup a.jsonl -o x.jsonl --against missing.library", 1, "missing.library"),
        ("dedup a.jsonl -o x.jsonl --against a.library --shingle words:3", 1, "made with shingles words:5"),
        ("dedup a.jsonl -o x.jsonl --against a.library --seed 7", 1, "made with the seed 42"),
        ("dedup a.jsonl -o x.jsonl --against a.library --save a.library --near 0.9", 1, "made with near 0.8"),
        ("dedup a.jsonl -o x.jsonl --against a.library --no-verify", 2, "Leave out --no-verify"),
        ("dedup a.jsonl -o x.jsonl --save nowhere/a.library", 1, "nowhere/a.library"),
        ("merge a.library c.library -o x.library", 1, "made with near 0.9"),
        ("merge a.library b.library -o both.library", 1, "both.library exists"),
        ("merge a.library b.library -o both.library --force", 1, "both.library exists"),
        ("merge a.library chain.library -o x.library", 1, "made with chains followed"),
    ] {
        let ran = shop.run(arguments);
        assert_eq!(ran.code(), code, "{arguments}: {}", ran.stderr());
        assert!(ran.stderr().contains(why), "{arguments}: {}", ran.stderr());
        assert!(!shop.exists("x.jsonl") && !shop.exists("x.library") && !shop.exists("x.jsonl.partial"), "{arguments}");
    }
    assert_eq!(shop.text("folder/precious"), "mine");
    // Another promise chooses other keys, from the sets.
    shop.ok("dedup b.jsonl -o looser.jsonl --against a.library --near 0.6");
    // However a folder is spelt, it is extended and not replaced.
    let before = records("a.library");
    shop.write("c.jsonl", "{\"text\": \"one more text that nobody has seen before\"}\n");
    shop.ok("dedup c.jsonl -o one-more.jsonl --against ./folder/../a.library --save a.library");
    assert_eq!(records("a.library"), before + 1);
    // The first run of several that extend one library starts it, and folders of libraries are no inputs.
    shop.ok("dedup a.jsonl -o first.jsonl --against day.library --save day.library");
    assert_eq!(records("day.library"), before);
    std::fs::create_dir(shop.path("data")).unwrap();
    copy_folder(&shop, "day.library", "data/day.library");
    shop.write("data/c.jsonl", shop.read("c.jsonl"));
    shop.ok("dedup data -o data.jsonl --against data/day.library");
    assert_eq!(shop.text("data.jsonl").lines().count(), 1);
}

/// Keys go by the model of the library that is extended, whichever is named first.
#[test]
fn a_library_is_extended_by_its_own_model() {
    let shop = Workshop::new();
    let mut numbers = Numbers(41);
    let header = words(&mut numbers, 100);
    let page = |numbers: &mut Numbers| [&header[..], &words(numbers, 40)].concat().join(" ");
    let pages: Vec<String> = (0..600).map(|_| page(&mut numbers)).collect();
    let few: Vec<String> = (0..200).map(|_| page(&mut numbers)).collect();
    shop.write("pages.jsonl", jsonl(&pages));
    shop.write("none.jsonl", "{\"text\": \"hardly anything at all\"}\n");
    shop.write("few.jsonl", jsonl(&few));
    shop.ok("dedup pages.jsonl -o pages.out.jsonl --save pages.library");
    shop.ok("dedup none.jsonl -o none.out.jsonl --save plain.library");
    assert!(info(&shop, "pages.library")["common_shingles"].as_u64() > Some(0));
    assert_eq!(info(&shop, "plain.library")["common_shingles"], 0);
    shop.ok("dedup few.jsonl -o few.out.jsonl --against pages.library --against plain.library --save plain.library");
    assert_eq!(shop.text("few.out.jsonl").lines().count(), 200);
    shop.ok("dedup few.jsonl -o again.jsonl --against plain.library");
    assert_eq!(shop.text("again.jsonl"), "", "what is there is found");
}

/// Two runs that were stopped and extend one library know their own files, and only one of them can go on.
#[test]
fn unfinished_runs_do_not_take_each_others_records() {
    let shop = Workshop::new();
    let mut numbers = Numbers(51);
    let mut texts = |count: usize| -> Vec<String> { (0..count).map(|_| words(&mut numbers, 100).join(" ")).collect() };
    for (name, count) in [("start.jsonl", 10), ("a.jsonl", 6000), ("b.jsonl", 6000)] {
        shop.write(name, jsonl(&texts(count)));
    }
    shop.ok("dedup start.jsonl -o start.out.jsonl --save seen.library");
    for (input, out) in [("a.jsonl", "a.out.jsonl"), ("b.jsonl", "b.out.jsonl")] {
        stop_half_way(&shop, &format!("dedup {input} -o {out} --against seen.library --save seen.library -q"), out);
    }
    assert_eq!(info(&shop, "seen.library")["records"], 10);
    let resume = |input: &str, out: &str| {
        let command = format!("dedup {input} -o {out} --against seen.library --save seen.library --resume -q");
        let ran = shop.command(&command).env("NEARSET_CHECKPOINT_BYTES", "20000").output().unwrap();
        (ran.status.code(), String::from_utf8_lossy(&ran.stderr).into_owned())
    };
    assert_eq!(resume("a.jsonl", "a.out.jsonl"), (Some(0), String::new()));
    let (code, said) = resume("b.jsonl", "b.out.jsonl");
    assert!(code == Some(1) && said.contains("the library has changed since") && said.contains("--force"), "{said}");
    assert_eq!(info(&shop, "seen.library")["records"], 6010);
    // The library holds what the outputs hold, and nothing else.
    shop.ok("dedup a.jsonl -o none.jsonl --against seen.library -q");
    assert_eq!(shop.text("none.jsonl"), "");
    shop.ok("dedup b.jsonl -o all.jsonl --against seen.library -q");
    assert_eq!(shop.text("all.jsonl").lines().count(), 6000);
    shop.ok("dedup b.jsonl -o b.out.jsonl --against seen.library --save seen.library --force -q");
    assert_eq!(info(&shop, "seen.library")["records"], 12_010);
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
    let line = manifest.lines().next().unwrap().replacen("\"version\":2", "\"version\":3", 1);
    let check = xxhash_rust::xxh3::xxh3_64(line.as_bytes());
    shop.write("whole.library/manifest.json", format!("{line}\n{check:016x}\n"));
    let ran = shop.run("info whole.library");
    assert!(
        ran.code() == 1 && ran.stderr().contains("of version 3, which this nearset does not know"),
        "{}",
        ran.stderr()
    );
}

/// A copy of a damaged file would have a checksum that fits.
#[test]
fn damage_is_still_told_after_segments_were_merged() {
    let shop = Workshop::new();
    let batch = |first: usize| -> String {
        let text =
            |i: usize| (0..12).map(|word| format!("w{}", (first + i) * 100 + word)).collect::<Vec<_>>().join(" ");
        (0..20).map(|i| format!("{{\"id\": \"{}\", \"text\": \"{}\"}}\n", first + i, text(i))).collect()
    };
    shop.write("0.jsonl", batch(0));
    shop.ok("dedup 0.jsonl -o 0.out.jsonl --save seen.library");
    let mut paths = std::fs::read_dir(shop.path("seen.library")).unwrap().map(|entry| entry.unwrap().path());
    let sets = paths.find(|path| path.extension().is_some_and(|kind| kind == "sets")).unwrap();
    let mut bytes = std::fs::read(&sets).unwrap();
    bytes[1000] ^= 1;
    std::fs::write(&sets, bytes).unwrap();
    for number in 1..9 {
        shop.write(&format!("{number}.jsonl"), batch(100 * number));
        shop.ok(&format!("dedup {number}.jsonl -o {number}.out.jsonl --against seen.library --save seen.library"));
        let ran = shop.run("info seen.library");
        assert!(ran.code() == 1 && ran.stderr().contains("checksum"), "batch {number}: {}", ran.stderr());
    }
    // A finished batch is not begun again, however the library is named.
    for against in ["seen.library", "./seen.library"] {
        let ran = shop.run(&format!("dedup 8.jsonl -o 8.out.jsonl --against {against} --save seen.library"));
        assert!(ran.code() == 1 && ran.stderr().contains("the library holds its records"), "{}", ran.stderr());
    }
}

/// Libraries of every version answer alike, and are of the newest one once they are extended.
#[test]
fn libraries_of_all_versions_open_and_are_extended() {
    let shop = Workshop::new();
    let frozen = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/library");
    let removed = std::fs::read_to_string(frozen.join("removed.jsonl")).unwrap();
    shop.write("asked.jsonl", std::fs::read(frozen.join("asked.jsonl")).unwrap());
    shop.write("more.jsonl", "{\"id\": \"more\", \"text\": \"a text of six words or so\"}\n");
    let manifest = |library: &str| -> serde_json::Value {
        serde_json::from_str(shop.text(&format!("{library}/manifest.json")).lines().next().unwrap()).unwrap()
    };
    let asked = || {
        shop.ok("dedup asked.jsonl -o out.jsonl --force --against seen.library --removed removed.jsonl");
        shop.text("removed.jsonl")
    };
    let (mut segments, mut by_other_keys) = (Vec::new(), Vec::new());
    for version in [1, 2] {
        let _ = std::fs::remove_dir_all(shop.path("seen.library"));
        copy_folder(&shop, &frozen.join(format!("v{version}")).to_string_lossy(), "seen.library");
        assert_eq!(manifest("seen.library")["version"], version);
        assert_eq!(info(&shop, "seen.library")["records"], 152);
        assert_eq!(asked(), removed, "version {version}");
        // Keys are chosen anew, from the sets.
        shop.ok("dedup asked.jsonl -o out.jsonl --force --against seen.library --near 0.6 --removed removed.jsonl");
        by_other_keys.push(shop.text("removed.jsonl"));
        copy_folder(&shop, &frozen.join("v1").to_string_lossy(), "other.library");
        shop.ok("merge seen.library other.library -o merged.library");
        assert_eq!(info(&shop, "merged.library")["records"], 304);
        std::fs::remove_dir_all(shop.path("merged.library")).unwrap();
        shop.ok("dedup more.jsonl -o more.out.jsonl --force --against seen.library --save seen.library");
        assert_eq!(info(&shop, "seen.library")["records"], 153);
        assert_eq!(asked(), removed, "version {version}, extended");
        let mut extended = manifest("seen.library");
        assert_eq!(extended["version"], 2);
        let sums = |segment: &mut serde_json::Value| {
            segment["sets"].as_array_mut().unwrap().iter_mut().for_each(|file| drop(file["name"].take()));
            drop(segment["index"]["name"].take());
            segment.take()
        };
        segments.push(extended["segments"].as_array_mut().unwrap().iter_mut().map(sums).collect::<Vec<_>>());
        let names = std::fs::read_dir(shop.path("seen.library")).unwrap();
        let names: Vec<_> = names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        assert_eq!(names.iter().filter(|name| name.ends_with(".index")).count(), 3, "{names:?}");
        assert!(!names.iter().any(|name| name.ends_with(".entries")), "{names:?}");
    }
    assert_eq!(segments[0], segments[1], "the bytes are those that were written at once");
    assert_eq!(by_other_keys[0], by_other_keys[1]);
    assert!(by_other_keys[0].lines().count() > removed.lines().count());
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
    // Names of files are each run's own, so it is what is in them that is compared.
    let holds = |library: &str| {
        let manifest = shop.text(&format!("{library}/manifest.json"));
        let value: serde_json::Value = serde_json::from_str(manifest.lines().next().unwrap()).unwrap();
        let sums =
            |segment: &serde_json::Value| [&segment["index"], &segment["sets"][0]].map(|file| file["xxh3"].to_string());
        value["segments"].as_array().unwrap().iter().map(sums).collect::<Vec<_>>()
    };
    let (expected, outcome) = (holds("new.library"), shop.text("out.jsonl"));
    let old = holds("old.library");
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
            let held = holds(&library);
            assert!(held == old || held == expected, "{held:?}");
            shop.ok(&format!("info {library}"));
            if shop.exists("out.jsonl") && !shop.exists("out.jsonl.resume/state.json") {
                break;
            }
            kills += 1;
        }
        assert!(holds(&library) == expected, "round {round}");
        assert!(shop.text("out.jsonl") == outcome, "round {round}");
        std::fs::remove_file(shop.path("out.jsonl")).unwrap();
        let _ = std::fs::remove_dir(shop.path("out.jsonl.resume"));
    }
    assert!(kills > 0);
}
