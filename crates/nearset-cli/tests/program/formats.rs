//! Every format in and out.

use crate::support::{Workshop, corpus, gzip, jsonl, kept, parquet, parquet_rows};

fn gunzip(bytes: &[u8]) -> String {
    let mut text = String::new();
    std::io::Read::read_to_string(&mut flate2::read::MultiGzDecoder::new(bytes), &mut text).unwrap();
    text
}

#[test]
fn jsonl_in_every_packing() {
    let shop = Workshop::new();
    let (texts, near) = corpus(300);
    let lines = jsonl(&texts);
    let expected = kept(&lines, &near);
    shop.write("plain.jsonl", &lines);
    shop.write("g.jsonl.gz", gzip(&lines));
    shop.write("z.jsonl.zst", zstd::encode_all(lines.as_bytes(), 3).unwrap());
    for packing in ["bz2", "xz"] {
        shop.ok(&format!("dedup plain.jsonl -o out.jsonl.{packing} --removed removed.jsonl.{packing} -q"));
        shop.ok(&format!("dedup out.jsonl.{packing} -o again.jsonl --force -q"));
        assert!(shop.text("again.jsonl") == expected, "{packing}");
        let removed = shop.read(&format!("removed.jsonl.{packing}"));
        assert!(!removed.starts_with(b"{"), "what is called .{packing} is packed so");
        // A whole line of JSON for each removed record, unpacked from a pipe by what it begins with.
        let lines = shop.ok_with_stdin("dedup - -o - --field reason -q", &removed);
        assert!(lines.stdout().starts_with(b"{\"id\":\"2\","));
        shop.ok(&format!("pairs out.jsonl.{packing} -o pairs.tsv.{packing} -q"));
    }
    for input in ["plain.jsonl", "g.jsonl.gz", "z.jsonl.zst"] {
        shop.ok(&format!("dedup {input} -o out.jsonl --force -q"));
        assert!(shop.text("out.jsonl") == expected, "{input}");
        shop.ok(&format!("dedup {input} -o out.jsonl.gz --force -q"));
        assert!(gunzip(&shop.read("out.jsonl.gz")) == expected, "{input}");
        shop.ok(&format!("dedup {input} -o out.jsonl.zst --force -q"));
        assert!(zstd::decode_all(&shop.read("out.jsonl.zst")[..]).unwrap() == expected.as_bytes(), "{input}");
    }
    for packed in [gzip(&lines), lines.clone().into_bytes()] {
        assert!(shop.ok_with_stdin("dedup - -o - -q", &packed).stdout() == expected.as_bytes());
    }
}

#[test]
fn lines_tables_folders_and_globs() {
    let shop = Workshop::new();
    let (texts, near) = corpus(300);
    let text: String = texts.iter().map(|text| format!("{text}\n")).collect();
    shop.write("in.txt", &text);
    shop.ok("dedup in.txt -o out.txt -q");
    assert!(shop.text("out.txt") == kept(&text, &near));
    for (name, separator) in [("csv", ","), ("tsv", "\t")] {
        let rows: String = texts.iter().enumerate().map(|(i, text)| format!("{i}{separator}\"{text}\"\r\n")).collect();
        let header = format!("key{separator}content\r\n");
        shop.write(&format!("in.{name}"), format!("{header}{rows}"));
        shop.ok(&format!(
            "dedup in.{name} -o out.{name} --text-field content --id-field key --removed removed.{name}.jsonl -q"
        ));
        assert!(shop.text(&format!("out.{name}")) == format!("{header}{}", kept(&rows, &near)));
        assert!(shop.text(&format!("removed.{name}.jsonl")).starts_with("{\"id\":\"2\","));
    }
    for (i, text) in texts.iter().enumerate().take(30) {
        shop.write(&format!("folder/{i:03}.txt"), text);
    }
    shop.ok("dedup folder --format text-file -o files.jsonl -q");
    assert_eq!(shop.text("files.jsonl").lines().count(), 20);
    shop.ok("dedup folder/0*.txt -o glob.txt -q");
    assert_eq!(shop.text("glob.txt").lines().count(), 20);
}

#[test]
fn parquet_keeps_its_columns() {
    let shop = Workshop::new();
    let (texts, near) = corpus(300);
    parquet(&shop.path("in.parquet"), &texts);
    let ran = shop.ok("dedup in.parquet -o out.parquet --removed removed.jsonl");
    assert!(ran.stderr().contains("300 records, counted"));
    let rows = parquet_rows(&shop.path("out.parquet"));
    let expected: Vec<String> =
        (0..300).filter(|&i| !near[i]).map(|i| format!("{{text: \"{}\", n: {i}}}", texts[i])).collect();
    assert!(rows == expected);
    assert_eq!(shop.text("removed.jsonl").lines().count(), 100);
    shop.ok("dedup in.parquet -o marked.parquet --annotate -q");
    let rows = parquet_rows(&shop.path("marked.parquet"));
    assert_eq!(rows.len(), 300);
    for (i, row) in rows.iter().enumerate() {
        let own = format!("{{text: \"{}\", n: {i}, near_duplicate: {}, hits: ", texts[i], near[i]);
        assert!(row.starts_with(&own), "{row}");
    }
    shop.ok("dedup marked.parquet -o twice.parquet --annotate -q");
    assert!(parquet_rows(&shop.path("twice.parquet")) == rows, "each column is there once, as after one run");
    shop.ok("dedup twice.parquet -o verified.parquet --annotate --verify -q");
    for (i, row) in parquet_rows(&shop.path("verified.parquet")).iter().enumerate() {
        let behind = row.strip_prefix(&format!("{{text: \"{}\", n: {i}, near_duplicate: ", texts[i])).unwrap();
        let names = [", hits: ", ", duplicate_of: ", ", similarity: "].map(|name| behind.find(name).unwrap());
        assert!(names.is_sorted() && row.matches("near_duplicate").count() == 1, "{row}");
    }
    shop.ok("build in.parquet -o seen.nearset --near 0.8 -q");
    // `hits` is there, but `near`, which would stand for it, is not: so it is the user's own, as far as `query` can know.
    let ran = shop.run("query seen.nearset marked.parquet -o tagged.parquet --tag");
    assert!(ran.code() == 1 && ran.stderr().contains("a column called \"hits\" already"), "{}", ran.stderr());
    assert!(!shop.exists("tagged.parquet") && !shop.exists("tagged.parquet.partial"));
    let ran = shop.run("dedup in.parquet -o other.jsonl");
    assert_eq!(ran.code(), 1);
    assert!(ran.stderr().contains("name it .parquet"), "{}", ran.stderr());
}
