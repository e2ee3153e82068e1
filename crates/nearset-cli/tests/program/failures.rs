//! Bad input and bad places: said with file and line, and nothing half-written.

use crate::support::{Workshop, corpus, gzip, jsonl, kept};

const GOOD: &str = "{\"text\":\"some words that are fine\"}\n";

#[test]
fn a_broken_record_fails_with_its_line_or_is_skipped() {
    let shop = Workshop::new();
    for (bad, what) in [
        (&b"{\"text\": \"cut off\n"[..], "invalid JSON"),
        (
            b"{\"body\": \"no text here\"}\n",
            "no field \"text\": there are \"body\"\nhint: name another with --field, or use --on-error skip",
        ),
        (b"{\"text\": 7}\n", "is a number, not a string"),
        (b"{\"text\": \"\xff\xfe\"}\n", "invalid UTF-8"),
        (b"[1]\n", "an array instead of a JSON object"),
        (b"[{\"text\": \"a\"},\n", "an array instead of a JSON object"),
    ] {
        let mut bytes = GOOD.as_bytes().to_vec();
        bytes.extend_from_slice(bad);
        bytes.extend_from_slice(b"{\"text\":\"and other words behind it\"}\n");
        shop.write("in.jsonl", bytes);
        let ran = shop.run("dedup in.jsonl -o out.jsonl --removed removed.jsonl --save seen.library");
        assert_eq!(ran.code(), 1);
        assert!(ran.stderr().contains("in.jsonl:2:") && ran.stderr().contains(what), "{}", ran.stderr());
        assert!(ran.stderr().contains("--on-error skip"));
        assert_eq!(shop.names(), ["in.jsonl"], "nothing is left");
        let ran = shop.ok("dedup in.jsonl -o out.jsonl --removed removed.jsonl --on-error skip --force");
        assert_eq!(shop.text("out.jsonl").lines().count(), 2);
        assert!(ran.stderr().contains("in.jsonl:2:") && ran.stderr().contains("skipped   1 that"), "{}", ran.stderr());
        assert!(shop.text("removed.jsonl").contains("\"line\":2,\"reason\":\"unreadable: "));
        std::fs::remove_file(shop.path("out.jsonl")).unwrap();
        std::fs::remove_file(shop.path("removed.jsonl")).unwrap();
    }
}

#[test]
fn many_errors_are_counted() {
    let shop = Workshop::new();
    shop.write("in.jsonl", format!("{GOOD}{}", "nonsense\n".repeat(57)));
    let ran = shop.ok("dedup in.jsonl --dry-run --on-error skip");
    assert_eq!(ran.stderr().matches("skipped   in.jsonl:").count(), 20);
    assert!(ran.stderr().contains("and 37 more"));
}

#[test]
fn a_truncated_zstd_file_is_told() {
    let shop = Workshop::new();
    let (texts, _) = corpus(2000);
    let packed = zstd::encode_all(jsonl(&texts).as_bytes(), 3).unwrap();
    shop.write("in.jsonl.zst", &packed[..packed.len() / 2]);
    shop.write("z.jsonl", GOOD);
    let ran = shop.run("dedup in.jsonl.zst z.jsonl -o out.jsonl");
    assert_eq!(ran.code(), 1);
    assert!(ran.stderr().contains("in.jsonl.zst: the zstd stream ends too early"), "{}", ran.stderr());
    assert!(!shop.exists("out.jsonl") && !shop.exists("out.jsonl.partial"));
    let ran = shop.ok("dedup in.jsonl.zst z.jsonl -o out.jsonl --on-error skip");
    assert!(ran.stderr().contains("in.jsonl.zst broke off after"), "{}", ran.stderr());
    let out = shop.text("out.jsonl");
    assert!(out.ends_with(GOOD) && out.lines().count() > 10, "whole records before the cut and all of the next file");
}

#[test]
fn outputs_are_refused_where_they_would_destroy() {
    let shop = Workshop::new();
    shop.write("in.jsonl", GOOD);
    shop.write("there.jsonl", "precious");
    for (arguments, why) in [
        ("dedup in.jsonl -o in.jsonl --force", "is also an input"),
        ("dedup in.jsonl -o ./in.jsonl --force", "is also an input"),
        ("dedup in.jsonl -o out.jsonl --removed in.jsonl --force", "is also an input"),
        ("dedup in.jsonl -o there.jsonl", "exists already"),
        ("dedup in.jsonl -o out.jsonl --no-verify --save there.jsonl", "exists already"),
        ("dedup in.jsonl -o out.jsonl --removed out.jsonl", "named twice"),
        ("dedup in.jsonl -o nowhere/out.jsonl", "does not exist"),
        ("dedup in.jsonl -o out.csv", "records come out as they went in"),
        ("dedup in.jsonl -o out.jsonl.lz4", ".lz4 is not written: name it .gz, .zst, .bz2 or .xz"),
        ("dedup in.jsonl -o out.jsonl --removed out.jsonl.br", ".br is not written"),
        ("dedup in.jsonl -o out.jsonl --no-verify --save there.jsonl/f.nearset", "there.jsonl is a file, not a folder"),
        ("plan --metric hamming --bits 64 --near 3 --far 20 --capacity 100 --plot there.jsonl", "exists already"),
        ("dedup missing.jsonl -o out.jsonl", "missing.jsonl"),
        (
            "dedup missing/ -o out/",
            "missing/: cannot be read: No such file or directory (os error 2)\nhint: check the path",
        ),
        ("dedup in.jsonl -o out.jsonl --against there.jsonl", "neither a filter nor an index"),
    ] {
        let ran = shop.run(arguments);
        assert_eq!(ran.code(), 1, "{arguments}: {}", ran.stderr());
        assert!(ran.stderr().contains(why), "{arguments}: {}", ran.stderr());
    }
    assert_eq!(shop.text("in.jsonl"), GOOD);
    assert_eq!(shop.text("there.jsonl"), "precious");
    assert_eq!(shop.names(), ["in.jsonl", "there.jsonl"]);
    shop.ok("dedup in.jsonl -o there.jsonl --force");
    assert_eq!(shop.text("there.jsonl"), GOOD);
}

#[test]
fn a_second_run_does_not_disturb_the_first() {
    use std::io::Write;
    use std::process::Stdio;
    let shop = Workshop::new();
    shop.write("in.jsonl", GOOD);
    let mut first =
        shop.command("dedup - -o out.jsonl --removed removed.jsonl -q").stdin(Stdio::piped()).spawn().unwrap();
    while !shop.exists("removed.jsonl.partial") {
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    for options in ["", " --force", " --resume"] {
        let ran = shop.run(&format!("dedup in.jsonl -o out.jsonl --removed removed.jsonl{options}"));
        assert_eq!(ran.code(), 1);
        assert!(ran.stderr().contains("another run is writing to it"), "{}", ran.stderr());
    }
    first.stdin.take().unwrap().write_all(GOOD.as_bytes()).unwrap();
    assert!(first.wait().unwrap().success());
    assert_eq!(shop.text("out.jsonl"), GOOD);
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    use std::io::Read;
    use std::process::Stdio;
    let shop = Workshop::new();
    let (texts, _) = corpus(6000);
    shop.write("in.jsonl", jsonl(&texts));
    let mut child =
        shop.command("dedup in.jsonl -o - -q").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut some = [0; 100];
    child.stdout.take().unwrap().read_exact(&mut some).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert!(output.status.success());
}

#[test]
fn a_truncated_gzip_file_is_told() {
    let shop = Workshop::new();
    let (texts, _) = corpus(2000);
    let packed = gzip(&jsonl(&texts));
    shop.write("in.jsonl.gz", &packed[..packed.len() / 2]);
    let ran = shop.run("dedup in.jsonl.gz -o out.jsonl");
    assert_eq!(ran.code(), 1);
    assert!(ran.stderr().contains("in.jsonl.gz: the gzip stream ends too early"), "{}", ran.stderr());
    assert_eq!(shop.names(), ["in.jsonl.gz"]);
    shop.ok("dedup in.jsonl.gz -o out.jsonl --on-error skip -q");
    assert!(shop.text("out.jsonl").lines().count() > 10, "whole records before the cut");
}

#[cfg(unix)]
#[test]
fn an_input_is_known_by_all_its_names() {
    let shop = Workshop::new();
    shop.write("in.jsonl", GOOD);
    std::fs::hard_link(shop.path("in.jsonl"), shop.path("hard.jsonl")).unwrap();
    std::os::unix::fs::symlink("in.jsonl", shop.path("soft.jsonl")).unwrap();
    std::os::unix::fs::symlink(".", shop.path("here")).unwrap();
    for option in ["-o", "-o out.jsonl --removed", "-o out.jsonl --no-verify --save", "-o out.jsonl --report"] {
        for name in ["hard.jsonl", "soft.jsonl", "here/in.jsonl"] {
            let ran = shop.run(&format!("dedup in.jsonl {option} {name} --force"));
            assert_eq!(ran.code(), 1, "{option} {name}");
            assert!(ran.stderr().contains("is also an input"), "{option} {name}: {}", ran.stderr());
        }
    }
    assert_eq!(shop.text("in.jsonl"), GOOD);
    assert_eq!(shop.names(), ["hard.jsonl", "here", "in.jsonl", "soft.jsonl"], "nothing is left");
}

#[cfg(unix)]
#[test]
fn places_without_permission_are_named() {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;
    let shop = Workshop::new();
    shop.write("in.jsonl", GOOD);
    shop.write("secret.jsonl", GOOD);
    shop.write("locked/there.jsonl", GOOD);
    let allow = |name: &str, mode| {
        std::fs::set_permissions(shop.path(name), std::fs::Permissions::from_mode(mode)).unwrap();
    };
    // Root may do everything, so the program is run as another user, who needs a copy of it that he can reach.
    const NOBODY: u32 = 65534;
    let is_root = std::process::Command::new("true").uid(NOBODY).status().is_ok();
    // By another process: a program that this one writes may still be open in what another test starts, and is busy then.
    let mut copy = std::process::Command::new("cp");
    assert!(copy.arg(env!("CARGO_BIN_EXE_nearset")).arg(shop.path("nearset")).status().unwrap().success());
    for (name, mode) in [(".", 0o755), ("nearset", 0o755), ("secret.jsonl", 0o000), ("locked", 0o555)] {
        allow(name, mode);
    }
    for (arguments, why) in [
        (
            "dedup secret.jsonl -o -",
            "secret.jsonl: cannot be read: Permission denied (os error 13)\nhint: make it readable for this user",
        ),
        ("dedup in.jsonl -o locked/out.jsonl", "locked/out.jsonl: permission denied: choose a folder you may write to"),
        ("dedup in.jsonl -o - --no-verify --save locked/f.nearset", "locked/f.nearset: permission denied"),
        ("dedup in.jsonl -o - --save locked/seen.library", "locked/seen.library: Permission denied"),
    ] {
        let mut command = std::process::Command::new(shop.path("nearset"));
        command.current_dir(shop.path(".")).args(arguments.split_whitespace());
        if is_root {
            command.uid(NOBODY).gid(NOBODY);
        }
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{arguments}: {said}");
        assert!(said.contains(why), "{arguments}: {said}");
    }
    allow("locked", 0o755);
    assert_eq!(std::fs::read_dir(shop.path("locked")).unwrap().count(), 1, "nothing new is there");
}

/// Runs a script with a small file system mounted on `full`, where that is permitted.
#[cfg(target_os = "linux")]
fn on_a_small_disk(shop: &Workshop, size: &str, script: &str) -> Option<String> {
    use std::process::Command;
    if !Command::new("unshare").args(["-rm", "true"]).output().is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: no file system may be mounted here");
        return None;
    }
    std::fs::create_dir_all(shop.path("full")).unwrap();
    let script = format!("mount -t tmpfs -o size={size} none full\n{script}");
    let output = Command::new("unshare")
        .args(["-rm", "sh", "-uc", &script])
        .env("NEARSET", env!("CARGO_BIN_EXE_nearset"))
        .current_dir(shop.path("."))
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Some(text(&output.stdout) + &text(&output.stderr))
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_leaves_nothing_half_written_and_the_run_goes_on_when_there_is_room() {
    let shop = Workshop::new();
    let (texts, near) = corpus(12_000);
    let lines = jsonl(&texts);
    shop.write("in.jsonl", &lines);
    // Some 8 MB in and 5 MB out; a checkpoint holds a filter of 1.2 MB, and the next is written before the last is removed.
    let script = "
        export NEARSET_CHECKPOINT_BYTES=2000000
        $NEARSET dedup in.jsonl -o full/out.jsonl --no-verify -q; echo code $?; ls full
        mount -o remount,size=20m full
        $NEARSET dedup in.jsonl -o full/out.jsonl --no-verify -q --resume; echo code $?; ls full
        cp full/out.jsonl .";
    let Some(said) = on_a_small_disk(&shop, "4500k", script) else { return };
    assert!(said.contains("no space left on the device"), "{said}");
    assert!(said.contains("--resume continues from there"), "{said}");
    assert!(said.contains("code 1\nout.jsonl.partial\nout.jsonl.resume\ncode 0\nout.jsonl\n"), "{said}");
    assert!(shop.text("out.jsonl") == kept(&lines, &near));
    // Without a checkpoint there is nothing to go on from, so nothing stays; nor of other outputs.
    let script = "
        $NEARSET dedup in.jsonl -o full/out.jsonl -q; echo code $?; ls full
        $NEARSET dedup in.jsonl -o out2.jsonl --no-verify --save full/f.nearset -q; echo code $?; ls full
        $NEARSET dedup in.jsonl -o out3.jsonl --report full/r.html -q; echo code $?; ls full
        $NEARSET dedup in.jsonl -o out4.jsonl --save full/seen.library -q; echo code $?; ls full
        $NEARSET build in.jsonl -o full/g.nearset --near 0.8 -q; echo code $?; ls full";
    let Some(said) = on_a_small_disk(&shop, "12k", script) else { return };
    assert_eq!(said.to_lowercase().matches("no space left on").count(), 5, "{said}");
    assert!(said.contains("code 1\ncode 1\ncode 1\ncode 1\ncode 1\n"), "{said}");
    assert_eq!(shop.names(), ["full", "in.jsonl", "out.jsonl"]);
}

#[cfg(unix)]
#[test]
fn ctrl_c_and_being_asked_to_end_leave_nothing_on_a_pipe() {
    use std::io::Write;
    use std::process::{Command, Stdio};
    for signal in ["-INT", "-TERM", "-HUP"] {
        let shop = Workshop::new();
        let mut child = shop
            .command("dedup - -o out.jsonl --removed removed.jsonl --report r.html -q")
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(GOOD.as_bytes()).unwrap();
        while !shop.exists("r.html.partial") {
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
        // The pipe stays open: the run must end all the same.
        let output = child.wait_with_output().unwrap();
        drop(stdin);
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(String::from_utf8_lossy(&output.stderr), "error: stopped; nothing was written\n");
        assert_eq!(shop.names(), Vec::<String>::new());
    }
}

#[test]
fn pipes_carry_every_format_of_lines() {
    let shop = Workshop::new();
    let (texts, near) = corpus(90);
    let plain: String = texts.iter().map(|text| format!("{text}\n")).collect();
    let rows: String = texts.iter().enumerate().map(|(i, text)| format!("{i},{text}\n")).collect();
    let lines = jsonl(&texts);
    let zstd = zstd::encode_all(lines.as_bytes(), 3).unwrap();
    for (format, input, expected) in [
        ("jsonl", lines.clone().into_bytes(), kept(&lines, &near)),
        ("jsonl", zstd, kept(&lines, &near)),
        ("text", plain.clone().into_bytes(), kept(&plain, &near)),
        ("csv", format!("id,text\n{rows}").into_bytes(), format!("id,text\n{}", kept(&rows, &near))),
    ] {
        let ran = shop.ok_with_stdin(&format!("dedup - -o - --format {format} -q"), &input);
        assert!(ran.stdout() == expected.as_bytes(), "{format}");
        assert_eq!(ran.stderr(), "");
    }
    let ran = shop.run("dedup - -o - --format parquet");
    assert!(ran.code() == 1 && ran.stderr().contains("save it to a file"), "{}", ran.stderr());
}

#[test]
fn an_empty_file_is_an_empty_input_in_every_format() {
    let shop = Workshop::new();
    let rows = "id,text\n1,some words that are fine\n";
    shop.write("rows.csv", rows);
    for name in ["empty.csv", "empty.csv.gz", "empty.jsonl", "empty.jsonl.gz", "empty.jsonl.zst", "empty.fa"] {
        shop.write(name, "");
        shop.ok(&format!("dedup {name} --dry-run"));
        assert_eq!(shop.run(&format!("decontaminate rows.csv --benchmark {name} --dry-run")).code(), 1);
    }
    for inputs in ["empty.csv rows.csv", "rows.csv empty.csv", "rows.csv empty.csv.gz"] {
        shop.ok(&format!("dedup {inputs} -o out.csv --force"));
        assert_eq!(shop.text("out.csv"), rows, "{inputs}");
    }
    let ran = shop.run("decontaminate rows.csv --benchmark empty.jsonl --dry-run");
    assert!(ran.stderr().contains("empty.jsonl: holds no records"), "{}", ran.stderr());
}

#[test]
fn cures_say_what_helps_and_not_what_leaves_out_everything() {
    let shop = Workshop::new();
    shop.write("in.jsonl", "{\"text\":\"some words\",\"meta\":{\"text\":\"other words\"}}\n");
    shop.write("v.fvecs", [2i32.to_le_bytes(), 1f32.to_le_bytes(), 2f32.to_le_bytes()].concat());
    let utf_16: Vec<u8> = "\u{feff}{\"text\":\"a\"}\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    shop.write("wide.jsonl", utf_16);
    shop.ok("decontaminate --benchmark in.jsonl --save evals.nearset -q");
    for (arguments, code, why) in [
        ("dedup in.jsonl --dry-run --text-field meta", 1, "such as meta.text"),
        ("dedup in.jsonl --dry-run --metric cosine --near 0.9 --text-field text", 1, "name another with --field"),
        ("dedup v.fvecs --dry-run", 1, "--metric cosine, l1 or l2 with --near N"),
        ("pairs v.fvecs -o pairs.tsv --metric hamming --near 3", 1, "--metric cosine, l1 or l2 with --near N"),
        ("dedup in.jsonl --dry-run --against evals.nearset", 1, "`nearset decontaminate --against` looks for"),
        ("query evals.nearset in.jsonl", 1, "`nearset decontaminate --against` looks for"),
        ("decontaminate in.jsonl --dry-run", 2, "--against <SET>"),
        ("dedup in.jsonl", 2, "<--output <OUT>|--dry-run>"),
        ("dedup wide.jsonl --dry-run", 1, "convert the file to UTF-8"),
    ] {
        let ran = shop.run(arguments);
        assert_eq!(ran.code(), code, "{arguments}: {}", ran.stderr());
        assert!(ran.stderr().contains(why), "{arguments}: {}", ran.stderr());
    }
    assert!(!shop.run("dedup wide.jsonl --dry-run").stderr().contains("--on-error"));
}

#[test]
fn a_pipe_is_taken_for_json_lines_unless_it_says_otherwise() {
    let shop = Workshop::new();
    let csv = b"id,text\n1,some words that are fine\n";
    let ran = shop.run_with_stdin("dedup - --dry-run", csv);
    assert!(ran.code() == 1 && ran.stderr().contains("--format if it is not JSON Lines"), "{}", ran.stderr());
    shop.ok_with_stdin("dedup - --dry-run --format csv", csv);
    let ran = shop.run_with_stdin("dedup - --dry-run", b"PAR1\x15\x04\xff\xfe");
    assert!(ran.code() == 1 && ran.stderr().contains("save it to a file"), "{}", ran.stderr());
    if cfg!(target_os = "linux") {
        shop.ok_with_stdin("dedup /dev/stdin --dry-run", GOOD.as_bytes());
    }
}
