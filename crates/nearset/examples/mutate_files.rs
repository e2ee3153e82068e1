//! Writes files of every kind with some of their fields changed and correct checksums, for testing other programs.
//!
//! `cargo run -p nearset --example mutate_files -- OUT_DIR COUNT SEED` writes `COUNT` files, the same for the same
//! seed. `OUT_DIR/MANIFEST.tsv` tells whether each opens: its name, what it was made from, and `opens` or why not.

use std::{fs, path::PathBuf, process::ExitCode};

use nearset::{Check, Rng, Seed};

#[allow(dead_code)]
#[path = "../tests/format/any.rs"]
mod any;
#[allow(dead_code)]
#[path = "../tests/format/fields.rs"]
mod fields;
#[allow(dead_code)]
#[path = "../tests/format/samples.rs"]
mod samples;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, count, seed] = &arguments[..] else {
        eprintln!("usage: mutate_files OUT_DIR COUNT SEED");
        return ExitCode::from(2);
    };
    let (Ok(count), Ok(seed)) = (count.parse::<u64>(), seed.parse::<u64>()) else {
        eprintln!("{count:?} and {seed:?} must be whole numbers");
        return ExitCode::from(2);
    };
    match write(&PathBuf::from(folder), count, seed) {
        Ok(opens) => {
            println!("{count} files in {folder}, of which {opens} open");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{folder}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn write(folder: &PathBuf, count: u64, seed: u64) -> std::io::Result<u64> {
    fs::create_dir_all(folder)?;
    let samples: Vec<(&str, Vec<u8>)> = samples::all().iter().map(|sample| (sample.name, sample.bytes())).collect();
    let (mut manifest, mut opens) = (String::from("#file\tmade of\toutcome\n"), 0);
    for case in 0..count {
        let mut rng = Rng::new(Seed::new(seed).derive("case", case));
        // Round robin, so that every kind occurs.
        let (name, original) = &samples[(case % samples.len() as u64) as usize];
        let mut bytes = original.clone();
        fields::mutate(&mut bytes, &mut rng);
        let outcome = match any::Any::open(&bytes, Check::Everything) {
            Ok(_) => {
                opens += 1;
                "opens".to_owned()
            }
            Err(error) => error.to_string(),
        };
        let file = format!("{case:06}.nearset");
        fs::write(folder.join(&file), &bytes)?;
        manifest.push_str(&format!("{file}\t{name}\t{}\n", outcome.replace(['\t', '\n'], " ")));
    }
    fs::write(folder.join("MANIFEST.tsv"), manifest)?;
    Ok(opens)
}
