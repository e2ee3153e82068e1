//! What is kept, whatever the threads and however the input is split.

use crate::support::{Numbers, Workshop, corpus, jsonl, kept, parquet, parquet_rows, words};

#[test]
fn near_duplicates_are_removed_and_the_rest_kept_byte_for_byte() {
    let shop = Workshop::new();
    let (texts, near) = corpus(600);
    let lines = jsonl(&texts);
    shop.write("in.jsonl", &lines);
    let ran = shop.ok("dedup in.jsonl -o out.jsonl --removed removed.jsonl");
    assert!(shop.text("out.jsonl") == kept(&lines, &near));
    let removed = shop.text("removed.jsonl");
    assert_eq!(removed.lines().count(), 200);
    let first: serde_json::Value = serde_json::from_str(removed.lines().next().unwrap()).unwrap();
    assert_eq!((&first["id"], &first["file"], &first["line"]), (&"2".into(), &"in.jsonl".into(), &3.into()));
    assert_eq!(first["reason"], "near a kept record");
    assert!(["0", "1"].iter().any(|id| first["near"] == **id) && first["similarity"].as_f64() >= Some(0.8), "{first}");
    let said = ran.stderr();
    assert!(said.contains("removed   200 near a kept record, each compared with it"), "{said}");
    assert_eq!(shop.names(), ["in.jsonl", "out.jsonl", "removed.jsonl"], "nothing else is left behind");
    shop.ok("dedup out.jsonl -o again.jsonl -q");
    assert!(shop.text("again.jsonl") == shop.text("out.jsonl"), "a second run removes nothing");
}

#[test]
fn a_filter_alone_compares_nothing_and_says_so() {
    let shop = Workshop::new();
    let (texts, near) = corpus(600);
    let lines = jsonl(&texts);
    shop.write("in.jsonl", &lines);
    let ran = shop.ok("dedup in.jsonl -o out.jsonl --removed removed.jsonl --no-verify");
    assert!(shop.text("out.jsonl") == kept(&lines, &near));
    let removed = shop.text("removed.jsonl");
    let first: serde_json::Value = serde_json::from_str(removed.lines().next().unwrap()).unwrap();
    assert_eq!(first["reason"], "near an earlier record");
    assert!(first["hits"].as_u64().unwrap() <= first["bands"].as_u64().unwrap());
    let said = ran.stderr();
    assert!(said.contains("counted   against all earlier records together: nothing is compared"), "{said}");
    assert!(said.contains("caught    98.4 % at similarity 0.8 (promised: at least 98.0 %)"), "{said}");
    assert!(said.contains("at similarity 0.6 (promised: at most 0.10 %)"), "{said}");
    assert!(said.contains("600 records, counted") && said.contains("removed   200 near an earlier record"), "{said}");
    assert!(!said.contains("ALARM"), "{said}");
}

/// Pages that share a header of 190 words of 232, so that every pair has the similarity .69, and a few copies.
fn templated_pages(pages: usize) -> String {
    let mut numbers = Numbers(3);
    let header = words(&mut numbers, 190).join(" ");
    let page = |numbers: &mut Numbers| format!("{header} {}", words(numbers, 42).join(" "));
    let mut texts: Vec<String> = (0..pages).map(|_| page(&mut numbers)).collect();
    texts.extend_from_within(0..pages / 100);
    jsonl(&texts)
}

#[test]
fn pages_of_one_template_are_no_duplicates_and_a_filter_that_takes_them_for_such_raises_an_alarm() {
    let shop = Workshop::new();
    shop.write("in.jsonl", templated_pages(3000));
    let ran = shop.ok("dedup in.jsonl -o out.jsonl --near 0.7 --json");
    let summary: serde_json::Value = serde_json::from_slice(ran.stdout()).unwrap();
    assert_eq!((&summary["kept"], &summary["near"]), (&3000.into(), &30.into()));
    let ran = shop.ok("dedup in.jsonl --dry-run --near 0.7 --no-verify --json");
    let summary: serde_json::Value = serde_json::from_slice(ran.stdout()).unwrap();
    assert!(summary["near"].as_u64() > Some(1000) && summary["crowded"].as_u64() > Some(1000), "{summary}");
    assert!(ran.stderr().contains("ALARM"), "{}", ran.stderr());
    // Also where they are few among others, and not where texts have edited copies.
    let (mut texts, _) = corpus(6000);
    shop.write("few.jsonl", jsonl(&texts) + &templated_pages(300));
    let ran = shop.ok("dedup few.jsonl --dry-run --near 0.7 --no-verify");
    assert!(ran.stderr().contains("ALARM"), "{}", ran.stderr());
    texts.extend(texts.clone().iter().map(|text| text.replacen(" w1", " x1", 1)));
    texts.extend(texts.clone().iter().map(|text| text.replacen(" w2", " x2", 1)));
    shop.write("edited.jsonl", jsonl(&texts));
    let ran = shop.ok("dedup edited.jsonl --dry-run --no-verify --json");
    let summary: serde_json::Value = serde_json::from_slice(ran.stdout()).unwrap();
    assert!(summary["near"].as_u64() > Some(12_000) && !ran.stderr().contains("ALARM"), "{}", ran.stderr());
}

#[test]
fn threads_and_splits_do_not_show() {
    let shop = Workshop::new();
    let (texts, near) = corpus(3000);
    let lines = jsonl(&texts);
    let expected = kept(&lines, &near);
    shop.write("in.jsonl", &lines);
    let all: Vec<&str> = lines.split_inclusive('\n').collect();
    // The pieces end without a line feed, as files often do.
    for (i, piece) in all.chunks(271).enumerate() {
        shop.write(&format!("pieces/{i:02}.jsonl"), piece.concat().trim_end());
    }
    for threads in [1, 2, 16] {
        for input in ["in.jsonl", "pieces"] {
            shop.ok(&format!("dedup {input} -o out.jsonl --removed removed.jsonl --threads {threads} --force -q"));
            let out = shop.text("out.jsonl");
            assert!(out.trim_end() == expected.trim_end(), "{input} by {threads} threads");
            shop.ok(&format!(
                "dedup {input} -o out.jsonl.zst --threads {threads} --force -q --no-verify --capacity 3000"
            ));
            let unpacked = zstd::decode_all(&shop.read("out.jsonl.zst")[..]).unwrap();
            assert!(String::from_utf8(unpacked).unwrap().trim_end() == expected.trim_end());
        }
    }
    for kernels in ["scalar", "avx2"] {
        let arguments = "dedup in.jsonl -o out.jsonl --force -q --no-verify --capacity 3000";
        let ran = shop.command(arguments).env("NEARSET_KERNELS", kernels).output().unwrap();
        assert!(ran.status.success() && shop.text("out.jsonl").trim_end() == expected.trim_end(), "{kernels}");
    }
}

#[test]
fn a_dry_run_and_json_say_what_would_be_done() {
    let shop = Workshop::new();
    let (texts, _) = corpus(90);
    shop.write("in.jsonl", jsonl(&texts));
    let ran = shop.ok("dedup in.jsonl --dry-run --json -q");
    let summary: serde_json::Value = serde_json::from_slice(ran.stdout()).unwrap();
    assert_eq!((&summary["records"], &summary["kept"], &summary["near"]), (&90.into(), &60.into(), &30.into()));
    assert_eq!(summary["sources"][0]["name"], "in.jsonl");
    assert_eq!(ran.stderr(), "");
    assert_eq!(shop.names(), ["in.jsonl"]);
    let ran = shop.ok("dedup in.jsonl -o - --json -q");
    assert_eq!(ran.stdout().iter().filter(|&&byte| byte == b'\n').count(), 60);
    assert!(ran.stderr().contains("\"kept\":60"));
}

#[test]
fn annotating_keeps_every_record() {
    let shop = Workshop::new();
    let (texts, near) = corpus(90);
    shop.write("in.jsonl", jsonl(&texts));
    shop.ok("dedup in.jsonl -o out.jsonl --annotate --no-verify");
    let out = shop.text("out.jsonl");
    assert_eq!(out.lines().count(), 90);
    for ((line, near), text) in out.lines().zip(near).zip(&texts) {
        let record: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(record["near_duplicate"], near);
        assert_eq!(record["text"], **text);
        assert!(record["hits"].as_u64().is_some_and(|hits| hits <= 132));
    }
}

#[test]
fn a_saved_filter_screens_the_next_run() {
    let shop = Workshop::new();
    let (texts, _) = corpus(300);
    shop.write("monday.jsonl", jsonl(&texts[..150]));
    shop.write("tuesday.jsonl", jsonl(&texts[100..]));
    shop.write("both.jsonl", jsonl(&texts));
    shop.ok("dedup monday.jsonl -o clean1.jsonl --no-verify --save seen.nearset");
    let ran = shop.ok("dedup tuesday.jsonl -o clean2.jsonl --no-verify --against seen.nearset --removed removed.jsonl");
    // What two runs keep is what one run over both keeps.
    shop.ok("dedup both.jsonl -o clean.jsonl --no-verify");
    let texts_of = |name: &str| -> Vec<String> {
        let record = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap()["text"].to_string();
        shop.text(name).lines().map(record).collect()
    };
    assert!([texts_of("clean1.jsonl"), texts_of("clean2.jsonl")].concat() == texts_of("clean.jsonl"));
    assert!(shop.text("removed.jsonl").contains("\"reason\":\"near seen.nearset\""));
    assert!(ran.stderr().contains("near seen.nearset"));
    // A filter of another seed or shape works too, by keys of its own.
    shop.ok("dedup tuesday.jsonl -o clean3.jsonl --no-verify --against seen.nearset --seed 7 --near 0.75");
    assert_eq!(texts_of("clean3.jsonl").len(), texts_of("clean2.jsonl").len());
    // Beside comparing, what a filter says is said to be not compared.
    for keep in ["first", "longest"] {
        let command = format!(
            "dedup tuesday.jsonl -o clean4.jsonl --against seen.nearset --removed r.jsonl --keep {keep} --force"
        );
        let ran = shop.ok(&command);
        assert_eq!(texts_of("clean4.jsonl").len(), texts_of("clean2.jsonl").len(), "{keep}");
        assert!(shop.text("r.jsonl").contains("\"reason\":\"near seen.nearset, not compared\""));
        assert!(ran.stderr().contains("near seen.nearset, not compared"), "{}", ran.stderr());
    }
}

#[test]
fn a_filter_that_is_too_small_grows_and_says_so() {
    let shop = Workshop::new();
    let (texts, near) = corpus(1500);
    let lines = jsonl(&texts);
    shop.write("in.jsonl", &lines);
    let ran = shop.ok("dedup in.jsonl -o out.jsonl --no-verify --capacity 100 --save seen.nearset");
    let out = shop.text("out.jsonl");
    let expected = kept(&lines, &near);
    assert!(out.lines().all(|line| expected.contains(line)), "growing forgets nothing");
    // Each of 1,000 new records is taken for near with a chance of 1 in 10,000 at most.
    assert!(out.lines().count() >= 1000 - 2, "{} of 1000 are kept", out.lines().count());
    let said = ran.stderr();
    assert!(said.contains("grew to 4 generations") && said.contains("saved     seen.nearset"), "{said}");
    assert_eq!(shop.names(), ["in.jsonl", "out.jsonl", "seen.nearset"], "one file, under the name that was given");
    shop.ok("dedup in.jsonl -o none.jsonl --against seen.nearset");
    assert_eq!(shop.text("none.jsonl"), "", "everything was seen before");
    // A pipe is guessed to be of a modest length.
    let ran = shop.ok_with_stdin("dedup - -o - --no-verify", lines.as_bytes());
    assert!(ran.stdout() == kept(&lines, &near).as_bytes());
    assert!(ran.stderr().contains("a guess"));
}

/// The plan bounds what is lost of unrelated texts at 1 in 10,000, however strict `--near` is.
#[test]
fn a_stricter_near_does_not_lose_more_strangers() {
    let shop = Workshop::new();
    let mut numbers = Numbers(11);
    let texts: Vec<String> = (0..20_000).map(|_| words(&mut numbers, 40).join(" ")).collect();
    shop.write("in.jsonl", jsonl(&texts));
    for near in ["0.8", "0.95", "0.99"] {
        let ran = shop.ok(&format!("dedup in.jsonl --dry-run --json --no-verify --near {near}"));
        let summary: serde_json::Value = serde_json::from_slice(ran.stdout()).unwrap();
        // At most 2 are expected, and 8 or more come by chance in 1 of 900 draws; the seed is fixed.
        assert!(summary["near"].as_u64().unwrap() < 8, "{near}: {} of 20,000", summary["near"]);
    }
}

#[test]
fn short_empty_and_unspaced_texts() {
    let shop = Workshop::new();
    let chinese =
        "我们认为这些真理是不言而喻的人人生而平等造物者赋予他们若干不可剥夺的权利其中包括生命权自由权和追求幸福的权利";
    let arabic =
        "يولد جميع الناس أحرارا متساوين في الكرامة والحقوق وقد وهبوا عقلا وضميرا وعليهم أن يعامل بعضهم بعضا بروح الإخاء";
    let texts = ["", "", "cat", "dog", "cat", chinese, arabic, chinese, arabic, "猫", "犬", "猫"];
    let lines: String = texts.iter().map(|text| format!("{{\"text\":\"{text}\"}}\n")).collect();
    shop.write("in.jsonl", &lines);
    shop.ok("dedup in.jsonl -o out.jsonl");
    let expected = ["", "", "cat", "dog", chinese, arabic, "猫", "犬"];
    let expected: String = expected.iter().map(|text| format!("{{\"text\":\"{text}\"}}\n")).collect();
    assert_eq!(
        shop.text("out.jsonl"),
        expected,
        "an empty text equals nothing; repeated words and sentences are found"
    );
}

#[test]
fn help_shows_examples() {
    let shop = Workshop::new();
    assert!(String::from_utf8_lossy(shop.ok("dedup --help").stdout()).contains("--resume"));
    assert_eq!(shop.run("dedup --no-such-option").code(), 2);
    assert_eq!(shop.run("dedup in.jsonl").code(), 2, "an output is needed");
    shop.write("one.jsonl", "{\"text\": \"one\"}\n");
    for senseless in ["--near 1.2", "--near 0", "--max-fn 2", "--near 1.2 --no-verify"] {
        let ran = shop.run(&format!("dedup one.jsonl -o out.jsonl {senseless}"));
        assert!(ran.code() == 2 && ran.stderr().contains("error: "), "{senseless}: {}", ran.stderr());
    }
    let ran = shop.run("dedup in.jsonl -o out.jsonl --threads 0");
    assert!(ran.code() == 2 && ran.stderr().contains("at least one thread"), "{}", ran.stderr());
}

#[test]
fn a_filter_built_for_another_nearness_is_named_as_such() {
    let shop = Workshop::new();
    let (texts, _) = corpus(60);
    shop.write("in.jsonl", jsonl(&texts));
    for (name, options) in
        [("same", "--near 0.8"), ("lower", "--near 0.3 --far 0.1"), ("cut", "--near 0.8 --shingle chars:8")]
    {
        shop.ok(&format!("build in.jsonl -o {name}.nearset {options} -q"));
    }
    for verify in ["", "--no-verify"] {
        let said = |name: &str| {
            shop.ok(&format!("dedup in.jsonl --dry-run --near 0.8 --against {name}.nearset {verify}")).stderr()
        };
        let of = "by Jaccard similarity of";
        assert!(said("same").contains(&format!("same.nearset: near 0.8 {of} words:5 shingles, not compared")));
        assert!(!said("same").contains("was built with another"), "{}", said("same"));
        let (lower, cut) = (said("lower"), said("cut"));
        assert!(lower.contains(&format!("lower.nearset: near 0.3 {of} words:5")), "{lower}");
        assert!(cut.contains(&format!("cut.nearset: near 0.8 {of} chars:8")), "{cut}");
        for (said, name) in [(lower, "lower"), (cut, "cut")] {
            assert!(said.contains(&format!("{name}.nearset was built with another --near, --shingle")), "{said}");
        }
    }
    let edits = shop.ok("dedup in.jsonl --dry-run --metric edit --near 2 --against same.nearset").stderr();
    assert!(edits.contains("same.nearset was built with another"), "{edits}");
}

#[test]
fn marked_records_are_counted_apart_and_their_ids_may_be_numbers() {
    let shop = Workshop::new();
    let (texts, _) = corpus(3);
    shop.write("in.jsonl", jsonl(&texts[..2]));
    shop.write("marks.jsonl", "{\"a\": 0, \"b\": \"1\", \"duplicate\": true}\n");
    let said = shop.ok("dedup in.jsonl -o out.jsonl --decisions marks.jsonl").stderr();
    assert!(said.contains("removed   0 near a kept record, each compared with it"), "{said}");
    assert!(said.contains("removed   1 marked as duplicates of a kept record (50.0 %)"), "{said}");
}

#[test]
fn what_is_not_where_it_is_looked_for_has_a_cure() {
    let shop = Workshop::new();
    shop.write("in.jsonl", jsonl(&corpus(3).0));
    let said = shop.run("dedup in.jsonl -o out.jsonl --decisions none.jsonl").stderr();
    assert!(said.contains("none.jsonl: cannot be read") && said.contains("check the path"), "{said}");
    let said = shop.run("dedup in.jsonl -o out.jsonl --save none/seen.library").stderr();
    assert!(said.contains("none/seen.library: the folder none does not exist: create it first"), "{said}");
}

#[test]
fn what_another_metric_has_annotated_does_not_stay() {
    let shop = Workshop::new();
    let (texts, _) = corpus(30);
    shop.write("in.jsonl", jsonl(&texts));
    let rows: String = texts.iter().enumerate().map(|(i, text)| format!("{i},{text}\n")).collect();
    shop.write("in.csv", format!("id,text\n{rows}"));
    parquet(&shop.path("in.parquet"), &texts);
    for extension in ["jsonl", "csv", "parquet"] {
        let dedup = |from: &str, to: &str, options: &str| {
            shop.ok(&format!("dedup {from}.{extension} -o {to}.{extension} --annotate -q {options}"));
        };
        dedup("in", "one", "--near 0.5");
        dedup("one", "two", "--no-verify --near 0.9 --force");
        dedup("two", "three", "--metric edit --near 1 --force");
        let lines = |name: &str| match extension {
            "parquet" => parquet_rows(&shop.path(&format!("{name}.parquet"))),
            _ => shop.text(&format!("{name}.{extension}")).lines().map(str::to_owned).collect(),
        };
        let (two, three) = (lines("two").concat(), lines("three").concat());
        let similarities = lines("one").concat().matches("0.9").count();
        assert!(similarities > 5 && two.matches("0.9").count() == 0, "{extension}: {two}");
        for name in ["duplicate_of", "similarity", "hits"] {
            assert!(extension == "csv" || two.contains(name), "{extension}: {two}");
        }
        if extension == "jsonl" {
            assert!(three.contains("\"similarity\":null,\"hits\":null,\"distance\":"), "{three}");
            assert!(!two.contains("\"duplicate_of\":\""), "{two}");
        }
    }
    // What no annotation has added is left alone, whatever it is called, and however often it is annotated.
    shop.write("own.jsonl", "{\"text\": \"a b c d e f\", \"hits\": 7, \"distance\": 2}\n");
    shop.ok("dedup own.jsonl -o kept.jsonl --annotate -q");
    shop.ok("dedup kept.jsonl -o again.jsonl --annotate -q");
    assert!(shop.text("again.jsonl").contains("\"hits\": 7, \"distance\": 2,"), "{}", shop.text("again.jsonl"));
    shop.write("own.csv", "text,hits,distance\na b c d e f,7,2\n");
    shop.ok("dedup own.csv -o kept.csv --annotate -q");
    shop.ok("dedup kept.csv -o again.csv --annotate -q");
    assert!(shop.text("again.csv").contains("a b c d e f,7,2,"), "{}", shop.text("again.csv"));
}
