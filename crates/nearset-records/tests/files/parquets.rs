//! Parquet, in and out, with every physical type, nulls, lists and several row groups.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use nearset_records::output::{Added, AddedKind, ParquetWriter, Value};
use nearset_records::{Fields, InputError, ItemField, OutputError, OutputOptions, ReadOptions, RecordWriter, Source};
use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::*;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

use crate::support::*;

const SCHEMA: &str = "message documents {
    required int64 id;
    optional binary text (UTF8);
    optional group tags (LIST) { repeated group list { optional binary element (UTF8); } }
    optional group meta { optional double score; required boolean flag; }
    optional group vector (LIST) { repeated group list { required float element; } }
    required fixed_len_byte_array(3) code;
    optional int96 stamp;
    optional int32 number;
}";

/// One column's values with its levels.
struct Levels<T> {
    values: Vec<T>,
    definitions: Vec<i16>,
    repetitions: Vec<i16>,
}

impl<T> Levels<T> {
    fn new() -> Self {
        Self { values: Vec::new(), definitions: Vec::new(), repetitions: Vec::new() }
    }

    fn push(&mut self, repetition: i16, definition: i16, value: Option<T>) {
        self.repetitions.push(repetition);
        self.definitions.push(definition);
        self.values.extend(value);
    }

    fn write<D: DataType<T = T>>(self, group: &mut SerializedRowGroupWriter<'_, File>) {
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<D>().write_batch(&self.values, Some(&self.definitions), Some(&self.repetitions)).unwrap();
        column.close().unwrap();
    }
}

fn text(row: usize) -> Option<String> {
    (row % 7 != 3).then(|| format!("text of row {row}, é"))
}

fn write_group(group: &mut SerializedRowGroupWriter<'_, File>, rows: std::ops::Range<usize>) {
    let (mut id, mut texts, mut tags) = (Levels::new(), Levels::new(), Levels::new());
    let (mut score, mut flag, mut vector) = (Levels::new(), Levels::new(), Levels::new());
    let (mut code, mut stamp, mut number) = (Levels::new(), Levels::new(), Levels::new());
    for row in rows {
        let bytes = |text: String| ByteArray::from(text.as_str());
        id.push(0, 0, Some(row as i64));
        texts.push(0, i16::from(text(row).is_some()), text(row).map(bytes));
        match row % 5 {
            0 => tags.push(0, 0, None),
            1 => tags.push(0, 1, None),
            2 => tags.push(0, 2, None),
            _ => {
                tags.push(0, 3, Some(bytes(format!("tag {row}"))));
                tags.push(1, 2, None);
                tags.push(1, 3, Some(bytes("last".to_owned())));
            }
        }
        match row % 3 {
            0 => {
                score.push(0, 0, None);
                flag.push(0, 0, None);
            }
            1 => {
                score.push(0, 1, None);
                flag.push(0, 1, Some(true));
            }
            _ => {
                score.push(0, 2, Some(row as f64 / 4.0));
                flag.push(0, 1, Some(false));
            }
        }
        if row % 6 == 5 {
            vector.push(0, 0, None);
        } else {
            vector.push(0, 2, Some(row as f32));
            vector.push(1, 2, Some(0.5));
        }
        code.push(0, 0, Some(FixedLenByteArray::from(format!("{:03}", row % 1000).into_bytes())));
        let mut time = Int96::new();
        time.set_data(row as u32, 1, 2);
        stamp.push(0, i16::from(row % 2 == 0), (row % 2 == 0).then_some(time));
        number.push(0, 1, Some(row as i32 % 10));
    }
    id.write::<Int64Type>(group);
    texts.write::<ByteArrayType>(group);
    tags.write::<ByteArrayType>(group);
    score.write::<DoubleType>(group);
    flag.write::<BoolType>(group);
    vector.write::<FloatType>(group);
    code.write::<FixedLenByteArrayType>(group);
    stamp.write::<Int96Type>(group);
    number.write::<Int32Type>(group);
}

const GROUPS: [usize; 4] = [2500, 1, 300, 1199];
const ROWS: usize = 4000;

fn write_documents(path: &Path) {
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_column_compression("text".into(), Compression::ZSTD(ZstdLevel::default()))
        .set_column_dictionary_enabled("text".into(), false)
        .set_key_value_metadata(Some(vec![KeyValue::new("origin".to_owned(), "a test".to_owned())]))
        .set_data_page_row_count_limit(100)
        .set_write_batch_size(10)
        .build();
    let schema = Arc::new(parse_message_type(SCHEMA).unwrap());
    let mut writer = SerializedFileWriter::new(File::create(path).unwrap(), schema, Arc::new(properties)).unwrap();
    let mut start = 0;
    for rows in GROUPS {
        let mut group = writer.next_row_group().unwrap();
        write_group(&mut group, start..start + rows);
        group.close().unwrap();
        start += rows;
    }
    assert_eq!(start, ROWS);
    writer.close().unwrap();
}

fn open(path: &Path) -> SerializedFileReader<File> {
    SerializedFileReader::new(File::open(path).unwrap()).unwrap()
}

/// Every row with all its columns, as text.
fn rows(path: &Path) -> Vec<String> {
    open(path).get_row_iter(None).unwrap().map(|row| row.unwrap().to_string()).collect()
}

fn documents(folder: &Folder) -> Vec<Source> {
    let path = folder.path("in.parquet");
    write_documents(&path);
    sources(&[&path], None)
}

/// Keeps some rows of a source.
fn decide(writer: &mut ParquetWriter, source: usize, keep: &[bool]) -> Result<(), OutputError> {
    keep.iter().try_for_each(|keep| writer.decide(source, keep.then_some(&[])))
}

#[test]
fn added_columns_stand_behind_the_others() {
    let folder = Folder::new();
    let sources = documents(&folder);
    let all = rows(&folder.path("in.parquet"));
    let out = folder.path("out.parquet");
    let added = || {
        let kinds = [AddedKind::Bool, AddedKind::Integer, AddedKind::Number, AddedKind::Text];
        kinds.iter().enumerate().map(|(i, &kind)| Added::new(format!("added{i}"), kind)).collect::<Vec<_>>()
    };
    let mut writer = ParquetWriter::create(&out, sources.clone(), added(), &OutputOptions::default()).unwrap();
    let mut expected = Vec::new();
    for (i, row) in all.iter().enumerate() {
        let text = format!("row {i}");
        match i % 3 {
            0 => writer.decide(0, None).unwrap(),
            1 => {
                writer.decide(0, Some(&[Value::Null; 4])).unwrap();
                let body = row.strip_suffix('}').unwrap();
                expected.push(format!("{body}, added0: null, added1: null, added2: null, added3: null}}"));
            }
            _ => {
                let values =
                    [Value::Bool(i % 2 == 0), Value::Integer(i as i64), Value::Number(0.5), Value::Text(&text)];
                writer.decide(0, Some(&values)).unwrap();
                let body = row.strip_suffix('}').unwrap();
                let even = i % 2 == 0;
                expected.push(format!("{body}, added0: {even}, added1: {i}, added2: 0.5, added3: \"row {i}\"}}"));
            }
        }
    }
    writer.finish().unwrap();
    assert_eq!(rows(&out), expected);
    // What was added stays in its place when it is added once more, and what is new comes behind it.
    let again = folder.path("again.parquet");
    let fewer = vec![Added::new("added0", AddedKind::Bool), Added::new("added2", AddedKind::Number)];
    let more = [fewer, vec![Added::new("new", AddedKind::Text)]].concat();
    let mut writer =
        ParquetWriter::create(&again, self::sources(&[&out], None), more, &OutputOptions::default()).unwrap();
    for _ in &expected {
        writer.decide(0, Some(&[Value::Bool(true), Value::Null, Value::Text("x")])).unwrap();
    }
    writer.finish().unwrap();
    let cell = |row: &str, from: &str, to: &str| {
        let start = row.find(from).unwrap() + from.len();
        row[start..start + row[start..].find(to).unwrap()].to_owned()
    };
    for (row, before) in rows(&again).iter().zip(&expected) {
        let own = &before[..before.find(", added0").unwrap()];
        let (one, three) = (cell(before, "added1: ", ", added2"), cell(before, "added3: ", "}"));
        let wanted = format!("{own}, added0: true, added1: {one}, added2: null, added3: {three}, new: \"x\"}}");
        assert_eq!(*row, wanted);
    }
    // A column that nearset has not written is left alone: of another kind, or without the one that stands for all.
    for taken in [
        vec![Added::new("added3", AddedKind::Bool)],
        vec![Added::new("other", AddedKind::Bool), Added::new("added1", AddedKind::Integer)],
    ] {
        let name = taken.last().unwrap().name.clone();
        let sources = self::sources(&[&out], None);
        let path = folder.path("refused.parquet");
        let error = ParquetWriter::create(&path, sources, taken, &OutputOptions::default()).err().unwrap().to_string();
        assert!(error.contains(&format!("there is a column called {name:?} already")), "{error}");
    }
}

#[test]
fn kept_rows_have_all_their_columns_nulls_and_lists() {
    let folder = Folder::new();
    let sources = documents(&folder);
    let all = rows(&folder.path("in.parquet"));
    assert_eq!(all.len(), ROWS);
    type Choice = fn(usize) -> bool;
    let choices: [(&str, Choice); 4] = [
        ("some", |row| row % 3 == 0 || row % 1000 < 100),
        ("all", |_| true),
        ("none", |_| false),
        ("one", |row| row == 2500),
    ];
    for (name, keep) in choices {
        let out = folder.path(&format!("{name}.parquet"));
        let mut writer =
            ParquetWriter::create(&out, sources.clone(), Vec::new(), &OutputOptions::protecting(&sources)).unwrap();
        let decisions: Vec<bool> = (0..ROWS).map(keep).collect();
        decide(&mut writer, 0, &decisions).unwrap();
        assert!(!out.exists());
        writer.finish().unwrap();
        let expected: Vec<&String> =
            all.iter().zip(&decisions).filter(|(_, keep)| **keep).map(|(row, _)| row).collect();
        assert_eq!(rows(&out).iter().collect::<Vec<_>>(), expected, "{name}");
    }
}

#[test]
fn schema_metadata_and_compression_are_kept() {
    let folder = Folder::new();
    let sources = documents(&folder);
    let out = folder.path("out.parquet");
    let mut writer = ParquetWriter::create(&out, sources.clone(), Vec::new(), &OutputOptions::default()).unwrap();
    decide(&mut writer, 0, &[true; ROWS]).unwrap();
    writer.finish().unwrap();
    let (before, after) = (open(&folder.path("in.parquet")), open(&out));
    let (before, after) = (before.metadata(), after.metadata());
    assert_eq!(before.file_metadata().schema(), after.file_metadata().schema());
    assert_eq!(before.file_metadata().key_value_metadata(), after.file_metadata().key_value_metadata());
    assert_eq!(before.num_row_groups(), after.num_row_groups());
    for (before, after) in before.row_groups().iter().zip(after.row_groups()) {
        assert_eq!(before.num_rows(), after.num_rows());
        for (before, after) in before.columns().iter().zip(after.columns()) {
            assert_eq!(before.compression(), after.compression());
            assert_eq!(before.dictionary_page_offset().is_some(), after.dictionary_page_offset().is_some());
        }
    }
}

#[test]
fn texts_ids_and_nulls_are_read_and_reading_goes_on_from_any_batch() {
    let folder = Folder::new();
    let sources = documents(&folder);
    let options = ReadOptions { batch_bytes: 9_000, ..ReadOptions::new(text_fields()) };
    let (all, error) = batches(&sources, &options);
    assert!(error.is_none(), "{error:?}");
    let everything = records(&all, &text_fields());
    assert_eq!(everything.len(), ROWS);
    for (row, record) in everything.iter().enumerate() {
        match text(row) {
            Some(text) => assert_eq!(record, &Ok((row.to_string(), text))),
            None => {
                let place = format!("{}:{}: column \"text\" is null or empty here", sources[0].name, row + 1);
                assert_eq!(record, &Err(place));
            }
        }
    }
    let mut passed = 0;
    for batch in &all {
        passed += batch.len();
        let (rest, error) = batches_from(&sources, &options, batch.end());
        assert!(error.is_none(), "{error:?}");
        assert_eq!(records(&rest, &text_fields()), everything[passed..]);
    }
}

#[test]
fn lists_of_floats_are_vectors() {
    let folder = Folder::new();
    documents(&folder);
    let fields = Fields::new("vector", ItemField::Vector).with_id(None);
    let found = records(&read(&folder.path("in.parquet"), &fields), &fields);
    for (row, record) in found.iter().enumerate() {
        match record {
            Ok((_, vector)) => assert_eq!(vector, &format!("{:?}", [row as f32, 0.5])),
            Err(error) => assert!(row % 6 == 5 && error.contains("null"), "{error}"),
        }
    }
    assert_eq!(found.len(), ROWS);
}

#[test]
fn a_list_of_texts_with_a_null_is_a_fault() {
    let folder = Folder::new();
    documents(&folder);
    let fields = Fields::new("tags", ItemField::Texts).with_id(None);
    let found = records(&read(&folder.path("in.parquet"), &fields), &fields);
    assert_eq!(found.len(), ROWS);
    assert!(found.iter().all(|record| record.as_ref().is_err_and(|error| error.contains("null"))), "{found:?}");
}

#[test]
fn columns_that_are_missing_or_of_another_type_are_named() {
    let folder = Folder::new();
    let sources = documents(&folder);
    let error = |column: &str, kind| batches(&sources, &ReadOptions::new(Fields::new(column, kind))).1.unwrap();
    assert!(error("body", ItemField::Text).to_string().contains("there are \"id\", \"text\", \"tags.list.element\""));
    assert!(matches!(error("id", ItemField::Text), InputError::ColumnType { .. }));
    assert!(matches!(error("tags", ItemField::Text), InputError::ColumnType { .. }));
    assert!(matches!(error("meta.score", ItemField::Vector), InputError::ColumnType { .. }));
    assert!(matches!(error("meta", ItemField::Text), InputError::MissingColumn { .. }), "meta has two columns");
}

#[test]
fn a_damaged_file_is_an_error_and_leaves_no_output() {
    let folder = Folder::new();
    documents(&folder);
    let bytes = std::fs::read(folder.path("in.parquet")).unwrap();
    let cut = folder.write("cut.parquet", &bytes[..bytes.len() / 2]);
    let (_, error) = batches(&sources(&[&cut], None), &ReadOptions::new(text_fields()));
    assert!(matches!(error, Some(InputError::Parquet { .. })), "{error:?}");

    let mut damaged = bytes.clone();
    damaged[4..20_000].fill(0xff);
    let damaged = sources(&[&folder.write("damaged.parquet", &damaged)], None);
    let (_, error) = batches(&damaged, &ReadOptions::new(text_fields()));
    assert!(matches!(error, Some(InputError::Parquet { .. })), "{error:?}");
    let out = folder.path("out.parquet");
    let mut writer = ParquetWriter::create(&out, damaged, Vec::new(), &OutputOptions::default()).unwrap();
    assert!(matches!(decide(&mut writer, 0, &[true; ROWS]), Err(OutputError::Input(InputError::Parquet { .. }))));
    drop(writer);
    assert_eq!(std::fs::read_dir(folder.path("")).unwrap().count(), 3, "nothing but the inputs");
}

#[test]
fn several_files_of_one_schema_become_one_and_others_are_refused() {
    let folder = Folder::new();
    let paths = ["1.parquet", "2.parquet", "3.parquet"].map(|name| folder.path(name));
    write_documents(&paths[0]);
    write_documents(&paths[1]);
    let schema = Arc::new(parse_message_type("message other { required int64 id; }").unwrap());
    let file = File::create(&paths[2]).unwrap();
    SerializedFileWriter::new(file, schema, Arc::new(WriterProperties::default())).unwrap().close().unwrap();
    let sources = sources(&paths.each_ref().map(|path| path.as_path()), None);
    let out = folder.path("out.parquet");
    let mut writer = ParquetWriter::create(&out, sources, Vec::new(), &OutputOptions::default()).unwrap();
    decide(&mut writer, 0, &[true, false, true]).unwrap();
    decide(&mut writer, 1, &[false, true]).unwrap();
    assert!(matches!(writer.decide(2, None), Err(OutputError::HeaderMismatch { .. })));
    writer.finish().unwrap();
    let all = rows(&paths[0]);
    assert_eq!(rows(&out), [&all[0], &all[2], &all[1]].map(String::clone), "rows never decided are not kept");
}

#[test]
fn parquet_comes_out_as_parquet_only() {
    let folder = Folder::new();
    let documents = documents(&folder);
    let (batches, _) = batches(&documents, &ReadOptions::new(text_fields()));
    let mut writer = RecordWriter::create(&folder.path("out.jsonl"), Vec::new(), &OutputOptions::default()).unwrap();
    assert!(writer.begin(&batches[0]).unwrap_err().to_string().contains("needs an output called .parquet"));
    let jsonl = sources(&[&folder.write("in.jsonl", corpus(1))], None);
    let error =
        ParquetWriter::create(&folder.path("out.parquet"), jsonl, Vec::new(), &OutputOptions::default()).err().unwrap();
    assert!(error.to_string().contains("name the output as jsonl"), "{error}");
}

#[test]
fn texts_of_several_columns_are_joined() {
    let folder = Folder::new();
    let path = folder.path("a.parquet");
    write_documents(&path);
    let fields = Fields::new("text, number,id", ItemField::Text);
    let wanted: Vec<String> = (0..ROWS)
        .map(|row| format!("{} {} {row}", text(row).unwrap_or_default(), row as i32 % 10).trim_start().to_owned())
        .collect();
    assert_eq!(texts(&read(&path, &fields), &fields), wanted);
    // A run that goes on in the middle of a row group.
    let (later, _) = batches_from(
        &sources(&[&path], None),
        &ReadOptions::new(fields.clone()),
        nearset_records::Position { record: 2600, ..Default::default() },
    );
    assert_eq!(texts(&later, &fields), wanted[2600..]);
    let refused = |item: &str| {
        let fields = Fields::new(item, ItemField::Text);
        batches(&sources(&[&path], None), &ReadOptions::new(fields)).1.unwrap().to_string()
    };
    assert!(refused("text,nothing").contains("no column is called \"nothing\""), "{}", refused("text,nothing"));
    assert!(refused("text,vector").contains("a string or a whole number is needed"), "{}", refused("text,vector"));
}

#[test]
fn a_joined_column_that_is_no_utf8_is_a_fault() {
    let folder = Folder::new();
    let path = folder.path("a.parquet");
    let schema = "message people { required binary name (UTF8); required binary city (UTF8); }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let mut file =
        SerializedFileWriter::new(File::create(&path).unwrap(), schema, Arc::new(WriterProperties::default())).unwrap();
    let mut group = file.next_row_group().unwrap();
    // The first two are Latin-1, and would otherwise be the same text.
    for cells in [[&b"M\xfcller"[..], b"Z\xfcrich", b"Meier"], [b"Bern", b"Bern", b"Bern"]] {
        let values: Vec<ByteArray> = cells.iter().map(|cell| ByteArray::from(cell.to_vec())).collect();
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<ByteArrayType>().write_batch(&values, None, None).unwrap();
        column.close().unwrap();
    }
    group.close().unwrap();
    file.close().unwrap();
    let fields = Fields::new("name,city", ItemField::Text).with_id(None);
    let found = records(&read(&path, &fields), &fields);
    let [Err(first), Err(second), Ok((_, third))] = &found[..] else { panic!("{found:?}") };
    assert!(first.contains("invalid UTF-8") && second.contains("invalid UTF-8"), "{first} {second}");
    assert_eq!(third, "Meier Bern");
}
