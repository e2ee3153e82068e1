//! Filters built, queried, merged, shown and measured.

use nearset::family::{MinHash, WorkLimit};
use nearset::plan::Request;
use nearset::spec::{Rule, Step};
use nearset::{Filter, FilterSpec, Seed, Spec, Table};

use crate::support::{Numbers, Workshop, corpus, jsonl, parquet, parquet_rows, words};

/// Hashes of 256 bits as hexadecimal lines, and the same with a few bits flipped.
fn hashes(count: usize, flips: usize) -> (String, String) {
    let mut numbers = Numbers(5);
    let (mut stored, mut near) = (String::new(), String::new());
    for _ in 0..count {
        let mut words: Vec<u64> = (0..4).map(|_| numbers.next()).collect();
        stored.extend(words.iter().map(|word| format!("{word:016x}")).chain(["\n".to_owned()]));
        for flip in 0..flips {
            // Distinct places: a quarter of the string each.
            words[flip % 4] ^= 1 << (numbers.below(16) + 16 * (flip as u64 / 4));
        }
        near.extend(words.iter().map(|word| format!("{word:016x}")).chain(["\n".to_owned()]));
    }
    (stored, near)
}

fn json(bytes: &[u8]) -> serde_json::Value {
    serde_json::from_slice(bytes).unwrap()
}

#[test]
fn texts_are_screened_and_the_exit_code_tells() {
    let shop = Workshop::new();
    let (texts, _) = corpus(300);
    shop.write("seen.jsonl", jsonl(&texts[..150]));
    shop.write("new.jsonl", jsonl(&texts[150..]));
    shop.write("other.txt", "nothing of this was ever seen anywhere before today\n");
    shop.ok("build seen.jsonl -o seen.nearset --near 0.8");
    assert_eq!(shop.run("query seen.nearset other.txt").code(), 0, "nothing is near");
    let ran = shop.run("query seen.nearset seen.jsonl --json");
    assert_eq!(ran.code(), 10, "something is near");
    assert_eq!((&json(ran.stdout())["items"], &json(ran.stdout())["near"]), (&150.into(), &150.into()));
    assert_eq!(shop.run("query seen.nearset new.jsonl -o far.jsonl --keep far -q").code(), 10);
    assert_eq!(shop.run("query seen.nearset new.jsonl -o near.jsonl --keep near -q").code(), 10);
    assert_eq!(shop.run("query seen.nearset new.jsonl -o tagged.jsonl --tag -q --threads 1").code(), 10);
    let (far, near) = (shop.text("far.jsonl"), shop.text("near.jsonl"));
    assert_eq!(far.lines().count() + near.lines().count(), 150);
    for line in shop.text("tagged.jsonl").lines() {
        let record = json(line.as_bytes());
        let id = format!("{{\"id\": {},", record["id"]);
        assert_eq!(record["near"].as_bool().unwrap(), near.contains(&id), "{id}");
    }
    assert_eq!(shop.run("query seen.nearset new.jsonl -o x.jsonl").code(), 2, "what to write must be said");
}

#[test]
fn parquet_rows_are_screened_and_tagged() {
    let shop = Workshop::new();
    let (texts, _) = corpus(300);
    shop.write("seen.jsonl", jsonl(&texts[..150]));
    parquet(&shop.path("new.parquet"), &texts);
    shop.ok("build seen.jsonl -o seen.nearset --near 0.8 -q");
    for what in ["--keep near", "--keep far", "--tag"] {
        let name = what.split_whitespace().last().unwrap().trim_start_matches('-');
        assert_eq!(shop.run(&format!("query seen.nearset new.parquet -o {name}.parquet {what} -q")).code(), 10);
    }
    let [near, far, tagged] = ["near", "far", "tag"].map(|name| parquet_rows(&shop.path(&format!("{name}.parquet"))));
    assert!(near.len() >= 150 && near.len() + far.len() == 300);
    let all = parquet_rows(&shop.path("new.parquet"));
    for (row, tagged) in all.iter().zip(&tagged) {
        let own = row.strip_suffix('}').unwrap();
        assert!(tagged.starts_with(&format!("{own}, near: {}, hits: ", near.contains(row))), "{tagged}");
    }
    let ran = shop.run("query seen.nearset new.parquet -o x.jsonl --tag");
    assert!(ran.code() == 1 && ran.stderr().contains("name it .parquet"), "{}", ran.stderr());
}

#[test]
fn bit_strings_within_the_radius_are_never_missed() {
    let shop = Workshop::new();
    let (stored, near) = hashes(400, 4);
    shop.write("stored.txt", stored);
    shop.write("near.txt", near);
    shop.write(
        "far.txt",
        hashes(400, 0)
            .0
            .lines()
            .map(|line| format!("{}\n", line.chars().rev().collect::<String>()))
            .collect::<String>(),
    );
    let ran = shop.ok("build stored.txt -o f.nearset --metric hamming --near 4 --far 64 --max-fn 0 --max-fp 0.01");
    assert!(ran.stderr().contains("hamming over 256 bits"), "{}", ran.stderr());
    let near = json(shop.run("query f.nearset near.txt --json").stdout());
    assert_eq!(near["near"], 400);
    let far = json(shop.run("query f.nearset far.txt --json").stdout());
    assert!(far["near"].as_u64().unwrap() < 20, "{far}");
    let info = String::from_utf8(shop.ok("info f.nearset").stdout().to_vec()).unwrap();
    assert!(info.contains("hamming over 256 bits"), "{info}");
}

#[test]
fn a_pipe_is_told_how_long_and_how_many_its_items_are() {
    let shop = Workshop::new();
    let (stored, _) = hashes(400, 4);
    let build = "build - --format text --metric hamming --near 4 --far 64 --max-fn 0 --max-fp 0.01 -o";
    shop.ok_with_stdin(&format!("{build} f.nearset --bits 256 --capacity 1e3"), stored.as_bytes());
    assert_eq!(json(shop.ok("info f.nearset --json").stdout())["items"], 400);
    // Where nobody says how many there will be, it is a guess, beyond which the filter grows.
    shop.ok_with_stdin(&format!("{build} guessed.nearset --bits 256"), stored.as_bytes());
    for (given, lacking) in [("--capacity 1k", "give --bits N"), ("--dimension 9", "give --bits")] {
        let ran = shop.run(&format!("{build} g.nearset {given}"));
        assert!(ran.code() != 0 && ran.stderr().contains(lacking), "{given}: {}", ran.stderr());
    }
    shop.write("a.txt", "some text\n");
    let ran = shop.run("build a.txt -o a.nearset --near 0.8 --worst-case");
    assert!(ran.code() == 2 && ran.stderr().contains("beside --far"), "{}", ran.stderr());
}

#[test]
fn vectors_by_cosine() {
    let shop = Workshop::new();
    let mut numbers = Numbers(9);
    let mut unit = || numbers.next() as f64 / u64::MAX as f64 - 0.5;
    let (mut stored, mut near) = (String::new(), String::new());
    for _ in 0..300 {
        let vector: Vec<f64> = (0..64).map(|_| unit()).collect();
        let moved: Vec<f64> = vector.iter().map(|x| x + 0.05 * unit()).collect();
        stored += &format!("{{\"vector\": {vector:?}}}\n");
        near += &format!("{{\"vector\": {moved:?}}}\n");
    }
    shop.write("stored.jsonl", stored);
    shop.write("near.jsonl", near);
    let build = "build stored.jsonl -o v.nearset --metric cosine --near 0.95 --far 0.3";
    assert_eq!(shop.run("build stored.jsonl -o v.nearset --metric cosine --near 0.95").code(), 2, "far is needed");
    shop.ok(build);
    let found = json(shop.run("query v.nearset near.jsonl --json").stdout());
    assert!(found["near"].as_u64().unwrap() >= 290, "{found}");
}

#[test]
fn merged_filters_hold_the_items_of_both() {
    let shop = Workshop::new();
    let (texts, _) = corpus(200);
    shop.write("a.jsonl", jsonl(&texts[..100]));
    shop.write("b.jsonl", jsonl(&texts[100..]));
    shop.write("all.jsonl", jsonl(&texts));
    for name in ["a", "b", "all"] {
        shop.ok(&format!("build {name}.jsonl -o {name}.nearset --near 0.8 --capacity 200 -q"));
    }
    shop.ok("merge a.nearset b.nearset -o both.nearset");
    assert!(shop.read("both.nearset") == shop.read("all.nearset"), "merging is inserting into one");
    shop.ok("build b.jsonl -o seeded.nearset --near 0.8 --capacity 200 --seed 1 -q");
    let ran = shop.run("merge a.nearset seeded.nearset -o x.nearset");
    assert!(ran.code() == 1 && ran.stderr().contains("differ in their seed"), "{}", ran.stderr());
    assert_eq!(shop.run("merge a.nearset b.nearset -o a.nearset --force").code(), 1, "an input is not overwritten");
}

#[test]
fn info_shows_the_curve_and_refuses_damage() {
    let shop = Workshop::new();
    let (texts, _) = corpus(200);
    shop.write("a.jsonl", jsonl(&texts));
    shop.ok("build a.jsonl -o a.nearset --near 0.8 -q");
    let info = json(shop.ok("info a.nearset --json").stdout());
    assert_eq!((&info["capacity"], &info["overfull"]), (&200.into(), &false.into()));
    // A third of the texts are copies, which count for less than one.
    assert!(
        (140..=180).contains(&info["load"].as_u64().unwrap()) && info["unrelated"].as_f64().unwrap() < 1e-4,
        "{info}"
    );
    assert_eq!((&info["items"], &info["rows"], &info["bands"]), (&200.into(), &5.into(), &132.into()));
    let curve: Vec<f64> = info["curve"].as_array().unwrap().iter().map(|p| p["accepted"].as_f64().unwrap()).collect();
    assert!(curve[0] > 0.999 && curve[20] < 0.01 && curve.is_sorted_by(|a, b| a >= b), "{curve:?}");
    assert!(String::from_utf8_lossy(shop.ok("info a.nearset").stdout()).contains("132 bands of 5 rows"));
    let shown = String::from_utf8(shop.ok("info a.nearset").stdout().to_vec()).unwrap();
    assert!(shown.contains("100 % │") && shown.contains("half at 0."), "{shown}");
    shop.ok("info a.nearset --plot curve.svg");
    let svg = shop.text("curve.svg");
    assert!(svg.starts_with("<svg ") && svg.contains("as it is now, with 200 items") && svg.contains("half at 0."));
    assert_eq!(shop.run("info a.nearset --plot a.nearset").code(), 1, "the filter is not drawn over");
    let mut bytes = shop.read("a.nearset");
    let last = bytes.len() - 1;
    bytes[last / 2] ^= 1;
    shop.write("bad.nearset", &bytes);
    shop.write("short.nearset", &bytes[..last / 2]);
    for (name, why) in [("bad", "damaged"), ("short", "cut off"), ("missing", "check the path")] {
        let ran = shop.run(&format!("info {name}.nearset"));
        assert_eq!(ran.code(), 1);
        assert!(ran.stderr().contains(why), "{}", ran.stderr());
    }
}

#[test]
fn check_measures_what_was_predicted() {
    let shop = Workshop::new();
    let (texts, near) = corpus(900);
    shop.write("stored.jsonl", jsonl(&texts[..600]));
    shop.write("queries.jsonl", jsonl(&texts[600..]));
    shop.ok("build stored.jsonl -o f.nearset --near 0.8 -q");
    let check = "check f.nearset queries.jsonl --against-items stored.jsonl --near 0.85 --far 0.7";
    let measured = &json(shop.ok(&format!("{check} --json")).stdout())["measured"];
    // Two thirds of the 100 copies among the queries are of stored texts, or of copies of these.
    let near_queries = measured["near_queries"].as_u64().unwrap();
    assert!(
        near[600..].iter().filter(|near| **near).count() == 100 && (50..=100).contains(&near_queries),
        "{near_queries}"
    );
    assert_eq!(measured["missed"], 0);
    assert!(measured["wrong"].as_u64().unwrap() <= 2, "{measured}");
    let far_queries = measured["far_queries"].as_u64().unwrap();
    assert!((280..=300).contains(&(far_queries + near_queries)), "only copies of copies lie between: {measured}");
    let table = String::from_utf8(shop.ok(check).stdout().to_vec()).unwrap();
    assert!(table.contains("300 queries against 600 items") && table.contains("predicted"), "{table}");
}

#[test]
fn every_command_has_help_with_examples() {
    let shop = Workshop::new();
    for command in ["dedup", "build", "query", "search", "merge", "info", "check"] {
        let help = String::from_utf8(shop.ok(&format!("{command} --help")).stdout().to_vec()).unwrap();
        assert!(help.contains("Examples:") && help.contains(&format!("nearset {command} ")), "{command}");
    }
}

/// A frozen file, and what its row in the manifest says of queries: whether each is accepted, and the text.
fn frozen(shop: &Workshop, name: &str) -> Vec<(bool, String)> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/format/v1");
    shop.write(name, std::fs::read(folder.join(name)).unwrap());
    let manifest = std::fs::read_to_string(folder.join("MANIFEST.tsv")).unwrap();
    let row = manifest.lines().find(|row| row.starts_with(name)).unwrap();
    let queries = row.split('\t').nth(4).unwrap().split('|');
    queries
        .map(|query| query.split_once(" text:").unwrap())
        .map(|(near, text)| (near == "yes", text.to_owned()))
        .collect()
}

#[test]
fn filters_of_several_generations_answer_together() {
    let shop = Workshop::new();
    let queries = frozen(&shop, "generations-window.nearset");
    let texts: Vec<String> = queries.iter().map(|(_, text)| text.clone()).collect();
    shop.write("queries.jsonl", jsonl(&texts));
    assert_eq!(shop.run("query generations-window.nearset queries.jsonl -o tagged.jsonl --tag -q").code(), 10);
    let near = |line: &str| json(line.as_bytes())["near"].as_bool().unwrap();
    let answers: Vec<bool> = shop.text("tagged.jsonl").lines().map(near).collect();
    assert_eq!(answers, queries.iter().map(|(near, _)| *near).collect::<Vec<_>>());
    let ran = shop.ok("info generations-window.nearset");
    let told = String::from_utf8_lossy(ran.stdout()).into_owned();
    for fact in ["2 generations", "the last 2 items at least, in 2 generations of 2", "missed at 0.8"] {
        assert!(told.contains(fact), "{fact}: {told}");
    }
    assert_eq!(json(shop.ok("info generations-window.nearset --json").stdout())["generations"], 2);
    shop.ok("check generations-window.nearset queries.jsonl --near 0.8 --far 0.5 --against-items queries.jsonl");
    // Twice the items are more than it is made for, though here they are the same ones.
    shop.ok("merge generations-window.nearset generations-window.nearset -o merged.nearset -q");
    assert_eq!(shop.run("query merged.nearset queries.jsonl -o again.jsonl --tag -q").code(), 10);
    assert_eq!(shop.text("again.jsonl").lines().map(near).collect::<Vec<_>>(), answers);
    shop.ok("dedup queries.jsonl -o out.jsonl --against generations-window.nearset --removed removed.jsonl");
    let removed = shop.text("removed.jsonl").matches("near generations-window.nearset").count();
    assert_eq!(removed, queries.iter().filter(|(near, _)| *near).count());
}

#[test]
fn a_filter_grows_beyond_its_capacity_in_one_file() {
    let shop = Workshop::new();
    let mut numbers = Numbers(5);
    let texts: Vec<String> = (0..4000).map(|_| words(&mut numbers, 30).join(" ")).collect();
    shop.write("seen.jsonl", jsonl(&texts[..3000]));
    shop.write("other.jsonl", jsonl(&texts[3000..]));
    let ran = shop.ok("build seen.jsonl -o seen.nearset --near 0.8 --capacity 100");
    assert!(ran.stderr().contains("grew      to 5 generations"), "{}", ran.stderr());
    let info = json(shop.ok("info seen.nearset --json").stdout());
    assert_eq!((&info["capacity"], &info["generations"]), (&3100.into(), &5.into()));
    assert!((2950..=3050).contains(&info["load"].as_u64().unwrap()), "{info}");
    assert!(info["unrelated"].as_f64().unwrap() < 1e-4, "{info}");
    shop.ok("dedup other.jsonl -o kept.jsonl --against seen.nearset -q");
    assert_eq!(shop.text("kept.jsonl").lines().count(), 1000, "none of them was seen");
    shop.ok("dedup seen.jsonl -o none.jsonl --against seen.nearset -q");
    assert_eq!(shop.text("none.jsonl"), "");
}

/// As files of the first version were: made for 100 texts, given 3,000, and nothing in them says so.
#[test]
fn an_overfull_filter_is_refused_by_everything_that_acts_on_it() {
    let shop = Workshop::new();
    let mut numbers = Numbers(6);
    let texts: Vec<String> = (0..3200).map(|_| words(&mut numbers, 30).join(" ")).collect();
    let spec = Request::default().capacity(100).plan_dedup().unwrap().spec;
    let mut filter = Filter::new(&FilterSpec::from(spec.near().unwrap().clone())).unwrap();
    filter.insert_all(texts[..3000].iter()).unwrap();
    let mut bytes = Vec::new();
    filter.encode(&mut bytes).unwrap();
    shop.write("old.nearset", &bytes);
    shop.write("new.jsonl", jsonl(&texts[3000..]));
    for command in ["dedup new.jsonl -o out.jsonl -q --against old.nearset", "query old.nearset new.jsonl -q"] {
        let ran = shop.run(command);
        let said = ran.stderr();
        assert!(ran.code() == 1 && said.contains("old.nearset: the filter is overfull"), "{command}: {said}");
        assert!(
            said.contains("of all unrelated items are called near") && said.contains("--allow-overfull"),
            "{command}: {said}"
        );
        assert!(!shop.exists("out.jsonl"));
    }
    let ran = shop.run("query old.nearset new.jsonl -q --allow-overfull");
    assert!(
        ran.code() == 10 && ran.stderr().contains("warning: old.nearset: the filter is overfull"),
        "{}",
        ran.stderr()
    );
    let ran = shop.ok("dedup new.jsonl -o out.jsonl -q --against old.nearset --allow-overfull");
    assert!(ran.stderr().contains("warning: old.nearset: the filter is overfull"), "{}", ran.stderr());
    let info = json(shop.ok("info old.nearset --json").stdout());
    assert_eq!((&info["overfull"], &info["capacity"]), (&true.into(), &serde_json::Value::Null));
    assert!(info["unrelated"].as_f64().unwrap() > 0.3, "{info}");
}

#[test]
fn merging_more_than_there_is_room_for_is_refused() {
    let shop = Workshop::new();
    let mut numbers = Numbers(7);
    for part in ["a", "b"] {
        let texts: Vec<String> = (0..100).map(|_| words(&mut numbers, 30).join(" ")).collect();
        shop.write(&format!("{part}.jsonl"), jsonl(&texts));
        shop.ok(&format!("build {part}.jsonl -o {part}.nearset --near 0.8 --capacity 100 -q"));
    }
    let ran = shop.run("merge a.nearset b.nearset -o both.nearset");
    assert!(ran.code() == 1 && ran.stderr().contains("made for 100 items"), "{}", ran.stderr());
    assert!(!shop.exists("both.nearset"));
    let ran = shop.ok("merge a.nearset b.nearset -o both.nearset --allow-overfull -q");
    assert!(ran.stderr().contains("warning"), "{}", ran.stderr());
    assert_eq!(shop.run("query both.nearset a.jsonl -q").code(), 1);
}

#[test]
fn a_file_that_asks_for_too_much_work_is_refused_unless_it_is_trusted() {
    let shop = Workshop::new();
    let rule = Rule::cascade([Step::And(1)]).unwrap();
    let (family, seed, table) = (MinHash::default(), Seed::new(1), Table::Bits(64));
    let spec = Spec::by_rule(family, 1_000_000, rule, table, seed);
    let filter = Filter::new_within(&FilterSpec::from(spec), WorkLimit::Unlimited).unwrap();
    let mut bytes = Vec::new();
    filter.encode(&mut bytes).unwrap();
    shop.write("f.nearset", &bytes);
    shop.write("in.jsonl", "{\"text\":\"some words that are fine\"}\n");
    for command in ["info f.nearset", "query f.nearset in.jsonl", "merge f.nearset f.nearset -o g.nearset"] {
        let ran = shop.run(command);
        assert_eq!(ran.code(), 1, "{command}");
        let said = ran.stderr();
        assert!(said.contains("f.nearset: the file is refused: each item would take about"), "{said}");
        assert!(said.contains("hint: --unlimited-work lifts the limit"), "{said}");
    }
    shop.ok("info f.nearset --unlimited-work");
}

#[test]
fn a_filter_is_not_saved_under_the_name_of_something_packed() {
    let shop = Workshop::new();
    shop.write("a.jsonl", jsonl(&corpus(30).0));
    for command in
        ["build a.jsonl -o f.nearset.gz --near 0.8", "dedup a.jsonl -o out.jsonl --no-verify --save f.nearset.zst"]
    {
        let ran = shop.run(command);
        assert!(ran.code() == 1 && ran.stderr().contains("are not packed"), "{command}: {}", ran.stderr());
        assert_eq!(shop.names(), ["a.jsonl"], "{command}");
    }
}

#[test]
fn long_vectors_are_planned_and_built_where_their_work_is_allowed() {
    let shop = Workshop::new();
    let ran = shop.ok("plan --metric cosine --dimension 65536 --near 0.8 --far 0.3 --capacity 1e4");
    assert!(String::from_utf8_lossy(ran.stdout()).contains("bands"));
    let vector = |first: u32| format!("{{\"vector\":[{first}{}]}}\n", ",1".repeat(65535));
    shop.write("v.jsonl", vector(1) + &vector(2));
    let build = "build v.jsonl -o v.nearset --metric cosine --near 0.8 --far 0.3 --capacity 1e4";
    let ran = shop.run(build);
    assert!(ran.code() == 1 && ran.stderr().contains("hint: --unlimited-work"), "{}", ran.stderr());
}

#[test]
fn filters_that_are_not_alike_are_told_apart_in_the_units_that_were_typed() {
    let shop = Workshop::new();
    shop.write("in.jsonl", jsonl(&corpus(30).0));
    shop.ok("build in.jsonl -o a.nearset --near 0.8 -q");
    shop.ok("build in.jsonl -o b.nearset --near 0.7 -q");
    let ran = shop.run("merge a.nearset b.nearset -o c.nearset");
    let said = ran.stderr();
    assert!(ran.code() == 1 && said.contains("built with --near 0.8 and --near 0.7; build them alike"), "{said}");
    assert!(!said.contains("99999") && !said.contains("00000"), "{said}");
}
