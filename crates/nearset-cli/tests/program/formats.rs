//! Every format in and out.

use std::io::Write;

use crate::support::{Workshop, corpus, jsonl, kept};

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

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
    use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;
    use std::fs::File;
    use std::sync::Arc;

    let shop = Workshop::new();
    let (texts, near) = corpus(300);
    let schema = parse_message_type("message m { required binary text (STRING); required int64 n; }").unwrap();
    let file = File::create(shop.path("in.parquet")).unwrap();
    let mut writer = SerializedFileWriter::new(file, Arc::new(schema), Default::default()).unwrap();
    for (group, rows) in texts.chunks(110).enumerate() {
        let mut out = writer.next_row_group().unwrap();
        let values: Vec<ByteArray> = rows.iter().map(|text| ByteArray::from(text.as_str())).collect();
        let numbers: Vec<i64> = (0..rows.len() as i64).map(|i| i + 110 * group as i64).collect();
        let mut column = out.next_column().unwrap().unwrap();
        column.typed::<ByteArrayType>().write_batch(&values, None, None).unwrap();
        column.close().unwrap();
        let mut column = out.next_column().unwrap().unwrap();
        column.typed::<Int64Type>().write_batch(&numbers, None, None).unwrap();
        column.close().unwrap();
        out.close().unwrap();
    }
    writer.close().unwrap();
    let ran = shop.ok("dedup in.parquet -o out.parquet --removed removed.jsonl");
    assert!(ran.stderr().contains("300 records, counted"));
    let reader = SerializedFileReader::new(File::open(shop.path("out.parquet")).unwrap()).unwrap();
    let rows: Vec<String> = reader.get_row_iter(None).unwrap().map(|row| row.unwrap().to_string()).collect();
    let expected: Vec<String> =
        (0..300).filter(|&i| !near[i]).map(|i| format!("{{text: \"{}\", n: {i}}}", texts[i])).collect();
    assert!(rows == expected);
    assert_eq!(shop.text("removed.jsonl").lines().count(), 100);
    let ran = shop.run("dedup in.parquet -o other.jsonl");
    assert_eq!(ran.code(), 1);
    assert!(ran.stderr().contains("name it .parquet"), "{}", ran.stderr());
}
