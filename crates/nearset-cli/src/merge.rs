//! `nearset merge`: several filters as one.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use nearset_pipeline::{FilterFile, OutputOptions, save_filter};

use crate::show;

const EXAMPLES: &str = "\
Examples:
  Filters built on many machines, with the same options and the same --capacity:
    nearset merge part-*.nearset -o all.nearset";

/// Merge filters of one spec into one that holds all their items
///
/// The filters must have been built with equal options, seed and capacity; otherwise the first difference is named.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The filters
    #[arg(required = true, num_args = 2.., value_name = "FILTER")]
    filters: Vec<PathBuf>,

    /// Where the merged filter goes
    #[arg(short, long, value_name = "FILTER")]
    output: PathBuf,

    /// Replace an existing filter
    #[arg(long)]
    force: bool,

    /// Print nothing but errors
    #[arg(short, long)]
    quiet: bool,
}

pub fn run(args: Args) -> Result<ExitCode> {
    let first = FilterFile::open(&args.filters[0])?;
    let mut merged = first.any()?.into_owned();
    for path in &args.filters[1..] {
        let other = FilterFile::open(path)?;
        merged
            .merge(&other.any()?)
            .with_context(|| format!("{} and {} cannot be merged", args.filters[0].display(), path.display()))?;
    }
    let mut options = OutputOptions::default();
    options.force = args.force;
    options.inputs = args.filters.clone();
    save_filter(&merged, &args.output, &options)?;
    if !args.quiet {
        let (items, bytes) = (show::count(merged.len()), show::bytes(merged.bytes()));
        eprintln!("merged    {} filters into {}: {items} items, {bytes}", args.filters.len(), args.output.display());
    }
    Ok(ExitCode::SUCCESS)
}
