//! Pictures: `nearset hash`, and pictures in the place of their hashes.

use std::process::{Command, Stdio};

use super::support::{Ran, Workshop};

/// A BMP picture, whose hash no decoder can change.
fn bmp(width: u32, height: u32, pixel: impl Fn(u32, u32) -> [u8; 3]) -> Vec<u8> {
    let row = (3 * width).next_multiple_of(4);
    let mut file = b"BM".to_vec();
    for number in [54 + row * height, 0, 54, 40, width, height, 1 | 24 << 16, 0, row * height, 0, 0, 0, 0] {
        file.extend(number.to_le_bytes());
    }
    for y in (0..height).rev() {
        let end = file.len() + row as usize;
        for [red, green, blue] in (0..width).map(|x| pixel(x, y)) {
            file.extend([blue, green, red]);
        }
        file.resize(end, 0);
    }
    file
}

/// A picture of clouds, another one for each number, at any size and brightness.
fn scene(number: u32, width: u32, height: u32, brighter: u8) -> Vec<u8> {
    const CELLS: u32 = 40;
    let corner = |i: u32, j: u32| {
        let mixed = u64::from((number * 64 + i) * 64 + j + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        u64::from((mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) as u32 >> 24)
    };
    // Between the corners of a grid, in whole numbers, which are the same everywhere.
    let grey = |x: u32, y: u32| {
        let place = |at: u32, side: u32| {
            let at = (2 * at + 1) * 128 * (CELLS - 1) / side;
            (at / 256, u64::from(at % 256))
        };
        let ((i, right), (j, down)) = (place(x, width), place(y, height));
        let above = corner(i, j) * (256 - right) + corner(i + 1, j) * right;
        let below = corner(i, j + 1) * (256 - right) + corner(i + 1, j + 1) * right;
        ((above * (256 - down) + below * down) >> 16) as u8
    };
    bmp(width, height, |x, y| [(grey(x, y) / 8 * 7).saturating_add(brighter); 3])
}

/// Three pictures, two of them also in other sizes, and one of nothing.
fn album() -> Workshop {
    let shop = Workshop::new();
    shop.write("album/a.bmp", scene(1, 200, 150, 0));
    shop.write("album/b/a-small.bmp", scene(1, 150, 112, 8));
    shop.write("album/b/other.bmp", scene(2, 160, 160, 0));
    shop.write("album/c.bmp", scene(3, 220, 90, 0));
    shop.write("album/d-large.bmp", scene(3, 440, 180, 0));
    shop
}

fn stdout(ran: &Ran) -> String {
    String::from_utf8(ran.stdout().to_vec()).unwrap()
}

fn rows(text: &str) -> Vec<serde_json::Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn ids(text: &str) -> Vec<String> {
    rows(text).iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn hashes_are_written_as_other_commands_read_them() {
    let shop = album();
    let ran = shop.ok("hash album -o hashes.jsonl --json");
    assert!(ran.stderr().contains("hashed    5 pictures"), "{}", ran.stderr());
    let summary: serde_json::Value = serde_json::from_slice(ran.stdout()).unwrap();
    assert_eq!((&summary["hashed"], &summary["low_quality"]), (&5.into(), &0.into()));
    let hashes = rows(&shop.text("hashes.jsonl"));
    assert_eq!(hashes[0]["id"], "album/a.bmp");
    assert_eq!((&hashes[0]["width"], &hashes[0]["height"]), (&200.into(), &150.into()));
    for row in &hashes {
        assert_eq!(row["hash"].as_str().unwrap().len(), 64, "{row}");
        assert!(row["quality"].as_u64().unwrap() >= 50, "{row}");
    }
    shop.ok("pairs hashes.jsonl --metric hamming --near 31 -o by-hashes.tsv -q");
    shop.ok("pairs album --metric hamming --near 31 -o by-pictures.tsv -q");
    assert_eq!(shop.text("by-hashes.tsv"), shop.text("by-pictures.tsv"));
    let pairs: Vec<String> =
        shop.text("by-hashes.tsv").lines().skip(1).map(|line| line.rsplit_once('\t').unwrap().0.to_owned()).collect();
    assert_eq!(pairs, ["album/a.bmp\talbum/b/a-small.bmp", "album/c.bmp\talbum/d-large.bmp"]);
    // Through a pipe, as it is.
    let piped = stdout(&shop.ok("hash album -q"));
    assert_eq!(piped, shop.text("hashes.jsonl"));
    let pairs = shop.ok_with_stdin("pairs - --metric hamming --bits 256 --near 31 -q", piped.as_bytes());
    assert_eq!(stdout(&pairs), shop.text("by-hashes.tsv"));
}

#[test]
fn rows_do_not_depend_on_threads() {
    let shop = album();
    shop.ok("hash album -o one.jsonl --threads 1 -q");
    shop.ok("hash album -o many.jsonl --threads 7 -q");
    assert_eq!(shop.text("one.jsonl"), shop.text("many.jsonl"));
    shop.ok("hash album -o table.tsv.gz -q");
    assert!(shop.run("hash album -o one.jsonl").stderr().contains("--force"));
}

#[test]
fn other_hashes_have_64_bits() {
    let shop = album();
    shop.ok("hash album -o hashes.jsonl --algorithm phash,dhash -q");
    let hashes = rows(&shop.text("hashes.jsonl"));
    assert!(hashes.iter().all(|row| ["hash", "dhash"].iter().all(|name| row[name].as_str().unwrap().len() == 16)));
    shop.ok("pairs hashes.jsonl --metric hamming --near 8 -o by-hashes.tsv -q");
    shop.ok("pairs album --metric hamming --near 8 --field phash -o by-pictures.tsv -q");
    assert_eq!(shop.text("by-hashes.tsv"), shop.text("by-pictures.tsv"));
    assert!(shop.text("by-hashes.tsv").contains("album/a.bmp\talbum/b/a-small.bmp"));
    let refused = shop.run("hash album --algorithm ahash");
    assert_eq!(refused.code(), 2);
    assert!(refused.stderr().contains("use pdq, phash or dhash"), "{}", refused.stderr());
    assert_eq!(shop.run("hash album --algorithm pdq,pdq").code(), 2);
}

#[test]
fn dedup_keeps_one_of_each_and_names_the_others() {
    let shop = album();
    shop.ok("dedup album -o kept.jsonl --removed removed.jsonl --metric hamming --near 31 --keep max:width");
    assert_eq!(ids(&shop.text("kept.jsonl")), ["album/a.bmp", "album/b/other.bmp", "album/d-large.bmp"]);
    let removed = rows(&shop.text("removed.jsonl"));
    assert_eq!(ids(&shop.text("removed.jsonl")), ["album/b/a-small.bmp", "album/c.bmp"]);
    assert_eq!(removed[1]["near"], "album/d-large.bmp");
    assert!(rows(&shop.text("kept.jsonl")).iter().all(|row| row["hash"].as_str().unwrap().len() == 64));
    shop.ok("dedup album -o marked.jsonl --annotate --metric hamming --near 31 -q");
    assert_eq!(rows(&shop.text("marked.jsonl"))[2]["near_duplicate"], false);
    assert_eq!(rows(&shop.text("marked.jsonl"))[1]["duplicate_of"], "album/a.bmp");
    shop.ok("cluster album -o clusters.tsv --metric hamming --near 31 -q");
    assert!(shop.text("clusters.tsv").contains("album/d-large.bmp\talbum/c.bmp\t"));
}

#[test]
fn a_picture_is_found_among_known_ones() {
    let shop = album();
    shop.ok("build album -o known.nearset --index --metric hamming --near 31 -q");
    shop.write("upload.bmp", scene(2, 130, 130, 3));
    let found = stdout(&shop.ok("search known.nearset upload.bmp --within 31 -q"));
    assert!(found.contains("upload.bmp\talbum/b/other.bmp\t"), "{found}");
    assert_eq!(found.lines().count(), 2);
}

#[test]
fn what_is_no_picture_is_named_and_the_rest_goes_on() {
    let shop = album();
    let whole = scene(5, 60, 60, 0);
    shop.write("album/0-cut.bmp", &whole[..whole.len() / 2]);
    shop.write("album/b/huge.bmp", {
        let mut file = scene(5, 8, 8, 0);
        file[18..22].copy_from_slice(&60_000u32.to_le_bytes());
        file[22..26].copy_from_slice(&60_000u32.to_le_bytes());
        file
    });
    shop.write("album/empty.png", "");
    shop.write("album/text.jpg", "this is no picture");
    for command in ["hash album -o out.jsonl", "dedup album -o out.jsonl --metric hamming --near 31"] {
        let failed = shop.run(command);
        assert_eq!(failed.code(), 1, "{command}");
        let told = failed.stderr();
        assert!(told.contains("error: album/0-cut.bmp: the BMP picture is cut off: fetch it again"), "{told}");
        assert!(told.contains("--on-error skip"), "{told}");
        assert!(!shop.exists("out.jsonl") && !shop.exists("out.jsonl.partial"), "{command}");
    }
    let told = shop.ok("hash album -o hashes.jsonl --on-error skip").stderr();
    for word in [
        "album/0-cut.bmp: the BMP picture is cut off",
        "album/b/huge.bmp: 60000 x 60000 pixels, and at most 128 million are decoded, 131072 along a side and 512 MB in memory: scale it down first",
        "album/empty.png: an empty file",
        "album/text.jpg: not a JPEG, PNG, WebP, GIF, TIFF or BMP picture",
        "4 that could not be read",
    ] {
        assert!(told.contains(word), "{word:?} is missing:\n{told}");
    }
    assert_eq!(rows(&shop.text("hashes.jsonl")).len(), 5);
    // What was not looked at stays.
    shop.ok("dedup album -o kept.jsonl --metric hamming --near 31 --on-error keep -q");
    assert!(shop.text("kept.jsonl").contains("{\"id\":\"album/text.jpg\"}\n"), "{}", shop.text("kept.jsonl"));
    assert_eq!(rows(&shop.text("kept.jsonl")).len(), 7);
    assert_eq!(shop.run("hash album/text.jpg album/empty.png -o none.jsonl --on-error skip").code(), 1);
    assert!(!shop.exists("none.jsonl"));
}

#[test]
fn content_tells_and_not_the_name() {
    let shop = Workshop::new();
    shop.write("mixed/a.jpg", scene(1, 80, 80, 0));
    shop.write("mixed/0a1b2c", scene(2, 80, 80, 0));
    shop.write("mixed/notes.md", "no picture");
    let ran = shop.ok("hash mixed -o hashes.jsonl");
    assert!(ran.stderr().contains("passed over 1 file of no known format, such as mixed/notes.md"));
    assert_eq!(ids(&shop.text("hashes.jsonl")), ["mixed/0a1b2c", "mixed/a.jpg"]);
    // A file that is named is meant.
    assert!(shop.run("hash mixed/notes.md").stderr().contains("mixed/notes.md: not a JPEG"));
}

#[test]
fn pictures_beside_records_are_passed_over() {
    let shop = Workshop::new();
    shop.write("corpus/a.jsonl", "{\"text\": \"some words that are here\"}\n");
    shop.write("corpus/figure.bmp", scene(1, 80, 80, 0));
    let ran = shop.ok("dedup corpus -o kept.jsonl");
    assert!(ran.stderr().contains("passed over 1 picture beside other records, such as corpus/figure.bmp"));
    assert_eq!(shop.text("kept.jsonl").lines().count(), 1);
    shop.ok("pairs corpus --format picture --metric hamming --near 31 -q");
    // Pictures are no texts, and the message says what to do.
    let told = shop.run("dedup corpus/figure.bmp -o none.jsonl").stderr();
    assert!(told.contains("holds hashes of 256 bits: --metric hamming --near N compares them"), "{told}");
}

#[test]
fn pictures_with_nothing_to_see_are_compared_by_their_bytes() {
    let shop = Workshop::new();
    let flat = |value: u8| bmp(64, 48, |_, _| [value; 3]);
    shop.write("album/a.bmp", flat(10));
    shop.write("album/b.bmp", flat(200));
    shop.write("album/c.bmp", flat(10));
    let told = shop.ok("hash album -o hashes.jsonl").stderr();
    assert!(told.contains("3 pictures have a quality below 50") && told.contains("--min-quality 50"), "{told}");
    let told = shop.ok("hash album -o none.jsonl --min-quality 50").stderr();
    assert!(told.contains("left out  3"), "{told}");
    assert_eq!(shop.text("none.jsonl"), "");
    shop.ok("dedup album -o kept.jsonl --metric hamming --near 31 -q");
    assert_eq!(ids(&shop.text("kept.jsonl")), ["album/a.bmp", "album/b.bmp"]);
    assert_eq!(shop.text("kept.jsonl").lines().next(), shop.text("hashes.jsonl").lines().next(), "hashes as they are");
}

#[test]
fn a_run_over_pictures_goes_on_where_it_was_stopped() {
    let shop = album();
    shop.write("album/z.bmp", "no picture");
    let command =
        "dedup album -o kept.jsonl --metric hamming --near 31 --removed removed.jsonl --checkpoint-bytes 1000";
    assert_eq!(shop.run(command).code(), 1);
    let told = shop.ok(&format!("{command} --resume --on-error skip")).stderr();
    assert!(told.contains("resumed   behind"), "{told}");
    let (kept, removed) = (shop.text("kept.jsonl"), shop.text("removed.jsonl"));
    shop.ok(&format!("{command} --force -q --on-error skip"));
    assert_eq!((kept, removed), (shop.text("kept.jsonl"), shop.text("removed.jsonl")));
    assert_eq!(ids(&shop.text("removed.jsonl")), ["album/b/a-small.bmp", "album/d-large.bmp", "album/z.bmp"]);
}

#[test]
fn ctrl_c_while_hashing_leaves_nothing() {
    let shop = Workshop::new();
    let mut child =
        shop.command("hash - -o out.jsonl -q").stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let stdin = child.stdin.take().unwrap();
    while !shop.exists("out.jsonl.partial") {
        assert!(child.try_wait().unwrap().is_none(), "it has ended before it was stopped");
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    drop(stdin);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "error: stopped; nothing was written\n");
    assert_eq!(shop.names(), Vec::<String>::new());
}
