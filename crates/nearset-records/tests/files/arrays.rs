//! Vectors as `.npy`, `.fvecs` and `.bvecs`.

use nearset_records::input::name_by_file;
use nearset_records::{Fields, ItemField, OutputError, OutputOptions, Position, ReadOptions, RecordWriter};

use crate::support::*;

fn fields() -> Fields {
    Fields::new("vector", ItemField::Vector)
}

/// As `numpy.save` writes it.
fn npy(descr: &str, order: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let text = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}");
    let mut bytes = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    bytes.extend_from_slice(format!("{text:117}\n").as_bytes());
    assert_eq!(bytes.len(), 128);
    bytes.extend_from_slice(data);
    bytes
}

fn f32s(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

#[test]
fn rows_of_either_width_are_vectors() {
    let folder = Folder::new();
    let narrow = folder.write("a.npy", npy("<f4", "False", "(2, 3)", &f32s(&[1., 2., 3., 4., 5., 6.])));
    let wide: Vec<u8> = [0.5f64, 1.5].iter().flat_map(|value| value.to_le_bytes()).collect();
    let wide = folder.write("b.npy.zst", zstd(&npy("<f8", "False", "(1, 2)", &wide)));
    assert_eq!(texts(&read(&narrow, &fields()), &fields()), ["[1.0, 2.0, 3.0]", "[4.0, 5.0, 6.0]"]);
    assert_eq!(records(&read(&wide, &fields()), &fields())[0].as_ref().unwrap().0, format!("{}:1", wide.display()));
    assert_eq!(texts(&read(&wide, &fields()), &fields()), ["[0.5, 1.5]"]);
}

#[test]
fn numbers_of_every_kind_are_vectors() {
    let folder = Folder::new();
    let cases: [(&str, &[u8]); 9] = [
        ("<f2", &[0, 0x3c, 0, 0xc0]),
        ("|i1", &[1, 254]),
        ("<i2", &[1, 0, 254, 255]),
        ("<i4", &[1, 0, 0, 0, 254, 255, 255, 255]),
        ("<i8", &[1, 0, 0, 0, 0, 0, 0, 0, 254, 255, 255, 255, 255, 255, 255, 255]),
        ("|u1", &[1, 254]),
        ("<u2", &[1, 0, 254, 0]),
        ("<u4", &[1, 0, 0, 0, 254, 0, 0, 0]),
        ("<u8", &[1, 0, 0, 0, 0, 0, 0, 0, 254, 0, 0, 0, 0, 0, 0, 0]),
    ];
    for (descr, data) in cases {
        let path = folder.write("a.npy", npy(descr, "False", "(1, 2)", data));
        let wanted = if descr.contains('u') { "[1.0, 254.0]" } else { "[1.0, -2.0]" };
        assert_eq!(texts(&read(&path, &fields()), &fields()), [wanted], "{descr}");
    }
}

#[test]
fn columns_in_fortran_order_are_turned_and_written_in_rows() {
    let folder = Folder::new();
    let path = folder.write("a.npy", npy("<f4", "True", "(3, 2)", &f32s(&[1., 2., 3., 4., 5., 6.])));
    let batch = &read(&path, &fields())[0];
    assert_eq!(texts(std::slice::from_ref(batch), &fields()), ["[1.0, 4.0]", "[2.0, 5.0]", "[3.0, 6.0]"]);
    let out = folder.path("out.npy");
    let mut writer = RecordWriter::create(&out, Vec::new(), &OutputOptions::default()).unwrap();
    writer.begin(batch).unwrap();
    writer.copy(batch, 0).unwrap();
    writer.copy(batch, 2).unwrap();
    writer.finish().unwrap();
    assert_eq!(std::fs::read(&out).unwrap(), npy("<f4", "False", "(2, 2)", &f32s(&[1., 4., 3., 6.])));
}

#[test]
fn bytes_are_vectors_or_bits() {
    let folder = Folder::new();
    let hashes = Fields::new("hash", ItemField::Hex);
    let path = folder.write("a.bvecs", [2, 0, 0, 0, 7, 255, 2, 0, 0, 0, 1, 2]);
    assert_eq!(texts(&read(&path, &fields()), &fields()), ["[7.0, 255.0]", "[1.0, 2.0]"]);
    let hex = folder.write("a.txt", "07ff\n0102\n");
    assert_eq!(texts(&read(&path, &hashes), &hashes), texts(&read(&hex, &hashes), &hashes));
    let array = folder.write("a.npy", npy("|u1", "False", "(2, 2)", &[7, 255, 1, 2]));
    assert_eq!(texts(&read(&array, &hashes), &hashes), texts(&read(&hex, &hashes), &hashes));
    let floats = folder.write("b.npy", npy("<f4", "False", "(1, 1)", &[0; 4]));
    let (_, error) = batches(&sources(&[&floats], None), &ReadOptions::new(hashes));
    assert!(error.unwrap().to_string().contains("holds vectors"));
}

#[test]
fn rows_are_named_by_a_file_of_ids() {
    let folder = Folder::new();
    let array = folder.write("a.npy", npy("<f4", "False", "(3, 1)", &f32s(&[1., 2., 3.])));
    let vectors = folder.write("a.fvecs", [[1, 0, 0, 0, 0, 0, 0, 0]; 3].concat());
    let named = |path: &std::path::Path, ids: &str| {
        let ids = folder.write("ids.txt", ids);
        let mut list = sources(&[path], None);
        name_by_file(&mut list, &ids).unwrap();
        let mut options = ReadOptions::new(fields());
        options.batch_bytes = 1;
        let (batches, error) = batches(&list, &options);
        let names: Vec<String> = records(&batches, &fields()).into_iter().map(|record| record.unwrap().0).collect();
        (names, error.map(|error| error.to_string()).unwrap_or_default())
    };
    for path in [&array, &vectors] {
        assert_eq!(
            named(path, "x\nthe second\nz\n"),
            (vec!["x".into(), "the second".into(), "z".into()], String::new())
        );
        let (names, error) = named(path, "x\ny\n");
        assert!(names.len() < 3 && error.contains("and 2 ids"), "{names:?} {error}");
    }
    // Those before the end are delivered by then, so it must not be left at a warning.
    let (names, error) = named(&vectors, "a\nb\nc\nd\n");
    assert!(names.len() == 3 && error.contains("3 records, and 4 ids"), "{names:?} {error}");
    let (names, error) = named(&array, "a\nb\nc\nd\n");
    assert!(names.is_empty() && error.contains("3 records, and 4 ids"), "{error}");
    let table = folder.write("a.jsonl", "{}\n");
    let ids = folder.path("ids.txt");
    assert!(
        name_by_file(&mut sources(&[&table], None), &ids).unwrap_err().to_string().contains("put them into a field")
    );
    let both = &mut sources(&[&array, &vectors], None);
    assert!(name_by_file(both, &ids).unwrap_err().to_string().contains("2 inputs"));
}

#[test]
fn rows_before_a_break_have_their_ids() {
    let folder = Folder::new();
    let array = folder.write("a.npy", npy("<f4", "False", "(3, 1)", &f32s(&[1., 2.])));
    let ids = folder.write("ids.txt", "x\ny\nz\n");
    let mut list = sources(&[&array], None);
    name_by_file(&mut list, &ids).unwrap();
    let (found, error) = batches(&list, &ReadOptions::new(fields()));
    let names: Vec<String> = records(&found, &fields()).into_iter().map(|record| record.unwrap().0).collect();
    assert_eq!(names, ["x", "y"]);
    let error = error.unwrap();
    assert!(error.to_string().contains("cut off") && !error.is_fatal(), "{error}");
    // Ids that are not the records' are no damage to be left out.
    let vectors = folder.write("a.fvecs", [[1, 0, 0, 0, 0, 0, 0, 0]; 2].concat());
    let mut list = sources(&[&vectors], None);
    name_by_file(&mut list, &ids).unwrap();
    assert!(batches(&list, &ReadOptions::new(fields())).1.unwrap().is_fatal());
}

#[test]
fn columns_in_fortran_order_are_read_on_from_any_row() {
    let folder = Folder::new();
    let path = folder.write("a.npy", npy("<f4", "True", "(3, 2)", &f32s(&[1., 2., 3., 4., 5., 6.])));
    let list = sources(&[&path], None);
    assert!(!list[0].is_read_in_place());
    // Behind the header and a row of two numbers.
    let behind_one = Position { source: 0, record: 1, line: 2, offset: 128 + 8 };
    let (rest, _) = batches_from(&list, &ReadOptions::new(fields()), behind_one);
    assert_eq!(texts(&rest, &fields()), ["[2.0, 5.0]", "[3.0, 6.0]"]);
}

#[test]
fn headers_of_later_versions_are_read() {
    let folder = Folder::new();
    let first = npy("<f4", "False", "(1, 2)", &f32s(&[1., 2.]));
    for version in [2, 3] {
        let bytes = [&b"\x93NUMPY"[..], &[version, 0, 0x76, 0, 0, 0], &first[10..]].concat();
        let path = folder.write("a.npy", bytes);
        assert_eq!(texts(&read(&path, &fields()), &fields()), ["[1.0, 2.0]"], "{version}");
    }
}

#[test]
fn arrays_of_another_make_are_refused_with_the_cure() {
    let folder = Folder::new();
    let mut records_of_fields = npy("<f4", "False", "(1,1)", &[0; 4]);
    let fields_in_header = b"{'descr': [('<f4', '<f4')], ";
    records_of_fields[10..10 + fields_in_header.len()].copy_from_slice(fields_in_header);
    let cases = [
        (npy(">f4", "False", "(1, 1)", &[0; 4]), "astype"),
        (npy("<c8", "False", "(1, 1)", &[0; 8]), "astype"),
        (records_of_fields, "a record type"),
        (npy("<f4", "True", "(3, 2)", &[0; 20]), "cut off"),
        (npy("<f4", "True", "(1000000000000, 2)", &[0; 20]), "ascontiguousarray"),
        (npy("<f4", "False", "(4,)", &[0; 16]), "two dimensions"),
        (npy("<f4", "False", "(1, 0)", &[]), "between 1 and"),
        (npy("<f4", "False", "(3, 1)", &[0; 8]), "promises 3 rows but 2"),
        (npy("<f4", "False", "(2, 1)", &[0; 7]), "cut off"),
        (b"PK\x03\x04 not an array".to_vec(), "does not start with"),
        (b"\x93NUMPY\x02\x00\xff\xff\xff\x7f".to_vec(), "damaged"),
        (b"\x93NUM".to_vec(), "ends within its header"),
    ];
    for (bytes, cure) in cases {
        let path = folder.write("a.npy", bytes);
        let (_, error) = batches(&sources(&[&path], None), &ReadOptions::new(fields()));
        let message = error.unwrap().to_string();
        assert!(message.contains(cure), "{message}");
    }
}

/// By NumPy 2.4.6: `savez(…, ids=array(['one', 'two', 'three']), vectors=v)` and `savez_compressed(…, asfortranarray(v.astype('<i2')))`.
const SAVEZ: [&[u8]; 2] = [include_bytes!("savez.npz"), include_bytes!("savez-compressed.npz")];

#[test]
fn the_array_of_a_numpy_archive_is_read() {
    let folder = Folder::new();
    for bytes in SAVEZ {
        let path = folder.write("a.npz", bytes);
        assert_eq!(texts(&read(&path, &fields()), &fields()), ["[1.0, 2.0]", "[3.0, 4.0]", "[5.0, 6.0]"]);
        // A row is 4 or 8 bytes behind a header of 128.
        let row = if bytes.len() > SAVEZ[1].len() { 8 } else { 4 };
        let behind_one = Position { source: 0, record: 1, line: 2, offset: 128 + row };
        let (rest, _) = batches_from(&sources(&[&path], None), &ReadOptions::new(fields()), behind_one);
        assert_eq!(texts(&rest, &fields()), ["[3.0, 4.0]", "[5.0, 6.0]"]);
    }
    let batch = &read(&folder.path("a.npz"), &fields())[0];
    let out = folder.path("out.npy");
    let mut writer = RecordWriter::create(&out, Vec::new(), &OutputOptions::default()).unwrap();
    writer.begin(batch).unwrap();
    writer.copy(batch, 1).unwrap();
    writer.finish().unwrap();
    assert_eq!(std::fs::read(&out).unwrap(), npy("<i2", "False", "(1, 2)", &[3, 0, 4, 0]));
    let refused = RecordWriter::create(&folder.path("out.npz"), Vec::new(), &OutputOptions::default());
    assert!(refused.err().unwrap().to_string().contains("out.npz: archives of arrays are read and not written"));
}

/// A zip archive of stored files, with sizes and places in 64 bits if wanted.
fn zip(files: &[(&str, &[u8])], is_zip64: bool) -> Vec<u8> {
    let (mut bytes, mut list) = (Vec::new(), Vec::new());
    let short = |number: usize| (number as u16).to_le_bytes();
    let int = |number: usize| (number as u32).to_le_bytes();
    let none = int(u32::MAX as usize);
    for (name, content) in files {
        let mut sum = flate2::Crc::new();
        sum.update(content);
        let (place, size, sum) = (bytes.len(), content.len(), sum.sum().to_le_bytes());
        let sizes = if is_zip64 { [none, none] } else { [int(size); 2] }.concat();
        bytes.extend([&b"PK\x03\x04\x2d\0\0\0\0\0\0\0\0\0"[..], &sum, &sizes, &short(name.len()), &[3, 0]].concat());
        bytes.extend([name.as_bytes(), b"any", content].concat());
        let long = [&short(1)[..], &short(24), &size.to_le_bytes(), &size.to_le_bytes(), &place.to_le_bytes()].concat();
        let extra = if is_zip64 { [b"xx\x01\0x", &long[..]].concat() } else { Vec::new() };
        list.extend([&b"PK\x01\x02\x2d\0\x2d\0\0\0\0\0\0\0\0\0"[..], &sum, &sizes, &short(name.len())].concat());
        list.extend([&short(extra.len())[..], &[0; 10], &if is_zip64 { none } else { int(place) }].concat());
        list.extend([name.as_bytes(), &extra].concat());
    }
    let (place, end) = (bytes.len(), bytes.len() + list.len());
    bytes.extend(&list);
    if is_zip64 {
        let lengths = [list.len().to_le_bytes(), place.to_le_bytes()].concat();
        bytes.extend([&b"PK\x06\x06"[..], &[0; 36], &lengths].concat());
        bytes.extend([&b"PK\x06\x07\0\0\0\0"[..], &end.to_le_bytes(), &[1, 0, 0, 0]].concat());
    }
    let (size, place) = if is_zip64 { (none, none) } else { (int(list.len()), int(place)) };
    bytes.extend([&b"PK\x05\x06"[..], &[0; 8], &size, &place, &[2, 0], b"PK"].concat());
    bytes
}

#[test]
fn archives_say_which_array_is_meant_or_are_refused() {
    let folder = Folder::new();
    let one = npy("<f4", "False", "(2, 1)", &f32s(&[1., 2.]));
    let list = npy("<f4", "False", "(2,)", &f32s(&[1., 2.]));
    for is_zip64 in [false, true] {
        let path = folder.write("a.npz", zip(&[("list.npy", &list), ("v.npy", &one), ("note.txt", b"")], is_zip64));
        assert_eq!(texts(&read(&path, &fields()), &fields()), ["[1.0]", "[2.0]"], "{is_zip64}");
    }
    let good = zip(&[("v.npy", &one)], false);
    let changed = |at: usize, to: &[u8]| {
        let mut bytes = good.clone();
        bytes[at..at + to.len()].copy_from_slice(to);
        bytes
    };
    let in_list = good.windows(4).position(|part| part == b"PK\x01\x02").unwrap();
    let end = good.windows(4).position(|part| part == b"PK\x05\x06").unwrap();
    let cases = [
        (
            zip(&[("a.npy", &one), ("b.npy", &one)], false),
            "holds the arrays a, b: save the one that is meant by itself",
        ),
        (zip(&[("a.npy", &list), ("b.npy", &list)], false), "the arrays a, b, of which none has two dimensions"),
        (zip(&[("a.npy", &list)], false), "has shape (2,), but a vector per row needs two dimensions"),
        (zip(&[("a.txt", b"")], false), "holds no array"),
        (good[..good.len() - 30].to_vec(), "no zip archive ends at its end"),
        (b"no archive".to_vec(), "no zip archive ends at its end"),
        (changed(in_list + 10, &[12]), "packed by method 12"),
        (changed(in_list + 8, &[1]), "is encrypted"),
        (changed(in_list + 42, &[1]), "v.npy is not where the list of files says"),
        (changed(in_list + 42, &[0xff; 3]), "states a place beyond its end"),
        (changed(in_list + 20, &[0xff; 3]), "v.npy goes on behind its end"),
        (changed(in_list + 28, &[0xff]), "an unreadable list of files"),
        (changed(end + 12, &[0xff; 4]), "a list of files of 4294967295 bytes"),
        // One bit of a number, and a size that is too large or too small.
        (changed(in_list - 1, &[0x41]), "another checksum than it states"),
        (changed(in_list + 24, &[0xff; 3]), "the array is damaged or cut off after 136 bytes"),
        (changed(in_list + 24, &[1, 0, 0]), "more bytes than it states"),
    ];
    for (bytes, wanted) in cases {
        let path = folder.write("a.npz", bytes);
        let (_, error) = batches(&sources(&[&path], None), &ReadOptions::new(fields()));
        let message = error.unwrap().to_string();
        assert!(message.contains(wanted), "{message}");
    }
    // Half of what is packed.
    let half = SAVEZ[1].windows(4).position(|part| part == b"PK\x01\x02").unwrap() - 8;
    let path = folder.write("a.npz", [&SAVEZ[1][..half], &[0; 8], &SAVEZ[1][half + 8..]].concat());
    let (_, error) = batches(&sources(&[&path], None), &ReadOptions::new(fields()));
    assert!(error.unwrap().to_string().contains("the array is damaged or cut off"));
}

#[test]
fn fvecs_records_carry_their_length() {
    let folder = Folder::new();
    let record = |values: &[f32]| [(values.len() as u32).to_le_bytes().to_vec(), f32s(values)].concat();
    let bytes = [record(&[1., 2.]), record(&[3., 4.])].concat();
    let path = folder.write("a.fvecs", &bytes);
    assert_eq!(texts(&read(&path, &fields()), &fields()), ["[1.0, 2.0]", "[3.0, 4.0]"]);
    let path = folder.write("cut.fvecs", &bytes[..bytes.len() - 1]);
    let (batches, error) = batches(&sources(&[&path], None), &ReadOptions::new(fields()));
    assert_eq!(texts(&batches, &fields()), ["[1.0, 2.0]"]);
    assert!(error.unwrap().to_string().contains("cut off"));
}

#[test]
fn a_written_array_has_the_number_of_rows_kept() {
    let folder = Folder::new();
    let path = folder.write("a.npy", npy("<f4", "False", "(3, 1)", &f32s(&[1., 2., 3.])));
    let batch = &read(&path, &fields())[0];
    let out = folder.path("out.npy");
    let mut writer = RecordWriter::create(&out, Vec::new(), &OutputOptions::default()).unwrap();
    writer.begin(batch).unwrap();
    writer.copy(batch, 0).unwrap();
    writer.copy(batch, 2).unwrap();
    assert!(matches!(writer.checkpoint(), Err(OutputError::NotResumable { .. })));
    writer.finish().unwrap();
    assert_eq!(std::fs::read(&out).unwrap(), npy("<f4", "False", "(2, 1)", &f32s(&[1., 3.])));

    let mut writer = RecordWriter::create(&folder.path("out.npy.gz"), Vec::new(), &OutputOptions::default()).unwrap();
    assert!(writer.begin(batch).unwrap_err().to_string().contains("cannot be compressed"));
}
