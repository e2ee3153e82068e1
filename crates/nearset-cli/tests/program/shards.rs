//! One output per input: names, folders and packings stay, all appear together, and a killed run ends with the same bytes.

use std::path::Path;
use std::time::Instant;

use crate::resume::run_killing;
use crate::support::{Numbers, Workshop, corpus, gzip, jsonl, kept, parquet, parquet_rows};

/// Three shards in two folders, each of another packing, and what is to come out of each.
fn shards(shop: &Workshop, documents: usize) -> [String; 3] {
    let (texts, near) = corpus(documents);
    let lines: Vec<String> = jsonl(&texts).split_inclusive('\n').map(str::to_owned).collect();
    let third = documents / 3;
    let part = |i: usize| lines[i * third..(i + 1) * third].concat();
    shop.write("crawl/a/part-1.jsonl", part(0));
    shop.write("crawl/a/part-2.jsonl.gz", gzip(&part(1)));
    shop.write("crawl/b/part-1.jsonl.zst", zstd::encode_all(part(2).as_bytes(), 3).unwrap());
    [0, 1, 2].map(|i| kept(&part(i), &near[i * third..(i + 1) * third]))
}

fn unpacked(shop: &Workshop, name: &str) -> String {
    let plain = format!("{name}.plain.jsonl");
    shop.ok(&format!("dedup {name} -o {plain} --near 1 --force -q"));
    let text = shop.text(&plain);
    std::fs::remove_file(shop.path(&plain)).unwrap();
    text
}

/// Files below a folder, by their paths in it.
fn below(folder: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        match entry.path().is_dir() {
            true => names.extend(below(&entry.path()).iter().map(|inner| format!("{name}/{inner}"))),
            false => names.push(name),
        }
    }
    names.sort();
    names
}

#[test]
fn each_shard_comes_out_under_its_name_and_packed_as_it_was() {
    for flags in ["", "--no-verify", "--keep longest", "--keep min:id"] {
        let shop = Workshop::new();
        let expected = shards(&shop, 300);
        shop.ok(&format!("dedup crawl -o clean/ --removed removed.jsonl {flags}"));
        assert_eq!(below(&shop.path("clean")), ["a/part-1.jsonl", "a/part-2.jsonl.gz", "b/part-1.jsonl.zst"]);
        let names = ["clean/a/part-1.jsonl", "clean/a/part-2.jsonl.gz", "clean/b/part-1.jsonl.zst"];
        let written = names.map(|name| unpacked(&shop, name));
        // A filter may lose a record that is not near.
        assert!(written == expected || flags == "--no-verify" || flags.contains("keep"), "{flags}");
        assert!(shop.read(names[1]).starts_with(b"\x1f\x8b") && shop.read(names[2]).starts_with(b"\x28\xb5\x2f\xfd"));
        let written: usize = written.iter().map(|text| text.lines().count()).sum();
        assert_eq!(written + shop.text("removed.jsonl").lines().count(), 300);
        let ran = shop.run("dedup crawl -o clean");
        assert!(ran.code() == 1 && ran.stderr().contains("exists already"), "{}", ran.stderr());
        shop.ok("dedup crawl -o clean --force");
    }
}

#[test]
fn formats_may_be_mixed_and_sources_empty() {
    let shop = Workshop::new();
    let (texts, _) = corpus(60);
    parquet(&shop.path("rows.parquet"), &texts);
    shop.write("lines.jsonl", jsonl(&texts));
    shop.write("empty.jsonl", "");
    shop.write("table.csv", "text,n\n");
    shop.ok("dedup empty.jsonl rows.parquet table.csv lines.jsonl -o clean/");
    assert_eq!(below(&shop.path("clean")), ["empty.jsonl", "lines.jsonl", "rows.parquet", "table.csv"]);
    assert_eq!(parquet_rows(&shop.path("clean/rows.parquet")).len(), 40);
    assert_eq!((shop.text("clean/lines.jsonl"), shop.text("clean/table.csv")), (String::new(), "text,n\n".to_owned()));
    shop.ok("dedup lines.jsonl rows.parquet -o marked/ --annotate");
    assert!(parquet_rows(&shop.path("marked/rows.parquet")).iter().all(|row| row.contains("near_duplicate: true")));
    shop.ok("build lines.jsonl -o seen.nearset --near 0.8 -q");
    assert_eq!(shop.run("query seen.nearset lines.jsonl rows.parquet -o far/ --keep far").code(), 10);
    assert_eq!(below(&shop.path("far")), ["lines.jsonl", "rows.parquet"]);
}

#[test]
fn what_has_no_name_or_one_name_twice_is_refused() {
    let shop = Workshop::new();
    shop.write("in.jsonl", "{\"text\":\"a\"}\n");
    shop.write("texts/a.md", "a\n");
    for (arguments, why) in [
        ("dedup - -o clean/", "has no name"),
        ("dedup in.jsonl ./in.jsonl -o clean/", "named twice"),
        ("dedup texts --format text-file -o clean/", "name a file"),
        ("dedup in.jsonl -o .", "a folder of its own"),
        ("dedup texts/../in.jsonl -o ./texts/.. --force", "a folder of its own"),
    ] {
        let ran = shop.run_with_stdin(arguments, b"");
        assert!(ran.code() == 1 && ran.stderr().contains(why), "{arguments}: {}", ran.stderr());
        assert_eq!(shop.names(), ["in.jsonl", "texts"], "{arguments}");
    }
    shop.write("crawl/in.jsonl", "{\"text\":\"a\"}\n");
    let ran = shop.run("dedup crawl -o crawl/ --force");
    assert!(ran.code() == 1 && ran.stderr().contains("is also an input"), "{}", ran.stderr());
    assert_eq!(shop.text("crawl/in.jsonl"), "{\"text\":\"a\"}\n");
    // A broken record leaves nothing, not even the shards before it.
    shop.write("crawl/zz.jsonl", "broken\n");
    assert_eq!(shop.run("dedup crawl -o clean/").code(), 1);
    assert_eq!(below(&shop.path("clean")), Vec::<String>::new());
    assert!(!shop.exists("clean.resume"));
}

#[test]
fn a_killed_run_ends_with_the_same_shards() {
    let shop = Workshop::new();
    shards(&shop, 3000);
    let (mut numbers, mut kills) = (Numbers(23), 0);
    for flags in ["", "--no-verify --capacity 3000"] {
        let arguments = |out: &str, threads: u32| {
            format!("dedup crawl -o {out}/ --removed {out}.removed.jsonl --threads {threads} {flags}")
        };
        let clock = Instant::now();
        let whole = shop.command(&arguments("whole", 2)).env("NEARSET_CHECKPOINT_BYTES", "50000").output().unwrap();
        assert!(whole.status.success(), "{}", String::from_utf8_lossy(&whole.stderr));
        let longest = (clock.elapsed().as_millis() as u64 * 3 / 4).max(3);
        for threads in [1, 3] {
            kills += run_killing(&shop, &arguments("out", threads), &mut numbers, longest);
            assert_eq!(below(&shop.path("out")), below(&shop.path("whole")));
            for name in below(&shop.path("whole")) {
                assert!(shop.read(&format!("out/{name}")) == shop.read(&format!("whole/{name}")), "{flags}: {name}");
            }
            assert!(shop.read("out.removed.jsonl") == shop.read("whole.removed.jsonl"));
            assert!(!shop.exists("out.resume/state.json"));
            // Killed behind its last step, a run leaves the folder of its state empty.
            let _ = std::fs::remove_dir(shop.path("out.resume"));
            std::fs::remove_dir_all(shop.path("out")).unwrap();
            std::fs::remove_file(shop.path("out.removed.jsonl")).unwrap();
        }
        std::fs::remove_dir_all(shop.path("whole")).unwrap();
        std::fs::remove_file(shop.path("whole.removed.jsonl")).unwrap();
    }
    assert!(kills > 2, "killed only {kills} times in 4 runs");
}
