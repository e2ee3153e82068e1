//! `nearset hash`: the hashes of pictures.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use nearset_jobs::hash::{HashOptions, HashSummary, hash_pictures};
use nearset_pictures::{Algorithm, LEAST_QUALITY};
use nearset_records::{Format, output};

use crate::join::{print_counts, watched};
use crate::options::{OnError, Usage, Work, print_json, sources_of, without_keep};
use crate::show::{self, NOTE};

const EXAMPLES: &str = "\
Examples:
  A folder of pictures, and all pairs among them that PDQ takes for the same:
    nearset hash photos/ -o hashes.jsonl
    nearset pairs hashes.jsonl --metric hamming --near 31 -o pairs.tsv

  The same in one go; pictures are hashed on the way:
    nearset pairs photos/ --metric hamming --near 31 -o pairs.tsv

  A crawl in which some files are damaged; pictures whose hashes say nothing are left out:
    nearset hash crawl/ -o hashes.jsonl --on-error skip --min-quality 50

  Through a pipe, to look pictures up among known ones:
    nearset hash uploads/ | nearset search known.nearset - --within 31

  By pHash, with dHash beside it:
    nearset hash photos/ -o hashes.jsonl --algorithm phash,dhash

Exit codes: 0 done, 1 failed (no output appears), 2 wrong command line.";

/// Hash pictures, so that those which look alike have hashes that differ in few bits
///
/// Writes a row for each picture, in the order of names: the file as its id, the hash in hexadecimal digits, the quality (how much there is to see, from 0 to 100, by
/// PDQ's measure), width and height. JPEG, PNG, WebP, GIF, TIFF and BMP are read, told by their content; they are turned as their EXIF orientation says, and of
/// animations the first picture counts. PDQ has 256 bits, and 31 of them is the usual distance up to which pictures are the same; pHash and dHash have 64.
/// Hashes of pictures with a quality below 50 say nothing: unrelated ones may be near.
///
/// `dedup`, `pairs`, `cluster`, `build` and `search` also take the pictures themselves, with --metric hamming. They compare those of a quality
/// below 50 by their files' bytes.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, mut_arg("on_error", |arg| arg.value_parser(without_keep())))]
pub struct Args {
    /// Pictures, folders of them, or quoted globs. Of folders, files count that are pictures by their names or by their first bytes
    #[arg(required = true, value_name = "PICTURES")]
    inputs: Vec<String>,

    /// Where rows go: .jsonl, .tsv or .csv, each also .gz, .zst, .bz2 or .xz; - for standard output, as JSON Lines
    #[arg(short, long, value_name = "OUT", default_value = "-")]
    output: PathBuf,

    /// pdq, phash or dhash, or several with commas between them: the first is called hash, the others by their names
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "pdq")]
    algorithm: Vec<Algorithm>,

    /// Leave out pictures of a lower quality, from 0 to 100
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u8).range(..=100))]
    min_quality: u8,

    #[command(flatten)]
    work: Work,

    /// Replace an existing output
    #[arg(long)]
    force: bool,

    /// Print the summary as a line of JSON on standard output (on standard error if that is the output)
    #[arg(long)]
    json: bool,

    /// Print nothing but errors
    #[arg(short, long)]
    quiet: bool,
}

pub fn run(args: Args) -> Result<ExitCode> {
    args.work.writes_no_records()?;
    if (1..args.algorithm.len()).any(|i| args.algorithm[..i].contains(&args.algorithm[i])) {
        return Err(Usage("--algorithm names one twice: name each once".to_owned()).into());
    }
    let sources = sources_of(&args.inputs, Some(Format::Picture), args.quiet)?;
    let total = sources.total_bytes();
    let mut options = HashOptions::new(&args.output);
    options.algorithms = args.algorithm;
    options.min_quality = args.min_quality;
    options.on_error = args.work.on_error.into();
    options.threads = args.work.threads();
    options.force = args.force;
    let summary = watched(total, args.quiet, |progress| hash_pictures(sources.list, &options, progress))??;
    if !args.quiet {
        print_summary(&summary);
    }
    if args.json {
        let value = serde_json::to_value(&summary).context("cannot write the summary as JSON")?;
        print_json(&value, output::is_stdout(&args.output))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn print_summary(summary: &HashSummary) {
    print_counts(&summary.counts, OnError::Skip, summary.seconds);
    let rate = summary.counts.records as f64 / summary.seconds.max(1e-9);
    eprintln!("hashed    {} ({rate:.0} per second)", show::counted(summary.hashed, "picture"));
    if summary.left_out > 0 {
        eprintln!("left out  {} below the quality that was asked for", show::count(summary.left_out));
    }
    if summary.low_quality > summary.left_out {
        anstream::eprintln!(
            "{NOTE} {} pictures have a quality below {LEAST_QUALITY}: too little to see in them, and unrelated ones may have near hashes; \
             --min-quality {LEAST_QUALITY} leaves them out",
            show::count(summary.low_quality)
        );
    }
}
