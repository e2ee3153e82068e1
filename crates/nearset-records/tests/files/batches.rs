//! Batches: no byte lost, no record cut, positions that can be returned to.

use nearset_records::{Cure, Format, InputError, ReadOptions, chain};
use proptest::prelude::*;

use crate::support::*;

fn small_batches(bytes: usize) -> ReadOptions {
    ReadOptions { batch_bytes: bytes, ..ReadOptions::new(text_fields()) }
}

/// The text that a packing of several members or frames holds.
fn in_three(bytes: &[u8], pack: impl Fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let third = bytes.len() / 3;
    [pack(&bytes[..third]), pack(&bytes[third..2 * third]), pack(&bytes[2 * third..])].concat()
}

#[test]
fn ten_thousand_records_are_the_same_plain_and_in_every_packing_in_parts() {
    let folder = Folder::new();
    let corpus = corpus(10_000);
    let plain = folder.write("a.jsonl", &corpus);
    let gz = folder.write("a.jsonl.gz", in_three(&corpus, gzip));
    let zst = folder.write("a.jsonl.zst", in_three(&corpus, zstd));
    let bz2 = folder.write("a.jsonl.bz2", in_three(&corpus, bzip2));
    // Between and behind streams of xz there may be padding, by fours.
    let padded = |bytes: &[u8]| [xz(bytes), vec![0; 8]].concat();
    let xz = folder.write("a.jsonl.xz", in_three(&corpus, padded));
    let fields = text_fields();
    for path in [plain, gz, zst, bz2, xz] {
        let batches = read(&path, &fields);
        assert_eq!(raw(&batches), corpus);
        let records = records(&batches, &fields);
        assert_eq!(records.len(), 10_000);
        for (i, record) in records.iter().enumerate() {
            let (id, text) = record.as_ref().unwrap();
            assert_eq!(id, &i.to_string());
            assert!(text.starts_with(&format!("document {i}\nsecond line é ")));
        }
    }
}

#[test]
fn a_record_longer_than_a_batch_grows_it() {
    let folder = Folder::new();
    let long = format!("{{\"text\":\"{}\"}}\n{{\"text\":\"short\"}}", "y".repeat(5 << 20));
    let path = folder.write("long.jsonl", &long);
    let batches = read(&path, &text_fields());
    assert_eq!(raw(&batches), long.as_bytes());
    let texts = texts(&batches, &text_fields());
    assert_eq!((texts[0].len(), texts[1].as_str()), (5 << 20, "short"));
}

#[cfg(feature = "pictures")]
#[test]
fn a_picture_file_beyond_the_limit_is_a_record_at_fault() {
    let folder = Folder::new();
    let path = folder.write("a.png", "z".repeat(10_000));
    let fields = nearset_records::Fields::new("hash", nearset_records::ItemField::Hex);
    let options = ReadOptions { batch_bytes: 64, max_record: 4096, ..ReadOptions::new(fields.clone()) };
    let (batches, error) = batches(&sources(&[&path], None), &options);
    assert!(error.is_none(), "{error:?}");
    let [Err(fault)] = &records(&batches, &fields)[..] else { panic!("one record, and no hash") };
    assert!(fault.contains("a.png: a file of more than"), "{fault}");
}

#[test]
fn a_record_beyond_the_limit_is_an_error_with_its_line() {
    let folder = Folder::new();
    let path = folder.write("a.jsonl", format!("{{\"text\":\"a\"}}\n{}", "z".repeat(10_000)));
    let options = ReadOptions { batch_bytes: 64, max_record: 4096, ..ReadOptions::new(text_fields()) };
    let (batches, error) = batches(&sources(&[&path], None), &options);
    assert_eq!(texts(&batches, &text_fields()), ["a"]);
    assert!(matches!(error, Some(InputError::RecordTooLong { line: 2, limit: 4096, .. })), "{error:?}");
}

#[test]
fn a_mark_and_carriage_returns_are_kept_raw_and_ignored_in_texts() {
    let folder = Folder::new();
    let bytes = b"\xef\xbb\xbffirst\r\n\r\nthird \r inside\r\nlast";
    let path = folder.write("a.txt", bytes);
    let batches = read(&path, &text_fields());
    assert_eq!(batches[0].preamble().raw, b"\xef\xbb\xbf");
    assert_eq!(raw(&batches), &bytes[3..]);
    assert_eq!(texts(&batches, &text_fields()), ["first", "", "third \r inside", "last"]);
    assert_eq!(batches[0].raw(3), b"last");
}

#[test]
fn blank_lines_are_no_records_in_jsonl_but_count_as_lines() {
    let folder = Folder::new();
    let bytes = b"\n{\"text\":\"a\"}\n  \r\n\t\n{\"text\":\"b\"}\r\n\n";
    let path = folder.write("a.jsonl", bytes);
    let batches = read(&path, &text_fields());
    assert_eq!(raw(&batches), bytes);
    let ids: Vec<String> = records(&batches, &text_fields()).into_iter().map(|record| record.unwrap().0).collect();
    assert_eq!(ids, [format!("{}:2", path.display()), format!("{}:5", path.display())]);
}

#[test]
fn a_file_can_be_one_document() {
    let folder = Folder::new();
    let one = folder.write("one.txt", "line\nline\n");
    let empty = folder.write("two.txt", "");
    let sources = sources(&[&one, &empty], Some(Format::TextFile));
    let (batches, error) = batches(&sources, &small_batches(4));
    assert!(error.is_none());
    let expected = [("one.txt", "line\nline\n"), ("two.txt", "")];
    let expected = expected.map(|(name, text)| Ok((folder.path(name).to_str().unwrap().to_owned(), text.to_owned())));
    assert_eq!(records(&batches, &text_fields()), expected);
}

#[test]
fn a_truncated_stream_delivers_its_whole_records_and_then_says_so() {
    let folder = Folder::new();
    let corpus = corpus(5_000);
    for (name, packed) in [
        ("a.jsonl.gz", gzip(&corpus)),
        ("a.jsonl.zst", zstd(&corpus)),
        ("a.jsonl.bz2", bzip2(&corpus)),
        // What is packed as one piece is unpacked as one, and a piece of xz holds up to 2 MiB.
        ("a.jsonl.xz", in_three(&corpus, xz)),
    ] {
        let path = folder.write(name, &packed[..packed.len() * 2 / 3]);
        let next = folder.write("next.jsonl", "{\"text\":\"next\"}\n");
        let (batches, error) = batches(&sources(&[&path, &next], None), &small_batches(4096));
        let Some(InputError::Truncated { name, read, .. }) = &error else { panic!("{error:?}") };
        assert_eq!(name.as_ref(), path.to_str().unwrap());
        let delivered = raw(&batches);
        assert!(delivered.len() > 10_000 && corpus.starts_with(&delivered));
        let partial = &corpus[delivered.len()..*read as usize];
        assert!(!partial.contains(&b'\n'), "every whole record before the cut was delivered");
        assert!(records(&batches, &text_fields()).iter().all(Result::is_ok));
    }
}

#[test]
fn a_damaged_stream_is_told_from_a_cut_one() {
    let folder = Folder::new();
    for (name, mut packed) in [
        ("a.jsonl.gz", gzip(&corpus(5_000))),
        ("a.jsonl.bz2", bzip2(&corpus(5_000))),
        ("a.jsonl.xz", xz(&corpus(5_000))),
    ] {
        let middle = packed.len() / 2;
        packed[middle..middle + 64].fill(0xff);
        let path = folder.write(name, &packed);
        let (_, error) = batches(&sources(&[&path], None), &small_batches(4096));
        assert!(matches!(error, Some(InputError::Corrupt { .. })), "{name}: {error:?}");
    }
    for (name, whole) in [("behind.jsonl.bz2", bzip2(&corpus(100))), ("behind.jsonl.xz", xz(&corpus(100)))] {
        let path = folder.write(name, [whole, b"{\"text\":\"not packed\"}\n".to_vec()].concat());
        let (_, error) = batches(&sources(&[&path], None), &small_batches(4096));
        assert!(matches!(error, Some(InputError::Corrupt { .. })), "{name}: {error:?}");
    }
    for name in ["plain.jsonl.bz2", "plain.jsonl.xz"] {
        let (batches, error) = batches(&sources(&[&folder.write(name, corpus(10))], None), &small_batches(4096));
        assert!(batches.is_empty() && matches!(error, Some(InputError::Corrupt { .. })), "{name}: {error:?}");
    }
    let path = folder.write("plain.jsonl.zst", corpus(10));
    let (batches, error) = batches(&sources(&[&path], None), &small_batches(4096));
    assert!(batches.is_empty() && matches!(error, Some(InputError::Corrupt { .. })), "{error:?}");
    assert_eq!(error.unwrap().cure(), Some(Cure::RenameOrFetchAgain));
}

#[test]
fn what_is_packed_is_unpacked_whatever_its_name() {
    let folder = Folder::new();
    let corpus = corpus(100);
    for (name, packed) in [
        ("gzip.jsonl", gzip(&corpus)),
        ("gzip.jsonl.zst", gzip(&corpus)),
        ("zstd.jsonl", zstd::encode_all(&corpus[..], 3).unwrap()),
        ("bzip2.jsonl", bzip2(&corpus)),
        ("xz.jsonl.gz", xz(&corpus)),
    ] {
        let (batches, error) = batches(&sources(&[&folder.write(name, packed)], None), &small_batches(4096));
        assert!(error.is_none() && raw(&batches) == corpus, "{name}");
    }
}

#[test]
fn a_header_of_xz_that_asks_for_more_memory_than_is_given_is_refused() {
    let folder = Folder::new();
    let mut packed = xz(&corpus(10));
    // The size of the dictionary stands in the block's header, behind the stream's: flags, filter, size of its properties. 40 is 4 GiB.
    assert_eq!(packed[14..16], [0x21, 1]);
    packed[16] = 40;
    let header = 12..12 + 4 * (usize::from(packed[12]) + 1);
    let mut checksum = flate2::Crc::new();
    checksum.update(&packed[header.start..header.end - 4]);
    packed[header.end - 4..header.end].copy_from_slice(&checksum.sum().to_le_bytes());
    let (_, error) = batches(&sources(&[&folder.write("a.jsonl.xz", packed)], None), &small_batches(4096));
    assert!(matches!(error, Some(InputError::Corrupt { .. })), "{error:?}");
    assert!(chain(&error.unwrap()).contains("memory"));
}

#[test]
fn reading_goes_on_from_the_end_of_any_batch() {
    let folder = Folder::new();
    let corpus = corpus(500);
    let csv = format!("\u{feff}id,text\r\n{}", "7,\"quoted\nline\"\r\n8,plain\r\n".repeat(100));
    let inputs = [
        folder.write("a.jsonl", &corpus),
        folder.write("b.jsonl.gz", gzip(&corpus)),
        folder.write("c.csv", &csv),
        folder.write("d.csv.zst", zstd(csv.as_bytes())),
        folder.write("e.csv.bz2", bzip2(csv.as_bytes())),
        folder.write("f.jsonl.xz", xz(&corpus)),
        folder.write("g.txt", "no line end"),
    ];
    let sources = sources(&inputs.each_ref().map(|path| path.as_path()), None);
    let options = small_batches(1 << 10);
    let (all, error) = batches(&sources, &options);
    assert!(error.is_none(), "{error:?}");
    let everything = records(&all, &text_fields());
    assert_eq!(everything.len(), 3 * 500 + 3 * 200 + 1);
    let mut passed = 0;
    for batch in &all {
        passed += batch.len();
        let (rest, error) = batches_from(&sources, &options, batch.end());
        assert!(error.is_none(), "{error:?}");
        assert_eq!(records(&rest, &text_fields()), everything[passed..], "from {:?}", batch.end());
    }
}

#[test]
fn an_input_that_shrank_since_is_not_resumed() {
    let folder = Folder::new();
    let path = folder.write("a.jsonl", corpus(100));
    let (all, _) = batches(&sources(&[&path], None), &small_batches(1 << 20));
    folder.write("a.jsonl", corpus(50));
    let (_, error) = batches_from(&sources(&[&path], None), &small_batches(1 << 20), all[0].end());
    assert!(matches!(error, Some(InputError::ResumeBeyondEnd { .. })), "{error:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn batches_put_together_are_the_input(
        lines in prop::collection::vec("[ab\"\\\\,\r\u{e9} ]{0,30}", 0..40),
        last_line_end in any::<bool>(),
        batch_bytes in 1usize..200,
        format in prop::sample::select(vec![Format::Jsonl, Format::Text, Format::TextFile]),
    ) {
        let folder = Folder::new();
        let mut input = lines.join("\n");
        if last_line_end {
            input.push('\n');
        }
        let path = folder.write("input", &input);
        let (batches, error) = batches(&sources(&[&path], Some(format)), &small_batches(batch_bytes));
        prop_assert!(error.is_none());
        prop_assert_eq!(raw(&batches), input.as_bytes());
        let mut offset = 0;
        for batch in &batches {
            prop_assert_eq!(batch.start().offset, offset);
            offset = batch.end().offset;
            for i in 0..batch.len() {
                let raw = batch.raw(i);
                prop_assert!(format == Format::TextFile || memchr::memchr_iter(b'\n', raw).all(|at| at + 1 == raw.len()));
            }
        }
        if format == Format::Text {
            let expected: Vec<&str> = input.lines().collect();
            prop_assert_eq!(batches.iter().map(|batch| batch.len()).sum::<usize>(), expected.len());
        }
    }

    #[test]
    fn rows_are_cut_alike_whatever_the_batch_size(
        cells in prop::collection::vec(("[ab,\n\r\"]{0,12}", "[a\"b\n,]{0,12}"), 1..30),
        batch_bytes in 1usize..100,
    ) {
        let folder = Folder::new();
        let quote = |cell: &str| format!("\"{}\"", cell.replace('"', "\"\""));
        let mut input = "id,text\n".to_owned();
        for (id, text) in &cells {
            input.push_str(&format!("{},{}\n", quote(id), quote(text)));
        }
        let path = folder.write("rows.csv", &input);
        let (batches, error) = batches(&sources(&[&path], None), &small_batches(batch_bytes));
        prop_assert!(error.is_none());
        let whole = [batches[0].preamble().raw.clone(), raw(&batches)].concat();
        prop_assert_eq!(whole, input.as_bytes());
        let expected: Vec<String> = cells.into_iter().map(|(_, text)| text).collect();
        prop_assert_eq!(texts(&batches, &text_fields()), expected);
    }
}
