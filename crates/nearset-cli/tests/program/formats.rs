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
fn sequences_are_kept_byte_for_byte() {
    let shop = Workshop::new();
    let mut numbers = crate::support::Numbers(3);
    let mut fasta = Vec::new();
    for i in 0..90 {
        let letters: String = (0..400).map(|_| ['A', 'C', 'G', 'T'][numbers.below(4) as usize]).collect();
        // Every third is the one before it, broken into other lines.
        let (letters, width): (String, usize) = match i % 3 {
            2 => (fasta.last().map(|(letters, _): &(String, String)| letters.clone()).unwrap(), 60),
            _ => (letters, 70),
        };
        let lines: String =
            letters.as_bytes().chunks(width).map(|line| format!("{}\r\n", String::from_utf8_lossy(line))).collect();
        fasta.push((letters, format!(">read{i} of many\r\n{lines}")));
    }
    let all: String = fasta.iter().map(|(_, record)| record.as_str()).collect();
    let kept: String =
        fasta.iter().enumerate().filter(|(i, _)| i % 3 != 2).map(|(_, (_, record))| record.as_str()).collect();
    shop.write("in.fna", &all);
    shop.write("in.fa.gz", gzip(&all));
    for options in ["--no-verify", ""] {
        for input in ["in.fna", "in.fa.gz"] {
            let command =
                format!("dedup {input} -o out.fa --shingle chars:12 --removed removed.jsonl --force -q {options}");
            shop.ok(&command);
            assert!(shop.text("out.fa") == kept, "{command}");
            assert!(shop.text("removed.jsonl").starts_with("{\"id\":\"read2\","), "{command}");
        }
    }
    let reads: String = fasta.iter().map(|(letters, _)| format!("@r\n{letters}\n+\n{}\n", "@".repeat(400))).collect();
    shop.write("in.fq", format!("{reads}@broken\nACGT\n+\nI\n"));
    let ran = shop.run("dedup in.fq -o out.fq --shingle chars:12");
    assert_eq!(ran.code(), 1);
    assert!(ran.stderr().contains("in.fq:361: the record ends before its quality does"), "{}", ran.stderr());
    assert!(
        ran.stderr().contains("is the file whole?") && ran.stderr().contains("--on-error skip"),
        "{}",
        ran.stderr()
    );
    shop.ok("dedup in.fq -o out.fq --shingle chars:12 --on-error skip -q");
    assert_eq!(shop.text("out.fq").lines().count(), 4 * 60);
    assert_eq!(shop.run("dedup in.fna -o out.fa --annotate --force").code(), 1, "there are no fields to add to");
    assert!(String::from_utf8_lossy(shop.ok("dedup --help").stdout()).contains("fasta, fastq"));
}

#[test]
fn rows_longer_than_their_header_are_faulty() {
    let shop = Workshop::new();
    shop.write("in.csv", "id,text\n1,all of it\n2,half of it, and the rest\n3,half of it, and more\n");
    let ran = shop.run("dedup in.csv -o out.csv");
    assert_eq!(ran.code(), 1);
    let said = "in.csv:3: 3 cells, but the header names 2 columns: put cells that contain the separator in quotes";
    assert!(ran.stderr().contains(said), "{}", ran.stderr());
    let ran = shop.ok("dedup in.csv -o out.csv --on-error skip");
    assert!(ran.stderr().contains("skipped   2 that could not be read"), "{}", ran.stderr());
    assert_eq!(shop.text("out.csv"), "id,text\n1,all of it\n");
}

#[test]
fn parquet_keeps_its_columns() {
    let shop = Workshop::new();
    let (texts, near) = corpus(300);
    parquet(&shop.path("in.parquet"), &texts);
    let ran = shop.ok("dedup in.parquet -o out.parquet --removed removed.jsonl --no-verify");
    assert!(ran.stderr().contains("300 records, counted"));
    let rows = parquet_rows(&shop.path("out.parquet"));
    let expected: Vec<String> =
        (0..300).filter(|&i| !near[i]).map(|i| format!("{{text: \"{}\", n: {i}}}", texts[i])).collect();
    assert!(rows == expected);
    assert_eq!(shop.text("removed.jsonl").lines().count(), 100);
    shop.ok("dedup in.parquet -o marked.parquet --annotate --no-verify -q");
    let rows = parquet_rows(&shop.path("marked.parquet"));
    assert_eq!(rows.len(), 300);
    for (i, row) in rows.iter().enumerate() {
        let own = format!("{{text: \"{}\", n: {i}, near_duplicate: {}, hits: ", texts[i], near[i]);
        assert!(row.starts_with(&own), "{row}");
    }
    shop.ok("dedup marked.parquet -o twice.parquet --annotate --no-verify -q");
    assert!(parquet_rows(&shop.path("twice.parquet")) == rows, "each column is there once, as after one run");
    shop.ok("dedup twice.parquet -o verified.parquet --annotate -q");
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

#[test]
fn two_strains_share_nearly_all_of_their_kmers() {
    let path = |name: &str| format!("{}/../../../shared/data/dna/{name}", env!("CARGO_MANIFEST_DIR"));
    let strains = ["NCTC8325.fasta.gz", "RN4220.fasta.gz", "Mleprae_GCF_000195855.1.fna.gz"].map(path);
    if !strains.iter().all(|strain| std::path::Path::new(strain).exists()) {
        eprintln!("{} is not there: nothing is checked with it", strains[0]);
        return;
    }
    let shop = Workshop::new();
    let all = strains.join(" ");
    shop.ok(&format!("pairs {all} --format text-file --shingle kmers:21 --near 0.5 -o pairs.jsonl -q"));
    let text = shop.text("pairs.jsonl");
    let pair: serde_json::Value = serde_json::from_str(text.trim()).unwrap();
    let similarity = pair["similarity"].as_f64().unwrap();
    // .950 by a separate count of canonical 21-mers; names of sequences are cut, too.
    assert!((similarity - 0.950).abs() < 0.001, "{text}");
}

#[test]
fn a_quote_that_is_never_closed_does_not_swallow_the_rest_in_silence() {
    let shop = Workshop::new();
    let row = |i: usize| format!("{i},{}text {i}\n", if i == 10 { "\"" } else { "" });
    let rows: Vec<String> = (1..=100).map(row).collect();
    shop.write("in.csv", format!("id,text\n{}", rows.concat()));
    let ran = shop.run("dedup in.csv -o out.csv");
    let said = ran.stderr();
    assert!(ran.code() == 1 && said.contains("in.csv:11: a quoted cell is never closed"), "{said}");
    assert!(said.contains("all 91 lines from here to the end") && said.contains("whole records before it"), "{said}");
    for command in
        ["dedup in.csv -o out.csv --force", "dedup in.csv -o out.csv --force --no-verify", "pairs in.csv -o p.tsv"]
    {
        let said = shop.ok(&format!("{command} --on-error skip")).stderr();
        assert!(said.contains("in.csv broke off after 10 records"), "{said}");
    }
    shop.ok("dedup in.csv -o whole.csv --on-error keep -q");
    assert!(shop.text("whole.csv").ends_with(&rows[90..].concat()), "what is kept as it is has every line");
    // A last row that was cut off takes nothing with it.
    shop.write("cut.csv", "id,text\n1,one text\n2,\"another");
    let said = shop.ok("dedup cut.csv -o out.csv --force --on-error skip").stderr();
    assert!(said.contains("a quoted cell is never closed\n") && !said.contains("broke off"), "{said}");
}

#[test]
fn rows_of_an_array_are_called_by_a_file_of_ids() {
    let shop = Workshop::new();
    // As `numpy.save` writes 3 x 2 whole numbers of 16 bits.
    let text = "{'descr': '<i2', 'fortran_order': False, 'shape': (3, 2), }";
    let mut array = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    array.extend_from_slice(format!("{text:117}\n").as_bytes());
    array.extend([1i16, 0, 2, 0, 0, 7].into_iter().flat_map(i16::to_le_bytes));
    shop.write("vectors.npy", array);
    shop.write("names.txt", "one\ntwo\nthree\n");
    shop.ok("pairs vectors.npy --ids names.txt --metric cosine --near 0.9 -o pairs.tsv -q");
    assert_eq!(shop.text("pairs.tsv"), "a\tb\tsimilarity\none\ttwo\t1\n");
    shop.write("names.txt", "one\ntwo\n");
    let told = shop.run("pairs vectors.npy --ids names.txt --metric cosine --near 0.9 -o none.tsv").stderr();
    assert!(told.contains("vectors.npy: 3 records or more, and 2 ids"), "{told}");
    assert_eq!(shop.run("pairs vectors.npy --ids names.txt --id-field id --metric cosine --near 0.9").code(), 2);
}

#[test]
fn wrong_ids_are_no_damage_and_other_ids_another_run() {
    let shop = Workshop::new();
    let vector = |[x, y]: [f32; 2]| [2u32.to_le_bytes(), x.to_le_bytes(), y.to_le_bytes()].concat();
    let vectors = [[1., 0.], [2., 0.], [0., 7.]].map(vector).concat();
    shop.write("whole.fvecs", &vectors);
    for ids in ["one\ntwo\n", "head\none\ntwo\nthree\n"] {
        shop.write("names.txt", ids);
        for command in ["dedup whole.fvecs -o out.fvecs", "pairs whole.fvecs -o out.tsv"] {
            let ran = shop.run(&format!("{command} --ids names.txt --metric cosine --near 0.9 --on-error skip"));
            assert!(ran.code() == 1 && ran.stderr().contains("one id per record is needed"), "{}", ran.stderr());
            assert!(!shop.exists("out.fvecs") && !shop.exists("out.tsv"), "{command}");
        }
    }
    shop.write("cut.fvecs", &vectors[..vectors.len() - 1]);
    shop.write("names.txt", "one\ntwo\nthree\n");
    let command = "dedup cut.fvecs -o kept.fvecs --ids names.txt --metric cosine --near 0.9 --checkpoint-bytes 1";
    assert!(shop.run(command).stderr().contains("cut off"));
    shop.write("names.txt", "one\n2\nthree\n");
    let told = shop.run(&format!("{command} --resume --on-error skip")).stderr();
    assert!(told.contains("the ids of input 1"), "{told}");
    shop.write("names.txt", "one\ntwo\nthree\n");
    shop.ok(&format!("{command} --resume --on-error skip"));
}
