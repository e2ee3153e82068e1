//! Killed at any moment and resumed, a run ends with the bytes of one that was never stopped.

use std::time::{Duration, Instant};

use crate::support::{Numbers, Workshop, corpus, jsonl};
use crate::units;

/// Kills the command again and again, resuming each time, and leaves it finished. How often it was killed.
pub fn run_killing(shop: &Workshop, arguments: &str, numbers: &mut Numbers, longest_ms: u64) -> u32 {
    let mut kills = 0;
    loop {
        let mut child =
            shop.command(&format!("{arguments} --resume -q")).env("NEARSET_CHECKPOINT_BYTES", "50000").spawn().unwrap();
        // After many kills it is let run, so that the test ends on a slow machine too.
        let patience = if kills < 12 { numbers.below(longest_ms) } else { 60_000 };
        let started = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break Some(status);
            }
            if started.elapsed() >= Duration::from_millis(patience) {
                break None;
            }
            std::thread::sleep(Duration::from_millis(1));
        };
        match status {
            Some(status) => {
                // 10 is how `query` says that something is near.
                assert!(matches!(status.code(), Some(0 | 10)), "{arguments} after {kills} kills");
                return kills;
            }
            None => {
                child.kill().unwrap();
                child.wait().unwrap();
                kills += 1;
                // Killed after the names were given and the state was removed: it was done.
                let names = ["out.jsonl", "out.jsonl.zst", "out.csv", "out"];
                // The last of a folder's shards is given its name last.
                let is_there = |out: &str| shop.exists(if out == "out" { "out/b/part-1.jsonl.zst" } else { out });
                let done = names.iter().any(|out| is_there(out))
                    && !names.iter().any(|out| shop.exists(&format!("{out}.resume/state.json")));
                if done {
                    return kills;
                }
            }
        }
    }
}

/// Writes 3,000 texts into a plain file and a packed one, and returns them.
fn in_two_files(shop: &Workshop) -> Vec<String> {
    let (texts, _) = corpus(3000);
    let lines = jsonl(&texts);
    let half = lines.len() / 2 + lines[lines.len() / 2..].find('\n').unwrap() + 1;
    shop.write("a.jsonl", &lines[..half]);
    shop.write("b.jsonl.zst", zstd::encode_all(&lines.as_bytes()[half..], 3).unwrap());
    texts
}

#[test]
fn killed_and_resumed_runs_end_with_the_same_bytes() {
    let shop = Workshop::new();
    in_two_files(&shop);
    let mut numbers = Numbers(7);
    let mut kills = 0;
    for out in ["out.jsonl", "out.jsonl.zst"] {
        let arguments = |threads: u32| {
            format!(
                "dedup a.jsonl b.jsonl.zst -o {out} --removed removed.jsonl.gz --no-verify --save seen.nearset --capacity 1000 \
                 --threads {threads}"
            )
        };
        let outputs = [out, "removed.jsonl.gz", "seen.nearset"];
        let clock = Instant::now();
        let whole = shop.command(&arguments(2)).env("NEARSET_CHECKPOINT_BYTES", "50000").output().unwrap();
        // Most kills then fall into a run, however fast the machine is.
        let longest = (clock.elapsed().as_millis() as u64 * 3 / 4).max(3);
        assert!(whole.status.success(), "{}", String::from_utf8_lossy(&whole.stderr));
        let expected: Vec<Vec<u8>> = outputs.iter().map(|name| shop.read(name)).collect();
        for threads in [1, 2, 16] {
            for _ in 0..2 {
                outputs.iter().for_each(|name| std::fs::remove_file(shop.path(name)).unwrap());
                kills += run_killing(&shop, &arguments(threads), &mut numbers, longest);
                for (name, expected) in outputs.iter().zip(&expected) {
                    assert!(&shop.read(name) == expected, "{name} by {threads} threads");
                }
                assert!(!shop.exists(&format!("{out}.resume/state.json")));
                assert!(!shop.names().iter().any(|name| name.contains("partial")));
            }
        }
        outputs.iter().for_each(|name| std::fs::remove_file(shop.path(name)).unwrap());
    }
    // Of the 12 runs most are killed at least once, also where another program has taken the machine for a while.
    assert!(kills > 6, "killed only {kills} times");
}

/// Whatever decides on records: one pass or two, chains followed or not, texts read in place or copied, names wanted or not.
#[test]
fn compared_runs_that_are_killed_end_with_the_same_bytes() {
    let shop = Workshop::new();
    let texts = in_two_files(&shop);
    let rows: String = texts.iter().enumerate().map(|(i, text)| format!("{i},\"{text}\",{}\n", i % 7)).collect();
    shop.write("in.csv", format!("id,text,rank\n{rows}"));
    let mut numbers = Numbers(8);
    let mut kills = 0;
    for (options, out) in [
        ("a.jsonl b.jsonl.zst --removed removed.jsonl", "out.jsonl.zst"),
        ("a.jsonl b.jsonl.zst", "out.jsonl"),
        ("b.jsonl.zst a.jsonl --chain --annotate", "out.jsonl"),
        ("in.csv --removed removed.jsonl", "out.csv"),
        ("in.csv --removed removed.jsonl --keep max:rank", "out.csv"),
        ("a.jsonl b.jsonl.zst --keep longest --annotate", "out.jsonl"),
    ] {
        let arguments = |threads: u32| format!("dedup {options} -o {out} --report r.html --threads {threads}");
        let clock = Instant::now();
        let whole = shop.command(&arguments(2)).env("NEARSET_CHECKPOINT_BYTES", "50000").output().unwrap();
        let longest = (clock.elapsed().as_millis() as u64 * 3 / 4).max(3);
        assert!(whole.status.success(), "{options}: {}", String::from_utf8_lossy(&whole.stderr));
        let mut outputs = vec![out, "r.html"];
        outputs.extend(options.contains("--removed").then_some("removed.jsonl"));
        let expected: Vec<Vec<u8>> = outputs.iter().map(|name| shop.read(name)).collect();
        for threads in [1, 3] {
            outputs.iter().for_each(|name| std::fs::remove_file(shop.path(name)).unwrap());
            kills += run_killing(&shop, &arguments(threads), &mut numbers, longest);
            for (name, expected) in outputs.iter().zip(&expected) {
                assert!(&shop.read(name) == expected, "{options}: {name} by {threads} threads");
            }
            assert!(!shop.names().iter().any(|name| name.contains("partial")), "{:?}", shop.names());
        }
        for name in outputs.into_iter().chain(["out.jsonl.resume", "out.jsonl.zst.resume", "out.csv.resume"]) {
            let path = shop.path(name);
            let _ = if path.is_dir() { std::fs::remove_dir(path) } else { std::fs::remove_file(path) };
        }
    }
    assert!(kills > 6, "killed only {kills} times");
}

#[test]
fn runs_that_cut_parts_and_are_killed_end_with_the_same_bytes() {
    let shop = Workshop::new();
    shop.write("in.jsonl", units::jsonl(&units::texts(8000)));
    let mut numbers = Numbers(9);
    let mut kills = 0;
    for how in ["", "--no-verify --max-share 0.9"] {
        let arguments =
            |threads| format!("dedup in.jsonl -o out.jsonl --removed r.jsonl --unit line --threads {threads} {how}");
        let clock = Instant::now();
        let whole = shop.command(&arguments(2)).env("NEARSET_CHECKPOINT_BYTES", "50000").output().unwrap();
        let longest = (clock.elapsed().as_millis() as u64 * 3 / 4).max(3);
        assert!(whole.status.success(), "{}", String::from_utf8_lossy(&whole.stderr));
        let outputs = ["out.jsonl", "r.jsonl"];
        let expected = outputs.map(|name| shop.read(name));
        for threads in [1, 2, 3] {
            outputs.iter().for_each(|name| std::fs::remove_file(shop.path(name)).unwrap());
            kills += run_killing(&shop, &arguments(threads), &mut numbers, longest);
            assert!(outputs.map(|name| shop.read(name)) == expected, "{how} by {threads} threads");
        }
        outputs.iter().for_each(|name| std::fs::remove_file(shop.path(name)).unwrap());
    }
    assert!(kills > 3, "killed only {kills} times");
}

/// A run that is killed between the removal of its state and that of the state's folder has finished, and leaves the folder.
#[test]
fn an_empty_folder_of_a_finished_run_is_in_nobodys_way() {
    let shop = Workshop::new();
    let (texts, _) = corpus(300);
    shop.write("in.jsonl", jsonl(&texts));
    let leave_folder = || std::fs::create_dir(shop.path("out.jsonl.resume")).unwrap();
    leave_folder();
    shop.ok("dedup in.jsonl -o out.jsonl --resume -q");
    assert_eq!(shop.names(), ["in.jsonl", "out.jsonl"]);
    let kept = shop.read("out.jsonl");

    leave_folder();
    for arguments in ["dedup in.jsonl -o out.jsonl -q", "dedup in.jsonl -o out.jsonl -q --resume"] {
        let ran = shop.command(arguments).output().unwrap();
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert!(ran.status.code() == Some(1) && said.contains("--force"), "{arguments}: {said}");
        assert_eq!(shop.names(), ["in.jsonl", "out.jsonl"], "{arguments}");
    }
    leave_folder();
    shop.ok("dedup in.jsonl -o out.jsonl --force -q");
    assert_eq!(shop.names(), ["in.jsonl", "out.jsonl"]);
    assert!(shop.read("out.jsonl") == kept);

    // An unfinished output beside it may be that of a run at work, so a run that gives up leaves both alone.
    leave_folder();
    shop.write("out.jsonl.partial", "half");
    assert_eq!(shop.command("dedup in.jsonl -o out.jsonl -q").output().unwrap().status.code(), Some(1));
    assert_eq!(shop.names(), ["in.jsonl", "out.jsonl", "out.jsonl.partial", "out.jsonl.resume"]);
}

/// Leaves an unfinished run behind.
pub fn stop_half_way(shop: &Workshop, arguments: &str, out: &str) {
    for patience in (5..2000).step_by(5) {
        let mut child = shop.command(arguments).env("NEARSET_CHECKPOINT_BYTES", "20000").spawn().unwrap();
        std::thread::sleep(Duration::from_millis(patience));
        child.kill().unwrap();
        child.wait().unwrap();
        if shop.exists(&format!("{out}.resume/state.json")) && !shop.exists(out) {
            return;
        }
        for name in shop.names().iter().filter(|name| name.starts_with(out)) {
            let path = shop.path(name);
            if path.is_dir() { std::fs::remove_dir_all(path).unwrap() } else { std::fs::remove_file(path).unwrap() }
        }
    }
    panic!("no run could be stopped half way");
}

#[test]
fn a_changed_option_or_input_is_refused() {
    let shop = Workshop::new();
    let (texts, _) = corpus(6000);
    shop.write("in.jsonl", jsonl(&texts));
    stop_half_way(&shop, "dedup in.jsonl -o out.jsonl -q", "out.jsonl");
    let refused = |arguments: &str, why: &str| {
        let ran = shop.command(arguments).env("NEARSET_CHECKPOINT_BYTES", "20000").output().unwrap();
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert_eq!(ran.status.code(), Some(1), "{arguments}: {said}");
        assert!(said.contains(why), "{arguments}: {said}");
    };
    refused("dedup in.jsonl -o out.jsonl", "--resume, or start again with --force");
    refused("dedup in.jsonl -o out.jsonl --resume --near 0.9", "--near has changed");
    refused("dedup in.jsonl -o out.jsonl --resume --keep longest", "--keep has changed");
    refused("dedup in.jsonl -o out.jsonl --resume --no-verify", "has changed since");
    shop.ok("dedup in.jsonl -o out.jsonl --force -q");
    std::fs::remove_file(shop.path("out.jsonl")).unwrap();
    stop_half_way(&shop, "dedup in.jsonl -o out.jsonl --no-verify -q", "out.jsonl");
    refused("dedup in.jsonl -o out.jsonl --no-verify", "--resume, or start again with --force");
    refused("dedup in.jsonl -o out.jsonl --no-verify --resume --near 0.9", "--near has changed");
    refused("dedup in.jsonl -o out.jsonl --no-verify --resume --seed 5", "--seed has changed");
    shop.write("in.jsonl", format!("{{\"text\":\"more\"}}\n{}", jsonl(&texts)));
    refused("dedup in.jsonl -o out.jsonl --no-verify --resume", "the size or time of input 1 has changed");
    shop.ok("dedup in.jsonl -o out.jsonl --force -q");
    assert_eq!(shop.names(), ["in.jsonl", "out.jsonl"]);
}

#[test]
fn a_run_that_failed_at_a_broken_record_goes_on_without_it() {
    let shop = Workshop::new();
    let (texts, _) = corpus(4500);
    let lines = jsonl(&texts);
    let half = lines.len() / 2 + lines[lines.len() / 2..].find('\n').unwrap() + 1;
    shop.write("in.jsonl", format!("{}broken\n{}", &lines[..half], &lines[half..]));
    let run = |arguments: &str| {
        let ran = shop.command(arguments).env("NEARSET_CHECKPOINT_BYTES", "20000").output().unwrap();
        (ran.status.code(), String::from_utf8_lossy(&ran.stderr).into_owned())
    };
    let (code, said) = run("dedup in.jsonl -o out.jsonl.gz -q");
    assert_eq!(code, Some(1));
    assert!(said.contains("invalid JSON") && said.contains("--resume continues from there"), "{said}");
    assert!(!shop.exists("out.jsonl.gz"));
    assert_eq!(run("dedup in.jsonl -o out.jsonl.gz -q --resume --on-error skip").0, Some(0));
    assert_eq!(run("dedup in.jsonl -o at_once.jsonl.gz -q --on-error skip").0, Some(0));
    assert!(shop.read("out.jsonl.gz") == shop.read("at_once.jsonl.gz"));
}

#[test]
fn a_run_that_failed_at_a_broken_record_goes_on_when_that_is_mended() {
    let (texts, _) = corpus(4500);
    let lines = jsonl(&texts);
    let half = lines.len() / 2 + lines[lines.len() / 2..].find('\n').unwrap() + 1;
    let with = |line: &str| format!("{}{line}{}", &lines[..half], &lines[half..]);
    let (broken, mended) = (with("broken\n"), with("{\"id\":\"mended\",\"text\":\"all is well\"}\n"));
    for (name, pack) in [("in.jsonl", false), ("in.jsonl.zst", true)] {
        let packed = |text: &str| if pack { zstd::encode_all(text.as_bytes(), 3).unwrap() } else { text.into() };
        for flags in ["", "--no-verify --capacity 5000", "--keep longest", "--memory 1M"] {
            let shop = Workshop::new();
            let run = |arguments: &str| {
                let ran = shop.command(arguments).env("NEARSET_CHECKPOINT_BYTES", "20000").output().unwrap();
                (ran.status.code(), String::from_utf8_lossy(&ran.stderr).into_owned())
            };
            shop.write(name, packed(&broken));
            shop.write("more.jsonl", "{\"text\":\"more\"}\n");
            let arguments = format!("dedup {name} more.jsonl -o out.jsonl -q {flags}");
            assert_eq!(run(&arguments).0, Some(1));
            let is_kept = shop.exists("out.jsonl.resume/state.json");
            assert_eq!(
                is_kept,
                !flags.contains("longest") && !flags.contains("memory"),
                "{flags}: two passes write nothing"
            );
            shop.write(name, packed(&mended));
            // What was not read yet may change, too.
            shop.write("more.jsonl", "{\"text\":\"even more\"}\n");
            let (code, said) = run(&format!("{arguments} --resume"));
            assert_eq!(code, Some(0), "{flags}: {said}");
            assert_eq!(run(&arguments.replace("-o out", "-o at_once")).0, Some(0));
            assert!(shop.read("out.jsonl") == shop.read("at_once.jsonl"), "{name} {flags}");
        }
    }
}

#[cfg(unix)]
#[test]
fn ctrl_c_says_how_to_go_on() {
    let shop = Workshop::new();
    let (texts, _) = corpus(6000);
    shop.write("in.jsonl", jsonl(&texts));
    for arguments in
        ["dedup in.jsonl -o out.jsonl -q --threads 1 --no-verify", "dedup in.jsonl -o out.jsonl -q --threads 1"]
    {
        interrupt_half_way(&shop, arguments);
        shop.ok(&format!("{arguments} --force"));
        std::fs::remove_file(shop.path("out.jsonl")).unwrap();
    }
}

/// Interrupts a run until one was half done.
#[cfg(unix)]
fn interrupt_half_way(shop: &Workshop, arguments: &str) {
    for patience in (20..2000).step_by(20) {
        let child = shop
            .command(arguments)
            .env("NEARSET_CHECKPOINT_BYTES", "5000")
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(patience));
        let interrupt = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
        assert!(interrupt.is_ok());
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if shop.exists("out.jsonl.resume/state.json") {
            assert_eq!(output.status.code(), Some(1));
            assert!(said.contains("hint: continue with the same command and --resume"), "{said}");
            return;
        }
        assert!(!said.contains("stopped") || said.contains("the first checkpoint comes behind 5.0 kB"), "{said}");
        // Too early or too late: nothing half-written is left either way.
        let names = shop.names();
        assert!(names == ["in.jsonl"] || names == ["in.jsonl", "out.jsonl"], "{names:?} {said}");
        let _ = std::fs::remove_file(shop.path("out.jsonl"));
    }
    panic!("no run could be interrupted half way");
}

#[test]
fn screenings_that_are_killed_end_with_the_same_bytes() {
    let shop = Workshop::new();
    let texts = in_two_files(&shop);
    shop.write("seen.jsonl", jsonl(&texts[..1000]));
    shop.ok("build seen.jsonl -o seen.nearset --near 0.8 -q");
    let mut numbers = Numbers(9);
    for what in ["--keep far --removed removed.jsonl", "--keep near", "--tag --removed removed.jsonl"] {
        let arguments =
            |threads: u32| format!("query seen.nearset a.jsonl b.jsonl.zst -o out.jsonl {what} --threads {threads}");
        let clock = Instant::now();
        let whole = shop.command(&arguments(2)).env("NEARSET_CHECKPOINT_BYTES", "50000").output().unwrap();
        let longest = (clock.elapsed().as_millis() as u64 * 3 / 4).max(3);
        assert_eq!(whole.status.code(), Some(10), "{what}: {}", String::from_utf8_lossy(&whole.stderr));
        let mut outputs = vec!["out.jsonl"];
        outputs.extend(what.contains("--removed").then_some("removed.jsonl"));
        let expected: Vec<String> = outputs.iter().map(|name| shop.text(name)).collect();
        let left_out = 3000 - expected[0].lines().count();
        assert_eq!(left_out == 0, what.contains("--tag"), "{what}");
        if let Some(removed) = expected.get(1) {
            assert!(removed.lines().all(|line| line.contains("\"reason\":\"near seen.nearset\"")), "{removed}");
            assert!(left_out == 0 || removed.lines().count() == left_out);
        }
        for threads in [1, 3] {
            outputs.iter().for_each(|name| std::fs::remove_file(shop.path(name)).unwrap());
            run_killing(&shop, &arguments(threads), &mut numbers, longest);
            for (name, expected) in outputs.iter().zip(&expected) {
                assert!(&shop.text(name) == expected, "{what}: {name} by {threads} threads");
            }
            assert!(!shop.names().iter().any(|name| name.contains("partial")), "{:?}", shop.names());
        }
        outputs.iter().for_each(|name| std::fs::remove_file(shop.path(name)).unwrap());
        // Killed behind its last step, a run leaves the folder of its state empty.
        let _ = std::fs::remove_dir(shop.path("out.jsonl.resume"));
    }
}

#[test]
fn a_screening_is_resumed_only_as_it_was() {
    let shop = Workshop::new();
    let (texts, _) = corpus(6000);
    shop.write("in.jsonl", jsonl(&texts));
    shop.write("seen.jsonl", jsonl(&texts[..1000]));
    shop.ok("build seen.jsonl -o seen.nearset --near 0.8 -q");
    stop_half_way(&shop, "query seen.nearset in.jsonl -o out.jsonl --tag -q", "out.jsonl");
    for (options, why) in [
        ("--tag", "--resume, or start again with --force"),
        ("--keep far --resume", "--tag has changed"),
        ("--tag --resume --removed r.jsonl", "--removed has changed"),
    ] {
        let ran = shop.run(&format!("query seen.nearset in.jsonl -o out.jsonl {options}"));
        assert!(ran.code() == 1 && ran.stderr().contains(why), "{options}: {}", ran.stderr());
    }
}

#[test]
fn a_killed_search_for_benchmark_items_ends_with_the_same_bytes() {
    let shop = Workshop::new();
    let texts = in_two_files(&shop);
    let item = |(i, text): (usize, &String)| {
        let question: Vec<&str> = text.split(' ').skip(30).take(25).collect();
        format!("{{\"id\":\"q{i}\",\"question\":\"{}\"}}\n", question.join(" "))
    };
    shop.write("bench.jsonl", texts.iter().enumerate().step_by(7).map(item).collect::<String>());
    let mut numbers = Numbers(18);
    let mut kills = 0;
    for mask in ["", "--mask"] {
        let arguments = |threads: u32| {
            format!(
                "decontaminate a.jsonl b.jsonl.zst --benchmark bench.jsonl -o out.jsonl --removed removed.jsonl.gz --report \
                 report.html {mask} --threads {threads}"
            )
        };
        let outputs = ["out.jsonl", "removed.jsonl.gz", "report.html"];
        let clock = Instant::now();
        let whole = shop.command(&arguments(2)).env("NEARSET_CHECKPOINT_BYTES", "50000").output().unwrap();
        let longest = (clock.elapsed().as_millis() as u64 * 3 / 4).max(3);
        assert!(whole.status.success(), "{}", String::from_utf8_lossy(&whole.stderr));
        let expected: Vec<Vec<u8>> = outputs.iter().map(|name| shop.read(name)).collect();
        for threads in [1, 2, 7] {
            outputs.iter().for_each(|name| std::fs::remove_file(shop.path(name)).unwrap());
            kills += run_killing(&shop, &arguments(threads), &mut numbers, longest);
            let resumed: Vec<Vec<u8>> = outputs.iter().map(|name| shop.read(name)).collect();
            assert!(resumed == expected, "{} with {threads} threads", arguments(threads));
        }
        outputs.iter().for_each(|name| std::fs::remove_file(shop.path(name)).unwrap());
    }
    assert!(kills > 2, "killed only {kills} times in 6 runs");
}
