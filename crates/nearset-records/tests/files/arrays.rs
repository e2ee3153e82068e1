//! Vectors as `.npy` and `.fvecs`.

use nearset_records::{Fields, ItemField, OutputError, OutputOptions, ReadOptions, RecordWriter};

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
fn arrays_of_another_make_are_refused_with_the_cure() {
    let folder = Folder::new();
    let cases = [
        (npy("<i8", "False", "(1, 1)", &[0; 8]), "astype"),
        (npy("<f4", "True", "(1, 1)", &[0; 4]), "ascontiguousarray"),
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
