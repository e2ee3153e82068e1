//! `nearset merge`: several filters or indexes as one.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use nearset::{Filter, Kind};
use nearset_jobs::{library, save_filter, save_index};
use nearset_records::OutputOptions;
use nearset_view::words::number;

use crate::options::{Opening, Trust};
use crate::show::{self, WARNING};

const EXAMPLES: &str = "\
Examples:
  Filters built on many machines, with the same options and one --capacity for all items together:
    nearset merge part-*.nearset -o all.nearset

  Indexes of one kind of item:
    nearset merge known.nearset more.nearset -o both.nearset

  Libraries that `dedup --save` has written:
    nearset merge monday.library tuesday.library -o both.library";

/// Merge filters of one spec, indexes, or libraries into one that holds all their items
///
/// Filters must have been built with equal options, seed and capacity, which is that of all items together; otherwise the first
/// difference is named.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The filters, indexes or libraries
    #[arg(required = true, num_args = 2.., value_name = "FILTER")]
    filters: Vec<PathBuf>,

    #[command(flatten)]
    opening: Opening,

    /// Where the merged one goes
    #[arg(short, long, value_name = "FILTER")]
    output: PathBuf,

    #[command(flatten)]
    trust: Trust,

    /// Replace an existing file
    #[arg(long)]
    force: bool,

    /// Print nothing but errors
    #[arg(short, long)]
    quiet: bool,
}

/// Libraries, one after the other.
fn libraries(args: &Args) -> Result<ExitCode> {
    let records = library::merge(&args.filters, &args.output)?;
    if !args.quiet {
        let (number, records) = (args.filters.len(), show::count(records));
        eprintln!("merged    {number} libraries into {}: {records} records", args.output.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// What a filter was planned for, in the terms of its metric.
fn near_of(filter: &Filter<'_>) -> Option<String> {
    let spec = filter.spec();
    Some(number(spec.metric()?.own_unit(spec.terms()?.near)))
}

pub fn run(args: Args) -> Result<ExitCode> {
    if args.filters.iter().any(|path| library::is_library(path)) {
        return libraries(&args);
    }
    let mut options = OutputOptions::default();
    options.force = args.force;
    options.inputs = args.filters.clone();
    let first = args.opening.file(&args.filters[0])?;
    let unlike = |path: &Path| format!("{} and {} cannot be merged", args.filters[0].display(), path.display());
    let (what, items, bytes) = if matches!(first.kind()?, Kind::Hamming | Kind::Lsh) {
        let mut merged = first.index()?.into_owned();
        for path in &args.filters[1..] {
            merged.merge(&args.opening.file(path)?.index()?).with_context(|| unlike(path))?;
        }
        merged.compact();
        save_index(&merged, &args.output, &options)?;
        ("indexes", merged.len(), merged.bytes())
    } else {
        let mut merged = first.filter()?.into_owned();
        for path in &args.filters[1..] {
            let other = args.opening.file(path)?;
            let other = other.filter()?;
            // What a spec holds of it is a distance in the library's own unit, which nobody has typed.
            if let (Some(ours), Some(theirs)) = (near_of(&merged), near_of(&other))
                && ours != theirs
            {
                bail!("{}: they were built with --near {ours} and --near {theirs}; build them alike", unlike(path));
            }
            merged.merge(&other).with_context(|| unlike(path))?;
        }
        match merged.expect_not_overfull(0) {
            Err(cause) if args.trust.allow_overfull => anstream::eprintln!("{WARNING} merged, {cause}"),
            Err(cause) => return Err(cause).context("merged"),
            Ok(()) => {}
        }
        save_filter(&merged, &args.output, &options)?;
        ("filters", merged.len(), merged.bytes())
    };
    if !args.quiet {
        let (items, bytes) = (show::count(items), show::bytes(bytes));
        eprintln!("merged    {} {what} into {}: {items} items, {bytes}", args.filters.len(), args.output.display());
    }
    Ok(ExitCode::SUCCESS)
}
