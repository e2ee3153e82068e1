//! Where outputs go: what is no regular file is written through, and inputs of one format to one output.

use crate::support::{Workshop, corpus, jsonl, kept};

fn small() -> (Workshop, String) {
    let shop = Workshop::new();
    let (texts, near) = corpus(300);
    let lines = jsonl(&texts);
    shop.write("in.jsonl", &lines);
    (shop, kept(&lines, &near))
}

#[test]
fn inputs_of_two_formats_are_refused_before_any_work() {
    let (shop, _) = small();
    shop.ok("build in.jsonl -o seen.nearset --near 0.8 -q");
    shop.write("mixed/a.jsonl", shop.text("in.jsonl"));
    shop.write("mixed/licence.txt", "Permission is hereby granted\n");
    shop.write("tables/a.csv", "text\nx\n");
    shop.write("tables/b.tsv", "text\ny\n");
    let before = shop.names();
    for arguments in [
        "dedup mixed -o o.jsonl --no-verify",
        "dedup mixed -o o",
        "dedup mixed -o - --annotate",
        "dedup mixed -o o.jsonl",
        "query seen.nearset mixed -o o.jsonl --keep far",
    ] {
        let ran = shop.run(arguments);
        let said = ran.stderr();
        assert!(ran.code() == 1 && ran.stdout().is_empty(), "{arguments}: {said}");
        assert!(said.contains("mixed/a.jsonl is jsonl and mixed/licence.txt is text"), "{arguments}: {said}");
        assert!(said.contains("--format") && !said.contains("read  "), "{arguments}: {said}");
    }
    let ran = shop.run("dedup tables -o o.csv");
    assert!(ran.code() == 1 && ran.stderr().contains("tables/b.tsv is tsv"), "{}", ran.stderr());
    assert_eq!(shop.names(), before, "nothing is written");
    shop.ok("dedup mixed --dry-run");
    shop.ok("dedup mixed --format text -o o.txt -q");
    let ran = shop.run("query seen.nearset mixed -q");
    assert_eq!(ran.code(), 10, "what writes no records takes every format: {}", ran.stderr());
}

#[test]
fn files_that_are_read_beside_the_records_are_not_replaced_by_force_either() {
    let (shop, _) = small();
    let marks = "{\"a\": \"0\", \"b\": \"1\", \"duplicate\": true}\n";
    shop.write("marks.jsonl", marks);
    shop.write("ids.txt", "x\ny\nz\n");
    let mut array = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    let shape = "{'descr': '<i2', 'fortran_order': False, 'shape': (3, 2), }";
    array.extend_from_slice(format!("{shape:117}\n").as_bytes());
    array.extend([1i16, 0, 2, 0, 0, 7].into_iter().flat_map(i16::to_le_bytes));
    shop.write("v.npy", array);
    let near = "--metric cosine --near 0.9 --ids ids.txt --force";
    for arguments in [
        "dedup in.jsonl -o marks.jsonl --decisions marks.jsonl --force".to_owned(),
        "dedup in.jsonl -o out.jsonl --decisions marks.jsonl --removed marks.jsonl --force".to_owned(),
        format!("dedup v.npy -o out.npy {near} --removed ids.txt"),
        format!("build v.npy --index -o ids.txt {near} --far 0.5"),
    ] {
        let ran = shop.run(&arguments);
        assert!(ran.code() == 1 && ran.stderr().contains("is also an input"), "{arguments}: {}", ran.stderr());
        assert_eq!((shop.text("marks.jsonl"), shop.text("ids.txt")), (marks.to_owned(), "x\ny\nz\n".to_owned()));
    }
}

#[test]
fn pictures_are_replaced_only_by_force() {
    let (shop, _) = small();
    shop.ok("build in.jsonl -o seen.nearset --near 0.8 -q");
    for command in ["info seen.nearset", "plan --metric jaccard --near 0.8 --far 0.5 --capacity 1000"] {
        shop.write("curve.svg", "precious");
        let ran = shop.run(&format!("{command} --plot curve.svg"));
        assert!(ran.code() == 1 && ran.stderr().contains("pass --force to replace it"), "{}", ran.stderr());
        assert_eq!(shop.text("curve.svg"), "precious");
        shop.ok(&format!("{command} --plot curve.svg --force"));
        assert!(shop.text("curve.svg").starts_with("<svg"));
    }
}

#[cfg(unix)]
mod through {
    use std::io::Read;
    use std::os::unix::fs::{FileTypeExt, symlink};
    use std::process::Command;

    use super::*;

    fn mkfifo(shop: &Workshop, name: &str) {
        assert!(Command::new("mkfifo").arg(shop.path(name)).status().unwrap().success());
    }

    fn is_fifo(shop: &Workshop, name: &str) -> bool {
        std::fs::symlink_metadata(shop.path(name)).unwrap().file_type().is_fifo()
    }

    /// Runs a script in the workshop, the program being `$nearset`.
    fn sh(shop: &Workshop, script: &str) -> String {
        let mut command = shop.command("");
        let program = command.get_program().to_owned();
        command = Command::new("sh");
        let ran = command.args(["-euc", script]).env("nearset", program).current_dir(shop.path("")).output().unwrap();
        assert!(ran.status.success(), "{script}\n{}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8(ran.stdout).unwrap()
    }

    #[test]
    fn standard_output_has_many_names_and_needs_no_force() {
        let (shop, expected) = small();
        symlink("/dev/stdout", shop.path("link")).unwrap();
        for name in ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "link"] {
            for force in ["", " --force"] {
                let ran = shop.ok(&format!("dedup in.jsonl -o {name}{force} --json -q"));
                assert!(ran.stdout() == expected.as_bytes(), "{name}");
                assert!(ran.stderr().starts_with("{"), "the summary leaves standard output to the records");
            }
            let ran = shop.run(&format!("dedup in.jsonl -o - --removed {name}"));
            assert!(ran.code() == 1 && ran.stderr().contains("named twice"), "{}", ran.stderr());
        }
        assert!(shop.path("link").is_symlink());
        let rows = shop.ok("pairs in.jsonl -o /dev/stdout -q");
        assert!(rows.stdout() == shop.ok("pairs in.jsonl -q").stdout() && rows.stdout().starts_with(b"a\tb\t"));
        let ran = shop.run("dedup in.jsonl -o /dev/fd/99");
        assert!(ran.code() == 1 && ran.stderr().contains("/dev/fd/99: cannot write"), "{}", ran.stderr());
    }

    #[test]
    fn a_file_that_the_shell_has_opened_is_gone_on_with() {
        let (shop, expected) = small();
        for script in [
            "{ echo before; $nearset dedup in.jsonl -o /dev/stdout --force -q; echo after; } > all",
            "echo before > all; $nearset dedup in.jsonl -o /dev/stdout -q >> all; echo after >> all",
            "{ echo before >&3; $nearset dedup in.jsonl -o /dev/fd/3 -q; echo after >&3; } 3> all",
        ] {
            sh(&shop, script);
            assert!(shop.text("all") == format!("before\n{expected}after\n"), "{script}");
        }
        let ran = sh(&shop, "$nearset dedup in.jsonl -o - --annotate 2>&1 >> in.jsonl || true");
        assert!(ran.contains("is also an input"), "{ran}");
    }

    #[test]
    fn every_output_of_every_command_goes_through_a_pipe() {
        let (shop, _) = small();
        shop.ok("build in.jsonl -o seen.nearset --near 0.8 -q");
        shop.ok("build in.jsonl -o index.nearset --index --near 0.8 -q");
        for (command, name) in [
            ("dedup in.jsonl -q --no-verify -o", "p.jsonl"),
            ("dedup in.jsonl -q -o", "p.jsonl.xz"),
            ("dedup in.jsonl -q -o out.jsonl --force --no-verify --removed", "p.jsonl"),
            ("dedup in.jsonl -q -o out.jsonl --force --no-verify --save", "p.nearset"),
            ("dedup in.jsonl -q --dry-run --report", "p.html"),
            ("dedup in.jsonl -q -o", "p.jsonl"),
            ("dedup in.jsonl -q -o out.jsonl --force --removed", "p.jsonl.gz"),
            ("build in.jsonl -q --near 0.8 -o", "p.nearset"),
            ("build in.jsonl -q --index --near 0.8 -o", "p.nearset"),
            ("merge seen.nearset seen.nearset -q -o", "p.nearset"),
            ("query seen.nearset in.jsonl -q --tag -o", "p.jsonl"),
            ("search index.nearset in.jsonl -q --top 1 -o", "p.csv"),
            ("pairs in.jsonl -q -o", "p.tsv"),
            ("cluster in.jsonl -q -o", "p"),
            ("plan --metric jaccard --near 0.8 --far 0.5 --capacity 1000 --plot", "p.svg"),
            ("info seen.nearset --plot", "p.svg"),
        ] {
            shop.write("out.jsonl", "");
            mkfifo(&shop, name);
            // A user's own file beside it, by the name that a partial file would have.
            shop.write(&format!("{name}.partial"), "mine");
            let path = shop.path(name);
            let reading = std::thread::spawn(move || std::fs::read(path).unwrap());
            let mut run = shop.command(&format!("{command} {name}"));
            let ran = run.env("NEARSET_CHECKPOINT_BYTES", "1000").output().unwrap();
            assert!(matches!(ran.status.code(), Some(0 | 10)), "{command}: {}", String::from_utf8_lossy(&ran.stderr));
            let piped = reading.join().unwrap();
            assert!(is_fifo(&shop, name), "{command} {name}");
            assert_eq!(shop.text(&format!("{name}.partial")), "mine");
            assert!(!shop.exists(&format!("{name}.resume")) && !shop.exists("out.jsonl.resume"));
            std::fs::remove_file(shop.path(name)).unwrap();
            std::fs::remove_file(shop.path(&format!("{name}.partial"))).unwrap();
            let file = if name == "p" { "p.tsv" } else { name };
            shop.run(&format!("{command} {file}"));
            let written = shop.read(file);
            assert!(!piped.is_empty(), "{command}");
            // A report has the time that it took.
            assert!(piped == written || name == "p.html", "{command} {name}");
            std::fs::remove_file(shop.path(file)).unwrap();
        }
    }

    #[test]
    fn a_pipe_or_device_that_fails_is_an_error() {
        let shop = Workshop::new();
        let (texts, _) = corpus(3000);
        shop.write("in.jsonl", jsonl(&texts));
        for (arguments, closing) in [
            ("dedup in.jsonl -q -o p.jsonl", "p.jsonl"),
            ("dedup in.jsonl -q --annotate -o out.jsonl --removed p.jsonl", "p.jsonl"),
        ] {
            mkfifo(&shop, closing);
            let path = shop.path(closing);
            let reading = std::thread::spawn(move || std::fs::File::open(path).unwrap().read_exact(&mut [0; 10]));
            let ran = shop.run(arguments);
            reading.join().unwrap().unwrap();
            assert!(ran.code() == 1 && ran.stderr().contains("p.jsonl: cannot write"), "{}", ran.stderr());
            assert!(is_fifo(&shop, closing) && !shop.exists("out.jsonl"));
            std::fs::remove_file(shop.path(closing)).unwrap();
        }
        // Standard output that nobody reads to its end is no failure, unless another output is missing for it.
        let script =
            "{ code=0; $nearset dedup in.jsonl -q -o - OTHER 2>said || code=$?; echo $code > code; } | head -c 10";
        for (other, code) in
            [("", "0\n"), ("--removed removed.jsonl", "1\n"), ("--no-verify --removed removed.jsonl", "1\n")]
        {
            sh(&shop, &script.replace("OTHER", other));
            assert_eq!(shop.text("code"), code, "{}", shop.text("said"));
            assert_eq!(shop.text("said").contains("so removed.jsonl was not written"), !other.is_empty());
            assert!(!shop.exists("removed.jsonl"));
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_device_is_an_error_and_stays() {
        let (shop, _) = small();
        symlink("/dev/full", shop.path("full.jsonl")).unwrap();
        for name in ["/dev/full", "full.jsonl"] {
            let ran = shop.run(&format!("dedup in.jsonl -o {name}"));
            assert!(ran.code() == 1 && ran.stderr().contains("no space left"), "{}", ran.stderr());
        }
        // A filter of records that did not come out would make a later run leave them out.
        let ran = shop.run("dedup in.jsonl -o /dev/full --no-verify --save seen.nearset");
        assert!(ran.code() == 1 && ran.stderr().contains("no space left"), "{}", ran.stderr());
        assert!(std::fs::metadata("/dev/full").unwrap().file_type().is_char_device());
        assert_eq!(shop.names(), ["full.jsonl", "in.jsonl"]);
    }
}
