//! From arguments to sources.

use nearset_records::{Compression, Cure, Format, InputError, resolve};

use crate::support::Folder;

fn names(folder: &Folder, arguments: &[&str]) -> Vec<String> {
    let arguments: Vec<String> =
        arguments.iter().map(|argument| folder.path(argument).to_str().unwrap().to_owned()).collect();
    let sources = resolve(&arguments, None).unwrap();
    let root = folder.path("");
    sources.list.iter().map(|s| s.path().unwrap().strip_prefix(&root).unwrap().to_str().unwrap().to_owned()).collect()
}

#[test]
fn folders_are_walked_in_sorted_order_and_foreign_files_passed_over() {
    let folder = Folder::new();
    for name in ["d/b.jsonl", "d/a.jsonl.zst", "d/sub/c.jsonl", "d/README.md", "d/.hidden.jsonl", "d/z.parquet"] {
        folder.write(name, "");
    }
    assert_eq!(names(&folder, &["d"]), ["d/a.jsonl.zst", "d/b.jsonl", "d/sub/c.jsonl", "d/z.parquet"]);
    let sources = resolve(&[folder.path("d").to_str().unwrap()], None).unwrap();
    assert_eq!(sources.skipped, [folder.path("d/README.md")]);
}

#[test]
fn arguments_keep_their_order_and_globs_are_sorted() {
    let folder = Folder::new();
    for name in ["1.jsonl", "2.jsonl", "3.jsonl", "odd[1].jsonl"] {
        folder.write(name, "12345");
    }
    assert_eq!(names(&folder, &["3.jsonl", "[12].jsonl"]), ["3.jsonl", "1.jsonl", "2.jsonl"]);
    assert_eq!(names(&folder, &["odd[1].jsonl"]), ["odd[1].jsonl"], "a name that exists is meant literally");
}

#[test]
fn sizes_are_known_and_the_pipe_has_none() {
    let folder = Folder::new();
    let path = folder.write("a.csv.gz", "12345");
    let sources = resolve(&[path.to_str().unwrap()], None).unwrap();
    assert_eq!(sources.total_bytes(), Some(5));
    assert_eq!((sources.list[0].format, sources.list[0].compression), (Format::Csv, Compression::Gzip));
    let sources = resolve(&[path.to_str().unwrap(), "-"], None).unwrap();
    assert_eq!(sources.total_bytes(), None);
    assert_eq!(sources.list[1].format, Format::Jsonl);
}

#[test]
fn what_cannot_be_resolved_is_named_with_a_cure() {
    let folder = Folder::new();
    folder.write("a.docx", "");
    folder.write("none/readme.md", "");
    let error = |name: &str, format| resolve(&[folder.path(name).to_str().unwrap()], format).unwrap_err();
    assert!(matches!(error("*.jsonl", None), InputError::NoMatch { .. }));
    assert!(matches!(error("***", None), InputError::BadPattern { .. }));
    assert!(matches!(error("gone.jsonl", None), InputError::Unreadable { .. }));
    assert!(matches!(error("none", None), InputError::EmptyFolder { .. }));
    let unknown = error("a.docx", None);
    assert!(matches!(unknown, InputError::UnknownExtension { .. }));
    assert!(unknown.cure() == Some(Cure::NameFormat) && unknown.to_string().contains(".jsonl"), "{unknown}");
    assert!(resolve(&[folder.path("a.docx").to_str().unwrap()], Some(Format::Text)).is_ok());
    assert!(matches!(resolve::<&str>(&[], None), Err(InputError::Nothing)));
    assert!(matches!(resolve(&["-"], Some(Format::Parquet)), Err(InputError::ParquetNeedsFile { .. })));
}

#[test]
fn packings_that_are_not_read_are_refused_by_name() {
    let folder = Folder::new();
    for ending in ["lz4", "br", "Z", "zip", "7z", "snappy"] {
        let path = folder.write(&format!("a.jsonl.{ending}"), "{}");
        for format in [None, Some(Format::Jsonl)] {
            let error = resolve(&[path.to_str().unwrap()], format).unwrap_err();
            assert!(matches!(error, InputError::UnknownPacking { .. }), "{error}");
            assert!(error.to_string().contains("unpack it first"), "{error}");
        }
    }
    // In a folder, what holds records is not passed over, and what holds none is.
    folder.write("d/a.jsonl", "{}");
    folder.write("d/pictures.zip", "");
    assert_eq!(names(&folder, &["d"]), ["d/a.jsonl"]);
    folder.write("d/b.jsonl.lz4", "");
    let error = resolve(&[folder.path("d").to_str().unwrap()], None).unwrap_err();
    assert!(error.to_string().contains("b.jsonl.lz4: .lz4 is not unpacked"), "{error}");
}

#[cfg(feature = "pictures")]
#[test]
fn pictures_beside_records_are_passed_over_in_folders_that_a_pattern_names() {
    let folder = Folder::new();
    for name in ["crawl-1/a.jsonl", "crawl-1/figure.png", "crawl-2/b.jsonl", "crawl-2/c/figure.jpg", "own.png"] {
        folder.write(name, "");
    }
    assert_eq!(names(&folder, &["crawl-*"]), ["crawl-1/a.jsonl", "crawl-2/b.jsonl"]);
    // Those that are named by themselves are meant.
    assert_eq!(names(&folder, &["own.png", "crawl-1"]), ["own.png", "crawl-1/a.jsonl"]);
    let sources = resolve(&[folder.path("crawl-*").to_str().unwrap()], None).unwrap();
    assert_eq!(sources.skipped_pictures, ["crawl-1/figure.png", "crawl-2/c/figure.jpg"].map(|name| folder.path(name)));
}

#[cfg(feature = "pictures")]
#[test]
fn content_tells_a_picture_only_where_it_can() {
    let folder = Folder::new();
    for (name, head) in [
        ("d/a.png", &b"anything"[..]),
        ("d/notes.txt", b"BMW built its first car in 1928"),
        ("d/photo.nef", b"MM\0*\0\0\0\x08camera's own"),
        ("d/scan", b"II*\0\x08\0\0\0\0\0\0\0"),
        ("d/upload.tmp", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"),
    ] {
        folder.write(name, head);
    }
    let sources = resolve(&[folder.path("d").to_str().unwrap()], Some(Format::Picture)).unwrap();
    let taken: Vec<&std::path::Path> = sources.list.iter().map(|source| source.path().unwrap()).collect();
    assert_eq!(taken, ["d/a.png", "d/scan", "d/upload.tmp"].map(|name| folder.path(name)));
}

/// Only where records are built by themselves: the program has the feature.
#[cfg(not(feature = "remote"))]
#[test]
fn a_build_without_stores_says_so() {
    let error = resolve(&["s3://bucket/a.jsonl"], None).unwrap_err();
    assert!(nearset_records::chain(&error).contains("feature `remote`"), "{error}");
}
