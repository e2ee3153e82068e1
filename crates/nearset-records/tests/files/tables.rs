//! CSV and TSV, in and out.

use nearset_records::output::{Added, AddedKind, Value};
use nearset_records::{Fields, InputError, ItemField, OutputError, OutputOptions, ReadOptions, RecordWriter};

use crate::support::*;

#[test]
fn quoted_cells_hold_separators_line_ends_and_quotes() {
    let folder = Folder::new();
    let csv = "id,\"text\",more\r\n1,\"a, \"\"b\"\"\nc\",x\r\n\r\n2,un\"quoted,y\r\n\"\",\"\",\"\"\r\n4,last,";
    let path = folder.write("a.csv", csv);
    let batches = read(&path, &text_fields());
    let found = records(&batches, &text_fields());
    let place = |line: u64| format!("{}:{line}", path.display());
    let expected =
        [("1".to_owned(), "a, \"b\"\nc"), ("2".to_owned(), "un\"quoted"), (place(6), ""), ("4".to_owned(), "last")];
    assert_eq!(found, expected.map(|(id, text)| Ok((id, text.to_owned()))));
    assert_eq!(batches[0].preamble().columns, ["id", "text", "more"]);
}

#[test]
fn tabs_separate_and_cells_may_be_vectors_or_hashes() {
    let folder = Folder::new();
    let path = folder.write("a.tsv", "name\thash\tvector\nx\tff\t[1, 2]\ny\t0f\t3 4\n");
    assert_eq!(
        texts(&read(&path, &Fields::new("hash", ItemField::Hex)), &Fields::new("hash", ItemField::Hex)),
        ["8 [ff]", "8 [f]"]
    );
    let fields = Fields::new("vector", ItemField::Vector).with_id(Some("name".to_owned()));
    let expected = [("x", "[1.0, 2.0]"), ("y", "[3.0, 4.0]")];
    assert_eq!(records(&read(&path, &fields), &fields), expected.map(|(id, v)| Ok((id.to_owned(), v.to_owned()))));
}

#[test]
fn a_missing_column_is_found_before_any_record() {
    let folder = Folder::new();
    let path = folder.write("a.csv", "id,body\n1,x\n");
    let (_, error) = batches(&sources(&[&path], None), &ReadOptions::new(text_fields()));
    let message = error.unwrap().to_string();
    assert!(message.ends_with("no column is called \"text\": there are \"id\", \"body\""), "{message}");
}

#[test]
fn faulty_rows_are_errors_of_their_own() {
    let folder = Folder::new();
    let path =
        folder.write("a.csv", "id,text\n1\n2,\"x\"y\n3,fine\n6,half a text, and its rest\n4,\"open\n5,swallowed\n");
    let (found, error) = batches(&sources(&[&path], None), &ReadOptions::new(text_fields()));
    assert!(
        error
            .unwrap()
            .to_string()
            .ends_with("may have more records behind line 6, in a quoted cell that is never closed")
    );
    let found = records(&found, &text_fields());
    let message = |i: usize| found[i].as_ref().unwrap_err().strip_prefix(&format!("{}:", path.display())).unwrap();
    assert_eq!(message(0), "2: 1 cells, but column \"text\" is number 2");
    assert_eq!(message(1), "3: byte 5 of the record: a quoted cell is followed by something other than a separator");
    assert_eq!(found[2].as_ref().unwrap().1, "fine");
    let cure = "put cells that contain the separator in quotes, or name the missing columns";
    assert_eq!(message(3), format!("5: 3 cells, but the header names 2 columns: {cure}"));
    assert_eq!(
        message(4),
        "6: a quoted cell is never closed, and takes in all 2 lines from here to the end of the file"
    );
}

#[test]
fn kept_rows_follow_the_first_header_and_other_headers_are_refused() {
    let folder = Folder::new();
    let one = folder.write("1.csv", "\u{feff}id,text\r\n1,a\r\n2,\"b\nb\"");
    let two = folder.write("2.csv", "id,text\n3,c\n");
    let three = folder.write("3.csv", "text,id\nd,4\n");
    let sources = sources(&[&one, &two, &three], None);
    let (batches, error) = batches(&sources, &ReadOptions::new(text_fields()));
    assert!(error.is_none());
    let out = folder.path("out.csv");
    let mut writer = RecordWriter::create(&out, Vec::new(), &OutputOptions::protecting(&sources)).unwrap();
    for batch in &batches[..2] {
        writer.begin(batch).unwrap();
        for i in 0..batch.len() {
            writer.copy(batch, i).unwrap();
        }
    }
    assert!(matches!(writer.begin(&batches[2]), Err(OutputError::HeaderMismatch { .. })));
    writer.finish().unwrap();
    assert_eq!(std::fs::read_to_string(out).unwrap(), "\u{feff}id,text\r\n1,a\r\n2,\"b\nb\"\n3,c\n");
}

#[test]
fn annotations_are_new_columns() {
    let folder = Folder::new();
    let path = folder.write("a.csv", "id,text\r\n1,a\r\n2,b");
    let batch = &read(&path, &text_fields())[0];
    let out = folder.path("out.csv.gz");
    let added = ["near", "dup,of"].map(|name| Added::new(name, AddedKind::Text)).to_vec();
    let mut writer = RecordWriter::create(&out, added, &OutputOptions::default()).unwrap();
    writer.begin(batch).unwrap();
    writer.annotate(batch, 0, &[Value::Bool(true), Value::Text("say \"hi\"")]).unwrap();
    writer.annotate(batch, 1, &[Value::Number(0.5), Value::Null]).unwrap();
    writer.finish().unwrap();
    let expected = "id,text,near,\"dup,of\"\r\n1,a,true,\"say \"\"hi\"\"\"\r\n2,b,0.5,";
    assert_eq!(gunzip(&std::fs::read(out).unwrap()), expected.as_bytes());
}

fn annotate_rows(table: &str, values: &[Value<'_>]) -> Result<String, OutputError> {
    let folder = Folder::new();
    let batch = &read(&folder.write("in.csv", table), &text_fields())[0];
    let out = folder.path("out.csv");
    let added = vec![Added::new("near", AddedKind::Bool), Added::new("dup,of", AddedKind::Text)];
    let mut writer = RecordWriter::create(&out, added, &OutputOptions::default())?;
    writer.begin(batch)?;
    for i in 0..batch.len() {
        writer.annotate(batch, i, values)?;
    }
    writer.finish()?;
    Ok(std::fs::read_to_string(out).unwrap())
}

#[test]
fn columns_of_an_earlier_run_are_replaced_where_they_stand() {
    let values = [Value::Bool(true), Value::Text("a, b")];
    for (table, expected) in [
        (
            "\u{feff}\"near\",text,\"dup,of\",z\r\nfalse,\"x\"\"\",,1\r\n\"False\",y,\"q,r\",\"2\"",
            "\u{feff}\"near\",text,\"dup,of\",z\r\ntrue,\"x\"\"\",\"a, b\",1\r\ntrue,y,\"a, b\",\"2\"",
        ),
        ("text,near\nx,\n", "text,near,\"dup,of\"\nx,true,\"a, b\"\n"),
        // What was added twice is there once.
        ("near,text,near\nfalse,x,true\n", "near,text,\"dup,of\"\ntrue,x,\"a, b\"\n"),
        // Each value stands below its name, also where a row is shorter or longer than its header, though a longer one has no item.
        ("text,note\nx\ny,n,beyond\n", "text,note,near,\"dup,of\"\nx,,true,\"a, b\"\ny,n,true,\"a, b\",beyond\n"),
        ("text,near\nx\n", "text,near,\"dup,of\"\nx,true,\"a, b\"\n"),
    ] {
        assert_eq!(annotate_rows(table, &values).unwrap(), expected);
    }
}

#[test]
fn columns_that_no_earlier_run_has_added_are_not_overwritten() {
    for (table, found) in [
        ("text,\"dup,of\"\nx,mine\n", "in.csv: field \"dup,of\" is there already and holds other values"),
        ("text,near\nx,true\ny,Paris\n", "in.csv:3: field \"near\" is there already and holds another kind of value"),
    ] {
        let error = annotate_rows(table, &[Value::Bool(true), Value::Null]).unwrap_err().to_string();
        assert!(error.contains(found), "{error}");
    }
}

#[test]
fn a_header_that_never_ends_is_refused() {
    let folder = Folder::new();
    let path = folder.write("a.csv", format!("\"id,text\n{}", "1,a\n".repeat(10_000)));
    let options = ReadOptions { max_record: 8192, ..ReadOptions::new(text_fields()) };
    let (_, error) = batches(&sources(&[&path], None), &options);
    assert!(matches!(error, Some(InputError::RecordTooLong { line: 1, .. })), "{error:?}");
}
