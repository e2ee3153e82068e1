//! Outputs: byte for byte, whole or not at all, never over an input, and resumable.

use std::fs;
use std::path::Path;

use nearset_records::output::{Added, AddedKind, Value, partial_path};
use nearset_records::{Batch, Format, OutputError, OutputFile, OutputOptions, ReadOptions, RecordWriter, chain};

use crate::support::*;

fn unpack(path: &Path) -> Vec<u8> {
    let bytes = fs::read(path).unwrap();
    match path.extension().unwrap().to_str().unwrap() {
        "gz" => gunzip(&bytes),
        "zst" => unzstd(&bytes),
        "bz2" => bunzip2(&bytes),
        "xz" => unxz(&bytes),
        _ => bytes,
    }
}

fn copy_all(writer: &mut RecordWriter, batches: &[Batch]) {
    for batch in batches {
        writer.begin(batch).unwrap();
        for i in 0..batch.len() {
            writer.copy(batch, i).unwrap();
        }
    }
}

const NAMES: [&str; 5] = ["out.jsonl", "out.jsonl.gz", "out.jsonl.zst", "out.jsonl.bz2", "out.jsonl.xz"];

#[test]
fn ten_thousand_records_come_out_as_they_went_in() {
    let folder = Folder::new();
    let corpus = corpus(10_000);
    let batches = read(&folder.write("in.jsonl", &corpus), &text_fields());
    for name in NAMES {
        let out = folder.path(name);
        let mut writer = RecordWriter::create(&out, Vec::new(), &OutputOptions::default()).unwrap();
        copy_all(&mut writer, &batches);
        assert!(!out.exists(), "nothing appears before it is finished");
        writer.finish().unwrap();
        assert_eq!(unpack(&out), corpus);
        assert!(!partial_path(&out).exists());
    }
}

#[test]
fn marks_carriage_returns_and_a_missing_last_line_end_survive_and_blank_lines_do_not() {
    let folder = Folder::new();
    let one = folder.write("1.jsonl", "\u{feff}{\"text\":\"a\"} \r\n\r\n{\"text\":\"b\"}");
    let two = folder.write("2.jsonl", "\u{feff}{\"text\":\"c\"}");
    let (batches, _) = batches(&sources(&[&one, &two], None), &ReadOptions::new(text_fields()));
    let out = folder.path("out.jsonl");
    let mut writer = RecordWriter::create(&out, Vec::new(), &OutputOptions::default()).unwrap();
    copy_all(&mut writer, &batches);
    writer.finish().unwrap();
    let expected = "\u{feff}{\"text\":\"a\"} \r\n{\"text\":\"b\"}\n{\"text\":\"c\"}";
    assert_eq!(fs::read_to_string(out).unwrap(), expected);
}

#[test]
fn empty_lines_of_plain_text_are_documents_and_stay() {
    let folder = Folder::new();
    let text = "a\n\n\r\nb";
    let batches = read(&folder.write("in.txt", text), &text_fields());
    let out = folder.path("out.txt");
    let mut writer = RecordWriter::create(&out, Vec::new(), &OutputOptions::default()).unwrap();
    copy_all(&mut writer, &batches);
    writer.finish().unwrap();
    assert_eq!(fs::read_to_string(out).unwrap(), text);
}

#[test]
fn an_output_without_records_is_a_valid_file() {
    let folder = Folder::new();
    for name in NAMES {
        let out = folder.path(name);
        RecordWriter::create(&out, Vec::new(), &OutputOptions::default()).unwrap().finish().unwrap();
        assert_eq!(unpack(&out), b"");
    }
}

#[test]
fn an_output_that_is_dropped_leaves_nothing_unless_it_is_to_be_resumed() {
    let folder = Folder::new();
    let out = folder.path("out.jsonl");
    let mut options = OutputOptions::default();
    OutputFile::create(&out, &options).unwrap().write(b"half").unwrap();
    assert!(!out.exists() && !partial_path(&out).exists());
    options.keep_partial = true;
    OutputFile::create(&out, &options).unwrap().write(b"half").unwrap();
    assert!(!out.exists() && partial_path(&out).exists());
}

#[test]
fn a_stopped_run_goes_on_to_the_same_bytes() {
    let folder = Folder::new();
    let corpus = corpus(3_000);
    let path = folder.write("in.jsonl", &corpus);
    let options = ReadOptions { batch_bytes: 32 << 10, ..ReadOptions::new(text_fields()) };
    let sources = sources(&[&path], None);
    let (all, _) = batches(&sources, &options);
    assert!(all.len() > 3);
    for name in NAMES {
        let out = folder.path(name);
        let mut output = OutputOptions::protecting(&sources);
        output.keep_partial = true;
        // The usual level of xz takes 100 MB for each of the many streams.
        output.level = Some(1);
        let mut checkpoints = Vec::new();
        let mut writer = RecordWriter::create(&out, Vec::new(), &output).unwrap();
        for batch in &all {
            copy_all(&mut writer, std::slice::from_ref(batch));
            checkpoints.push(writer.checkpoint().unwrap());
        }
        writer.finish().unwrap();
        let uninterrupted = fs::read(&out).unwrap();
        assert_eq!(unpack(&out), corpus);
        fs::remove_file(&out).unwrap();

        for stop in 0..all.len() - 1 {
            let mut writer = RecordWriter::create(&out, Vec::new(), &output).unwrap();
            for batch in &all[..=stop] {
                copy_all(&mut writer, std::slice::from_ref(batch));
                writer.checkpoint().unwrap();
            }
            // What follows the checkpoint is lost with the run.
            copy_all(&mut writer, &all[stop + 1..stop + 2]);
            drop(writer);
            let (rest, _) = batches_from(&sources, &options, all[stop].end());
            let mut writer = RecordWriter::resume(&out, Vec::new(), checkpoints[stop], &output).unwrap();
            for batch in &rest {
                copy_all(&mut writer, std::slice::from_ref(batch));
                writer.checkpoint().unwrap();
            }
            writer.finish().unwrap();
            assert_eq!(fs::read(&out).unwrap(), uninterrupted, "{name} from batch {stop}");
            fs::remove_file(&out).unwrap();
        }
    }
}

#[test]
fn a_partial_output_that_is_gone_is_not_resumed() {
    let folder = Folder::new();
    let error = OutputFile::resume(&folder.path("out.jsonl"), 10, &OutputOptions::default()).err().unwrap();
    assert!(matches!(error, OutputError::ResumeBeyondEnd { wanted: 10, found: 0, .. }));
    assert!(OutputFile::resume(Path::new("-"), 0, &OutputOptions::default()).is_err());
}

#[test]
fn an_input_is_never_written_to_by_any_of_its_names() {
    let folder = Folder::new();
    let input = folder.write("in.jsonl", corpus(3));
    let mut options = OutputOptions::protecting(&sources(&[&input], None));
    options.force = true;
    let hard = folder.path("hard.jsonl");
    fs::hard_link(&input, &hard).unwrap();
    let mut names = vec![input.clone(), hard, folder.path("../").join(folder.path("in.jsonl"))];
    #[cfg(unix)]
    {
        let soft = folder.path("soft.jsonl");
        std::os::unix::fs::symlink(&input, &soft).unwrap();
        names.push(soft);
        let behind_partial = folder.path("out.jsonl");
        std::os::unix::fs::symlink(&input, partial_path(&behind_partial)).unwrap();
        names.push(behind_partial);
    }
    for name in names {
        let error = OutputFile::create(&name, &options).err().unwrap();
        assert!(matches!(error, OutputError::IsInput { .. }), "{error}");
    }
    assert_eq!(fs::read(&input).unwrap(), corpus(3));
}

#[test]
fn an_existing_output_is_replaced_only_by_force_and_only_at_the_end() {
    let folder = Folder::new();
    let out = folder.write("out.jsonl", "before");
    let mut options = OutputOptions::default();
    assert!(matches!(OutputFile::create(&out, &options), Err(OutputError::Exists { .. })));
    options.force = true;
    let mut file = OutputFile::create(&out, &options).unwrap();
    file.write(b"after").unwrap();
    assert_eq!(fs::read(&out).unwrap(), b"before");
    assert!(matches!(OutputFile::create(&out, &options), Err(OutputError::Busy { .. })));
    file.finish().unwrap();
    assert_eq!(fs::read(&out).unwrap(), b"after");
}

#[test]
fn places_that_cannot_be_written_to_are_named() {
    let folder = Folder::new();
    let options = OutputOptions::default();
    let error = |path: &Path| OutputFile::create(path, &options).err().unwrap();
    assert!(matches!(error(&folder.path("no/such/out.jsonl")), OutputError::NoFolder { .. }));
    assert!(matches!(error(&folder.path("")), OutputError::IsFolder { .. }));
    assert!(matches!(
        error(Path::new("/proc/out.jsonl")),
        OutputError::NoPermission { .. } | OutputError::Write { .. }
    ));
}

#[test]
fn packings_that_are_not_written_are_refused_by_name() {
    let folder = Folder::new();
    for ending in ["lz4", "br", "Z", "zip", "7z", "snappy"] {
        let path = folder.path(&format!("out.jsonl.{ending}"));
        let error = OutputFile::create(&path, &OutputOptions::default()).err().unwrap();
        assert!(matches!(error, OutputError::UnknownPacking { .. }), "{error}");
        assert!(error.to_string().contains("name it .gz, .zst, .bz2 or .xz"), "{error}");
    }
    assert_eq!(fs::read_dir(folder.path("")).unwrap().count(), 0);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_device_is_an_error_with_the_outputs_name() {
    let folder = Folder::new();
    let out = folder.path("out.jsonl");
    std::os::unix::fs::symlink("/dev/full", partial_path(&out)).unwrap();
    let mut file = OutputFile::create(&out, &OutputOptions::default()).unwrap();
    let error = file.write(&vec![0; 1 << 20]).and_then(|()| file.finish()).unwrap_err();
    assert!(matches!(error, OutputError::NoSpace { .. }), "{error}");
    assert!(!out.exists());
}

#[test]
fn formats_are_not_converted_but_for_files_that_are_documents() {
    let folder = Folder::new();
    let jsonl = read(&folder.write("in.jsonl", corpus(1)), &text_fields());
    let mut writer = RecordWriter::create(&folder.path("out.csv"), Vec::new(), &OutputOptions::default()).unwrap();
    assert!(writer.begin(&jsonl[0]).unwrap_err().to_string().contains("name it .jsonl"));

    let document = folder.write("doc.txt", "say \"hi\"\n\u{1}é");
    let (documents, _) = batches(&sources(&[&document], Some(Format::TextFile)), &ReadOptions::new(text_fields()));
    let out = folder.path("out.jsonl");
    let mut writer =
        RecordWriter::create(&out, vec![Added::new("n", AddedKind::Integer)], &OutputOptions::default()).unwrap();
    writer.begin(&documents[0]).unwrap();
    writer.annotate(&documents[0], 0, &[Value::Integer(-1)]).unwrap();
    writer.finish().unwrap();
    let value: serde_json::Value = serde_json::from_slice(&fs::read(out).unwrap()).unwrap();
    assert_eq!(value, serde_json::json!({"id": document.to_str().unwrap(), "text": "say \"hi\"\n\u{1}é", "n": -1}));
}

#[cfg(unix)]
#[test]
fn a_link_to_a_file_stays_and_the_file_is_replaced() {
    use std::os::unix::fs::symlink;
    let folder = Folder::new();
    let file = folder.write("d/file.jsonl", "before");
    let (link, dangling) = (folder.path("link.jsonl"), folder.path("dangling.jsonl"));
    symlink("d/file.jsonl", &link).unwrap();
    symlink("d/new.jsonl", &dangling).unwrap();
    let mut options = OutputOptions::default();
    assert!(matches!(OutputFile::create(&link, &options), Err(OutputError::Exists { .. })));
    options.force = true;
    for (name, target) in [(&link, &file), (&dangling, &folder.path("d/new.jsonl"))] {
        let mut out = OutputFile::create(name, &options).unwrap();
        assert_eq!(partial_path(name), partial_path(target), "beside the file, so that it can be renamed");
        out.write(b"after").unwrap();
        out.finish().unwrap();
        assert!(name.is_symlink() && !target.is_symlink());
        assert_eq!(fs::read(target).unwrap(), b"after");
    }
    symlink("b.jsonl", folder.path("a.jsonl")).unwrap();
    symlink("a.jsonl", folder.path("b.jsonl")).unwrap();
    let error = OutputFile::create(&folder.path("a.jsonl"), &options).err().unwrap();
    assert!(chain(&error).contains("circle"), "{}", chain(&error));
}

#[cfg(unix)]
#[test]
fn a_socket_is_written_through() {
    let folder = Folder::new();
    let path = folder.path("out.jsonl.gz");
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let reading = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut listener.accept().unwrap().0, &mut bytes).unwrap();
        bytes
    });
    let mut options = OutputOptions::default();
    OutputFile::check(&path, &options).unwrap();
    options.keep_partial = true;
    let mut out = OutputFile::create(&path, &options).unwrap();
    out.write(b"over there").unwrap();
    assert!(matches!(out.checkpoint(), Err(OutputError::NotResumable { .. })));
    out.write(b", and on").unwrap();
    out.finish().unwrap();
    assert_eq!(gunzip(&reading.join().unwrap()), b"over there, and on");
    assert!(matches!(OutputFile::resume(&path, 0, &options), Err(OutputError::NotResumable { .. })));
    assert_eq!(fs::read_dir(folder.path("")).unwrap().count(), 1, "nothing was put beside it");
}

#[test]
fn sources_of_two_formats_have_no_common_output() {
    let folder = Folder::new();
    let jsonl = read(&folder.write("a.jsonl", corpus(2)), &text_fields());
    let text = read(&folder.write("b.txt", "a line\n"), &text_fields());
    for name in ["out.jsonl", "out"] {
        let mut writer = RecordWriter::create(&folder.path(name), Vec::new(), &OutputOptions::default()).unwrap();
        copy_all(&mut writer, &jsonl);
        let error = writer.begin(&text[0]).unwrap_err();
        assert!(matches!(error, OutputError::MixedFormats { .. }), "{error}");
    }
}

fn annotate_lines(lines: &str, added: &[Added], values: &[Value<'_>]) -> Result<String, OutputError> {
    let folder = Folder::new();
    let batch = &read(&folder.write("in.jsonl", lines), &text_fields())[0];
    let out = folder.path("out.jsonl");
    let mut writer = RecordWriter::create(&out, added.to_vec(), &OutputOptions::default())?;
    writer.begin(batch)?;
    for i in 0..batch.len() {
        writer.annotate(batch, i, values)?;
    }
    writer.finish()?;
    Ok(fs::read_to_string(out).unwrap())
}

#[test]
fn annotations_of_an_earlier_run_are_replaced_where_they_stand() {
    let added = [Added::new("near", AddedKind::Bool), Added::new("hits", AddedKind::Integer)];
    let values = [Value::Bool(true), Value::Integer(7)];
    for (line, expected) in [
        // Where they stand, with the space around them; nested ones are others' business.
        (
            r#"{ "near" : false , "x": {"near": 1, "hits": [2]}, "hits":3 }"#,
            r#"{ "near" : true , "x": {"near": 1, "hits": [2]}, "hits":7 }"#,
        ),
        (r#"{"text":"near","hits":null,"near":false}"#, r#"{"text":"near","hits":7,"near":true}"#),
        // A key may be spelt with escapes, and stays so.
        (r#"{"ne\u0061r":false,"text":"a"}"#, r#"{"ne\u0061r":true,"text":"a","hits":7}"#),
        // What was written twice is there once; other keys stay as often as they are.
        (r#"{"a":1,"near":true,"hits":1,"a":2, "near":false, "hits":2}"#, r#"{"a":1,"near":true,"hits":7,"a":2}"#),
        (r#"{"near":null}"#, r#"{"near":true,"hits":7}"#),
        (r#"{"near":true,"near":false ,"near":true }"#, r#"{"near":true ,"hits":7}"#),
    ] {
        assert_eq!(annotate_lines(line, &added, &values).unwrap(), expected);
        let twice = annotate_lines(expected, &added, &values).unwrap();
        assert_eq!(twice, expected, "once more changes nothing");
    }
}

#[test]
fn fields_that_no_earlier_run_has_added_are_not_overwritten() {
    let added = [Added::new("near", AddedKind::Bool), Added::new("hits", AddedKind::Integer)];
    for (line, field) in [
        (r#"{"hits":1234}"#, "\"hits\" is there already and holds a number"),
        (r#"{"near":"Paris","hits":1}"#, "\"near\" is there already and holds a string"),
        (r#"{"near":true,"hits":"many"}"#, "\"hits\" is there already and holds a string"),
        (r#"{"hits":5,"near":null}"#, "\"hits\" is there already and holds a number"),
    ] {
        let error = annotate_lines(&format!("{{}}\n{line}\n"), &added, &[Value::Bool(true), Value::Null]).unwrap_err();
        assert!(error.to_string().contains(field) && error.to_string().contains("in.jsonl:2:"), "{error}");
    }
}

#[test]
fn annotations_go_before_the_closing_brace() {
    let folder = Folder::new();
    let lines = "{\"text\":\"a}\" }\r\n{ }\n{\"x\":{}}";
    let batch = &read(&folder.write("in.jsonl", lines), &text_fields())[0];
    let out = folder.path("out.jsonl.zst");
    let added = ["near", "of \"it\""].map(|name| Added::new(name, AddedKind::Text)).to_vec();
    let mut writer = RecordWriter::create(&out, added, &OutputOptions::default()).unwrap();
    writer.begin(batch).unwrap();
    writer.annotate(batch, 0, &[Value::Number(0.5), Value::Text("tab\t")]).unwrap();
    writer.annotate(batch, 1, &[Value::Bool(false), Value::Null]).unwrap();
    writer.annotate(batch, 2, &[Value::Number(f64::NAN), Value::Integer(3)]).unwrap();
    writer.finish().unwrap();
    let expected = "{\"text\":\"a}\" ,\"near\":0.5,\"of \\\"it\\\"\":\"tab\\t\"}\r\n\
                    { \"near\":false,\"of \\\"it\\\"\":null}\n\
                    {\"x\":{},\"near\":null,\"of \\\"it\\\"\":3}";
    assert_eq!(String::from_utf8(unpack(&out)).unwrap(), expected);
}
