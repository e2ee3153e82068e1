//! First impressions: what a newcomer gets wrong is answered with what to type instead, and what is promised is so.

use serde_json::Value;

use crate::support::{Workshop, corpus, jsonl};

const GOOD: &str = "{\"id\":\"a\",\"text\":\"some words that are fine\"}\n";

fn hashes() -> String {
    // Multiplied by an odd constant, so that they look random and differ.
    let hash = |i: u64| format!("{:016x}", i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).repeat(4);
    (1..=100).map(|i| format!("{{\"id\":\"h{i}\",\"pdq\":\"{}\"}}\n", hash(i))).collect()
}

#[test]
fn vectors_are_no_texts_and_none_of_them_is_to_be_skipped() {
    let shop = Workshop::new();
    let mut array = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    array.extend_from_slice(
        format!("{:<117}\n", "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }").as_bytes(),
    );
    array.extend((0..6u8).flat_map(|i| f32::from(i).to_le_bytes()));
    shop.write("v.npy", &array);
    for command in ["dedup v.npy -o o.npy", "pairs v.npy", "dedup v.npy -o o.npy --no-verify"] {
        let ran = shop.run(command);
        assert_eq!(ran.code(), 1);
        assert!(ran.stderr().contains("v.npy: holds vectors, and texts are needed here"), "{}", ran.stderr());
        assert!(ran.stderr().contains("--metric cosine") && !ran.stderr().contains("--on-error"), "{}", ran.stderr());
        let ran = shop.run(&format!("{command} --on-error skip"));
        assert!(ran.code() == 1 && ran.stderr().contains("holds vectors"), "{}", ran.stderr());
    }
    assert_eq!(shop.names(), ["v.npy"]);
}

#[test]
fn where_no_filter_pays_the_index_is_named_as_it_is_typed() {
    let shop = Workshop::new();
    shop.write("hashes.jsonl", hashes());
    let ran = shop.run("build hashes.jsonl --metric hamming --near 31 --far 90 -o h.nearset --field pdq");
    assert_eq!(ran.code(), 1);
    let hint = "nearset build hashes.jsonl -o h.nearset --index --metric hamming --near 31 --field pdq";
    assert!(ran.stderr().contains(hint), "{}", ran.stderr());
    shop.ok(hint.strip_prefix("nearset ").unwrap());
    for goal in ["--near 31 --far 90 --capacity 1e6", "--near 60 --far 90 --capacity 1e6"] {
        let ran = shop.run(&format!("plan --metric hamming --bits 256 {goal}"));
        let said = String::from_utf8_lossy(ran.stdout()).into_owned();
        let near: String = goal.split(' ').take(2).collect::<Vec<_>>().join(" ");
        assert!(
            said.contains(&format!("nearset build ITEMS -o items.nearset --index --metric hamming {near}")),
            "{said}"
        );
        assert!(said.trim_end().ends_with("nearset search items.nearset QUERIES"), "{said}");
    }
}

#[test]
fn a_file_that_is_no_filter_is_not_shown_byte_by_byte() {
    let shop = Workshop::new();
    shop.write("some.csv", "text\nabc\n");
    shop.write("in.jsonl", GOOD);
    for command in ["dedup in.jsonl -o o.jsonl --against some.csv", "query some.csv in.jsonl", "info some.csv"] {
        let ran = shop.run(command);
        assert!(ran.code() == 1 && ran.stderr().contains("neither a filter nor an index"), "{}", ran.stderr());
        assert!(ran.stderr().contains("--save seen.library") && !ran.stderr().contains("4e"), "{}", ran.stderr());
    }
}

#[test]
fn a_table_without_rows_comes_out_as_it_went_in() {
    let shop = Workshop::new();
    for (name, header) in [("in.csv", "id,text\n"), ("bom.csv", "\u{feff}id,text\r\n"), ("open.csv", "id,text")] {
        shop.write(name, header);
        for flags in ["", "--no-verify"] {
            shop.ok(&format!("dedup {name} -o out.csv --force {flags}"));
            assert_eq!(shop.text("out.csv"), header);
            shop.ok("dedup out.csv -o again.csv --force");
        }
    }
    shop.write("rows.csv", "id,text\n1,a text\n");
    shop.ok("dedup in.csv rows.csv in.csv -o both.csv");
    assert_eq!(shop.text("both.csv"), "id,text\n1,a text\n");
}

/// Whether a value is what scripts can use: no number in words, no sentence.
fn is_plain(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.values().all(is_plain),
        Value::Array(values) => values.iter().all(is_plain),
        Value::String(text) => text.parse::<f64>().is_err() && !text.contains("missed") && !text.contains(" kB"),
        _ => true,
    }
}

#[test]
fn what_info_says_in_json_are_numbers_and_names() {
    let shop = Workshop::new();
    let (texts, _) = corpus(1350);
    shop.write("in.jsonl", jsonl(&texts));
    shop.write("hashes.jsonl", hashes());
    shop.ok("build in.jsonl -o f.nearset --near 0.8 -q");
    shop.ok("build in.jsonl -o i.nearset --index --near 0.8 -q");
    shop.ok("build hashes.jsonl -o h.nearset --index --metric hamming --near 31 --field pdq -q");
    shop.ok("build hashes.jsonl -o e.nearset --metric hamming --near 2 --far 64 --max-fn 0 --field pdq -q");
    for (file, field) in [
        ("f.nearset", "/threshold"),
        ("f.nearset", "/reserved/capacity"),
        ("f.nearset", "/promised/missed"),
        ("i.nearset", "/bands"),
        ("h.nearset", "/named"),
        ("h.nearset", "/radius"),
        ("h.nearset", "/blocks"),
        ("e.nearset", "/near"),
    ] {
        let ran = shop.ok(&format!("info {file} --json"));
        let mut value: Value = serde_json::from_slice(ran.stdout()).unwrap();
        assert!(value.pointer(field).is_some_and(Value::is_number), "{file} {field}: {value}");
        // A seed may be a number of 128 bits, which JSON has no room for.
        value.as_object_mut().unwrap().remove("seed").unwrap();
        assert!(is_plain(&value), "{file}: {value}");
    }
}

#[test]
fn near_is_the_same_everywhere() {
    let shop = Workshop::new();
    shop.write("in.jsonl", format!("{GOOD}{GOOD}{{\"text\":\"some words that are fine here\"}}\n"));
    for command in ["dedup in.jsonl -o out.jsonl --force", "dedup in.jsonl --no-verify -o out.jsonl --force"] {
        shop.ok(&format!("{command} --near 1"));
        assert_eq!(shop.text("out.jsonl").lines().count(), 2, "{command}");
    }
    assert_eq!(shop.ok("pairs in.jsonl --near 1 -q").stdout(), b"a\tb\tsimilarity\na\ta\t1\n");
    shop.ok("build in.jsonl -o one.nearset --near 1 -q");
    assert_eq!(shop.run("query one.nearset in.jsonl -q").code(), 10);
    for command in [
        "dedup in.jsonl --dry-run",
        "dedup in.jsonl --dry-run --no-verify",
        "pairs in.jsonl",
        "cluster in.jsonl",
        "build in.jsonl -o f.nearset",
        "plan --metric jaccard --capacity 10",
    ] {
        for near in ["1.5", "-1", "0"] {
            let ran = shop.run(&format!("{command} --near={near}"));
            assert_eq!(ran.code(), 2, "{command} --near={near}: {}", ran.stderr());
        }
    }
    let ran = shop.run("build in.jsonl -o f.nearset --near 0.05");
    assert!(ran.code() == 1 && !ran.stderr().contains('-'), "no far is below 0: {}", ran.stderr());
}

#[test]
fn a_wrong_id_field_is_named() {
    let shop = Workshop::new();
    let (texts, _) = corpus(30);
    shop.write("in.jsonl", jsonl(&texts));
    shop.write("in.csv", "key,text\n1,a text\n");
    crate::support::parquet(&shop.path("in.parquet"), &texts);
    for (name, found) in [("in.jsonl", "\"id\", \"text\", \"n\""), ("in.csv", "\"key\""), ("in.parquet", "\"text\"")] {
        for command in ["dedup IN -o out --force", "pairs IN", "build IN -o f.nearset --near 0.8"] {
            let ran = shop.run(&format!("{} --id-field nosuch", command.replace("IN", name)));
            let said = ran.stderr();
            assert!(ran.code() == 1 && said.contains(&format!("{name}: no record has the field \"nosuch\"")), "{said}");
            assert!(said.contains(found) && said.contains("hint: --id-field names another"), "{said}");
        }
    }
    shop.ok("dedup in.csv -o out.csv --id-field key");
    shop.ok("dedup in.parquet -o out.parquet --id-field n");
    // Some records may lack it, and a default that nobody has named may be missing in all.
    shop.write("some.jsonl", "{\"text\":\"a\"}\n{\"text\":\"b\",\"key\":7}\n");
    shop.ok("dedup some.jsonl -o some.out.jsonl --id-field key");
    shop.ok("dedup some.jsonl -o none.out.jsonl");
}

#[test]
fn a_run_that_could_read_nothing_has_failed() {
    let shop = Workshop::new();
    shop.write("bad.jsonl", "{\"a\":1}\n{\"a\":2}\n");
    shop.write("good.jsonl", GOOD);
    shop.ok("build good.jsonl -o good.nearset --near 0.8 -q");
    shop.ok("build good.jsonl -o index.nearset --index --near 0.8 -q");
    let before = shop.names();
    for command in [
        "dedup bad.jsonl -o out.jsonl",
        "dedup bad.jsonl -o out.jsonl --no-verify",
        "dedup bad.jsonl -o out.jsonl --keep longest",
        "pairs bad.jsonl -o out.tsv",
        "cluster bad.jsonl -o out.tsv",
        "query good.nearset bad.jsonl -o out.jsonl --tag",
        "search index.nearset bad.jsonl -o out.tsv",
        "build bad.jsonl -o out.nearset --near 0.8",
        "build bad.jsonl -o out.nearset --index --near 0.8",
    ] {
        let ran = shop.run(&format!("{command} --on-error skip"));
        assert_eq!(ran.code(), 1, "{command}: {}", ran.stderr());
        assert!(ran.stderr().contains("none of 2 records could be read"), "{command}: {}", ran.stderr());
        assert!(ran.stderr().contains("no field \"text\""), "{command}: {}", ran.stderr());
        assert_eq!(shop.names(), before, "{command}");
    }
    shop.write("empty.jsonl", "");
    shop.ok("dedup empty.jsonl -o out.jsonl --on-error skip");
}

#[test]
fn the_list_of_removals_says_where_the_record_is_that_stays() {
    let shop = Workshop::new();
    shop.write("a.jsonl", "{\"text\":\"something else\"}\n{\"id\":\"x\",\"text\":\"the same text twice\"}\n");
    shop.write("b.jsonl", "{\"id\":\"y\",\"text\":\"The same text, twice!\"}\n");
    let expected = "{\"id\":\"y\",\"file\":\"b.jsonl\",\"line\":1,\"near\":\"x\",\"similarity\":1,\
                    \"near_file\":\"a.jsonl\",\"near_line\":2,\"reason\":\"near a kept record\"}\n";
    for flags in ["", "--keep min:id"] {
        shop.ok(&format!("dedup a.jsonl b.jsonl -o out.jsonl --removed removed.jsonl --force {flags}"));
        assert_eq!(shop.text("removed.jsonl"), expected, "{flags}");
    }
    shop.ok("dedup a.jsonl -o kept.jsonl --save seen.library");
    shop.ok("dedup b.jsonl -o out.jsonl --removed removed.jsonl --force --against seen.library");
    assert!(!shop.text("removed.jsonl").contains("near_file"), "a library knows no files");
}

#[test]
fn files_that_only_look_like_their_names_are_told_apart() {
    let shop = Workshop::new();
    shop.write("pretty.json", "{\n  \"id\": 1,\n  \"text\": \"abc\"\n}\n");
    shop.write("half.json", "{\"id\": 1,\n \"text\": \"abc\"}\n");
    for name in ["pretty.json", "half.json"] {
        let ran = shop.run(&format!("dedup {name} -o out.jsonl"));
        assert!(
            ran.code() == 1 && ran.stderr().contains(&format!("{name}:1: a JSON object that goes on")),
            "{}",
            ran.stderr()
        );
        assert!(ran.stderr().contains("jq -c .") && !ran.stderr().contains("--on-error"), "{}", ran.stderr());
    }
    for (header, named) in [("id;text", "semicolons"), ("id\ttext", "tabs"), ("id|text", "bars")] {
        shop.write("in.csv", format!("{header}\n1\n"));
        let ran = shop.run("dedup in.csv -o out.csv");
        assert!(ran.code() == 1 && ran.stderr().contains(&format!("separated by {named}")), "{}", ran.stderr());
        assert!(!ran.stderr().contains("hint:"), "{}", ran.stderr());
    }
}

#[test]
fn a_folder_for_scratch_files_that_is_not_there_is_told_before_the_run() {
    let shop = Workshop::new();
    shop.write("in.jsonl", GOOD);
    let ran = shop.run("dedup in.jsonl -o out.jsonl --scratch nosuch");
    assert!(ran.code() == 1 && ran.stderr().contains("nosuch: there is no such folder"), "{}", ran.stderr());
    assert!(ran.stderr().contains("hint: create it first, or name another with --scratch"), "{}", ran.stderr());
    assert_eq!(shop.names(), ["in.jsonl"]);
    // What is packed is copied.
    shop.write("in.jsonl.gz", crate::support::gzip(GOOD));
    let ran = shop.command("pairs in.jsonl.gz -o pairs.tsv").env("TMPDIR", shop.path("nosuch")).output().unwrap();
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(!ran.status.success() && said.contains("name another folder by --scratch"), "{said}");
    shop.ok("pairs in.jsonl.gz -o pairs.tsv --scratch .");
    let ran = shop.run("cluster in.jsonl.gz -o clusters.tsv --scratch nosuch");
    assert!(ran.code() == 1 && ran.stderr().contains("nosuch: there is no such folder"), "{}", ran.stderr());
    // What fits into memory needs no scratch space, whichever records are kept.
    let ran = shop.command("dedup in.jsonl -o - --keep longest").env("TMPDIR", shop.path("nosuch")).output().unwrap();
    assert!(ran.status.success() && ran.stdout == GOOD.as_bytes(), "{}", String::from_utf8_lossy(&ran.stderr));
}

#[test]
fn xz_is_read_by_its_name_and_by_its_bytes() {
    let shop = Workshop::new();
    shop.write("in.jsonl", GOOD);
    shop.ok("dedup in.jsonl -o packed.jsonl.xz");
    shop.ok("dedup packed.jsonl.xz -o out.jsonl");
    assert_eq!(shop.text("out.jsonl"), GOOD);
    std::fs::rename(shop.path("packed.jsonl.xz"), shop.path("renamed.jsonl")).unwrap();
    shop.ok("dedup renamed.jsonl -o again.jsonl");
    assert_eq!(shop.text("again.jsonl"), GOOD);
}

#[test]
fn what_cannot_be_read_can_be_kept() {
    let shop = Workshop::new();
    let lines = "{\"text\":\"some words, that are fine!\"}\n{\"text\":null,\"id\":7}\nno JSON at all\n{\"body\":\"a text\"}\n\
                 {\"text\":\"Some words that are fine\"}\n";
    shop.write("in.jsonl", lines);
    let expected: String = lines.split_inclusive('\n').take(4).collect();
    for flags in ["", "--no-verify", "--keep longest"] {
        let ran =
            shop.ok(&format!("dedup in.jsonl -o out.jsonl --removed removed.jsonl --on-error keep --force {flags}"));
        assert_eq!(shop.text("out.jsonl"), expected, "{flags}");
        assert!(ran.stderr().contains("unread    3 that could not be read, kept as they are"), "{}", ran.stderr());
        assert!(ran.stderr().contains("in.jsonl:3: column 1: invalid JSON"), "{}", ran.stderr());
        assert_eq!(shop.text("removed.jsonl").lines().count(), 1, "what is kept is not removed");
    }
    shop.ok("dedup in.jsonl -o marked.jsonl --annotate --on-error keep");
    let marked = shop.text("marked.jsonl");
    let marked: Vec<&str> = marked.lines().collect();
    assert!(
        marked[1].starts_with("{\"text\":null,\"id\":7") && marked[1].contains("\"near_duplicate\":null"),
        "{marked:?}"
    );
    assert_eq!((marked.len(), marked[2]), (5, "no JSON at all"));
    shop.write("rows.csv", "id,text\n1,a text\n2\n3,\"A text\"\n4,a,b\n");
    shop.ok("dedup rows.csv -o rows.out.csv --on-error keep");
    assert_eq!(shop.text("rows.out.csv"), "id,text\n1,a text\n2\n4,a,b\n");
    // Nothing is lost, so a run that could read nothing is done too.
    shop.write("bad.jsonl", "{\"a\":1}\n");
    shop.ok("dedup bad.jsonl -o bad.out.jsonl --on-error keep");
    assert_eq!(shop.text("bad.out.jsonl"), "{\"a\":1}\n");
    for command in ["pairs in.jsonl", "build in.jsonl -o f.nearset --near 0.8", "cluster in.jsonl"] {
        let ran = shop.run(&format!("{command} --on-error keep"));
        assert!(ran.code() == 2 && ran.stderr().contains("commands that write records"), "{}", ran.stderr());
    }
}

#[test]
fn globs_know_braces_and_pass_over_what_is_hidden() {
    let shop = Workshop::new();
    for name in ["a.jsonl", "b.jsonl", "c.jsonl", ".hidden.jsonl"] {
        shop.write(&format!("in/{name}"), format!("{{\"id\":\"{name}\",\"text\":\"{name}\"}}\n"));
    }
    for (pattern, expected) in [
        ("in/{a,c}.jsonl", vec!["a.jsonl", "c.jsonl"]),
        ("in/*.jsonl", vec!["a.jsonl", "b.jsonl", "c.jsonl"]),
        ("in", vec!["a.jsonl", "b.jsonl", "c.jsonl"]),
        ("in/.*.jsonl", vec![".hidden.jsonl"]),
        ("{in/b,in/*}.jsonl", vec!["a.jsonl", "b.jsonl", "c.jsonl"]),
    ] {
        let ran = shop.ok(&format!("cluster {pattern} -q"));
        let ids: Vec<String> = String::from_utf8_lossy(ran.stdout())
            .lines()
            .skip(1)
            .map(|row| row.split('\t').next().unwrap().to_owned())
            .collect();
        assert_eq!(ids, expected, "{pattern}");
    }
    shop.write("literal{1,2}.jsonl", GOOD);
    shop.ok("dedup literal{1,2}.jsonl -o out.jsonl");
    let ran = shop.run("dedup in/{x,y}.jsonl -o none.jsonl");
    assert!(ran.code() == 1 && ran.stderr().contains("no file matches"), "{}", ran.stderr());
}

#[test]
fn fields_inside_fields_are_named_by_dots() {
    let shop = Workshop::new();
    shop.write(
        "in.jsonl",
        "{\"meta\":{\"doc\":{\"body\":\"a text\",\"key\":1}}}\n{\"meta\":{\"doc\":{\"body\":\"A text\",\"key\":2}}}\n",
    );
    shop.ok("dedup in.jsonl -o out.jsonl --text-field meta.doc.body --id-field meta.doc.key --removed removed.jsonl");
    assert!(
        shop.text("removed.jsonl").starts_with("{\"id\":\"2\",")
            && shop.text("removed.jsonl").contains("\"near\":\"1\"")
    );
}

#[test]
fn every_command_takes_the_field_by_either_name() {
    let shop = Workshop::new();
    shop.write("in.jsonl", jsonl(&corpus(60).0).replace("\"text\"", "\"body\""));
    for name in ["--field", "--text-field"] {
        shop.ok(&format!("dedup in.jsonl --dry-run {name} body"));
        shop.ok(&format!("pairs in.jsonl {name} body"));
        shop.ok(&format!("cluster in.jsonl {name} body"));
        shop.ok(&format!(
            "decontaminate in.jsonl --annotate --benchmark in.jsonl --fields body -o out.jsonl --force {name} body"
        ));
        shop.ok(&format!("build in.jsonl -o f.nearset --near 0.8 --force {name} body"));
        shop.ok(&format!("build in.jsonl -o i.nearset --index --near 0.8 --force {name} body"));
        assert_eq!(shop.run(&format!("query f.nearset in.jsonl {name} body")).code(), 10);
        shop.ok(&format!("search i.nearset in.jsonl {name} body"));
        shop.ok(&format!("check f.nearset in.jsonl --against-items in.jsonl --near 0.9 --far 0.5 {name} body"));
        shop.ok(&format!("plan --metric jaccard --near 0.8 --far 0.5 --capacity 10 --sample in.jsonl {name} body"));
    }
}

#[test]
fn a_search_tells_scripts_whether_it_found_something() {
    let shop = Workshop::new();
    shop.write("hashes.jsonl", hashes());
    shop.ok("build hashes.jsonl -o h.nearset --index --metric hamming --near 31 --field pdq -q");
    shop.write("far.jsonl", format!("{{\"pdq\":\"{}\"}}\n", "0f".repeat(32)));
    let search = "search h.nearset --field pdq --within 4 -q";
    assert_eq!(shop.run(&format!("{search} hashes.jsonl --exit-code")).code(), 10);
    assert_eq!(shop.run(&format!("{search} far.jsonl --exit-code")).code(), 0);
    assert_eq!(shop.run(&format!("{search} hashes.jsonl")).code(), 0);
}

#[test]
fn colours_are_for_terminals() {
    let shop = Workshop::new();
    let plain = shop.run("dedup nosuch.jsonl -o out.jsonl").stderr();
    assert!(
        plain.starts_with("error: nosuch.jsonl") && plain.contains("\nhint: ") && !plain.contains('\u{1b}'),
        "{plain}"
    );
    let forced = shop.command("dedup nosuch.jsonl -o out.jsonl").env("CLICOLOR_FORCE", "1").output().unwrap();
    let forced = String::from_utf8_lossy(&forced.stderr).into_owned();
    assert!(forced.contains("\u{1b}[1m\u{1b}[31merror:") && forced.contains("hint:"), "{forced:?}");
}

#[test]
fn shells_complete_and_manuals_tell_every_command() {
    let shop = Workshop::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = String::from_utf8(shop.ok(&format!("completions {shell}")).stdout().to_vec()).unwrap();
        assert!(
            script.contains("nearset") && script.contains("on-error") && script.contains("decontaminate"),
            "{shell}"
        );
    }
    let page = String::from_utf8(shop.ok("man").stdout().to_vec()).unwrap();
    assert!(page.starts_with(".ie") && page.contains(".TH nearset 1"), "{page}");
    shop.ok("man pages");
    let names = std::fs::read_dir(shop.path("pages")).unwrap().count();
    let help = String::from_utf8(shop.ok("--help").stdout().to_vec()).unwrap();
    let commands = help.split("Commands:\n").nth(1).unwrap().lines().take_while(|line| !line.is_empty());
    let commands = commands.filter(|line| line.starts_with("  ") && !line.starts_with("   ")).count();
    assert_eq!(names, commands, "a page per command but help, and one for the program");
    assert!(shop.text("pages/nearset-dedup.1").contains("\\-\\-text\\-field"));
    assert_eq!(shop.run("man pages").code(), 1, "pages are replaced only by force");
    shop.ok("man pages --force");
}

#[test]
fn a_part_of_texts_that_no_record_has_is_told_before_anything_is_removed() {
    let shop = Workshop::new();
    shop.write(
        "in.jsonl",
        "{\"name\":\"Ann Lee\",\"city\":\"Rome\"}\n{\"name\":\"Ann Lee\",\"city\":\"Oslo\",\"note\":\"x\"}\n",
    );
    for command in
        ["dedup in.jsonl -o out.jsonl", "pairs in.jsonl -o out.tsv", "build in.jsonl -o out.nearset --near 0.8"]
    {
        let ran = shop.run(&format!("{command} --text-field name,citty"));
        assert_eq!(ran.code(), 1, "{}", ran.stderr());
        assert!(ran.stderr().contains("no record has the field \"citty\" that is to be a part of its text: there are"));
        assert!(ran.stderr().contains("--field names another"), "{}", ran.stderr());
    }
    assert_eq!(shop.names(), ["in.jsonl"]);
    // One record has it.
    shop.ok("dedup in.jsonl -o out.jsonl --text-field name,note");
}

#[test]
fn a_folder_of_outputs_inside_one_of_inputs_is_refused() {
    let shop = Workshop::new();
    std::fs::create_dir(shop.path("in")).unwrap();
    shop.write("in/a.jsonl", GOOD);
    for out in ["in/clean/", "./in/../in/deep/clean/"] {
        let ran = shop.run(&format!("dedup in -o {out} --force"));
        assert!(ran.code() == 1 && ran.stderr().contains("a later run would read it too"), "{out}: {}", ran.stderr());
    }
    assert_eq!(std::fs::read_dir(shop.path("in")).unwrap().count(), 1);
    shop.ok("dedup in -o clean/");
    shop.ok("dedup in/*.jsonl -o in/clean/");
}

#[test]
fn a_run_that_has_nothing_to_resume_says_so() {
    let shop = Workshop::new();
    shop.write("in.jsonl", GOOD);
    let ran = shop.ok("dedup in.jsonl -o out.jsonl --resume");
    assert!(ran.stderr().contains("there is no checkpoint to go on from"), "{}", ran.stderr());
    let ran = shop.ok("dedup in.jsonl -o new.jsonl");
    assert!(!ran.stderr().contains("checkpoint"), "{}", ran.stderr());
}

#[test]
fn hashes_are_near_by_whole_bits() {
    let shop = Workshop::new();
    shop.write("in.jsonl", "{\"hash\":\"ff\"}\n{\"hash\":\"fe\"}\n");
    let ran = shop.run("dedup in.jsonl -o out.jsonl --metric hamming --near 0.8");
    assert!(ran.code() == 2 && ran.stderr().contains("--near 0.8: bits are whole"), "{}", ran.stderr());
}

#[test]
fn the_longest_are_named_by_their_ids_whatever_the_metric() {
    let shop = Workshop::new();
    let text = "one two three four five six seven eight nine ten";
    shop.write("in.jsonl", format!("{{\"id\":\"a\",\"text\":\"{text}\"}}\n{{\"id\":\"b\",\"text\":\"{text} ten\"}}\n"));
    for metric in ["jaccard", "dice", "edit-similarity"] {
        let run = format!(
            "dedup in.jsonl -o out.jsonl --force --keep longest --metric {metric} --near 0.6 --removed gone.jsonl"
        );
        shop.ok(&run);
        assert!(shop.text("gone.jsonl").contains("\"near\":\"b\""), "{metric}: {}", shop.text("gone.jsonl"));
    }
}

#[test]
fn nothing_is_called_clean_of_items_that_are_too_short() {
    let shop = Workshop::new();
    shop.write("in.jsonl", GOOD);
    shop.write("items.jsonl", "{\"id\":\"q\",\"question\":\"short one?\"}\n");
    let ran = shop.run("decontaminate in.jsonl --benchmark items.jsonl --dry-run -q");
    assert!(ran.code() == 1 && ran.stderr().contains("the one item is too short to decide"), "{}", ran.stderr());
}
