//! `nearset dedup --unit`: parts of texts that were there before.

use std::process::ExitCode;

use anyhow::Result;
use nearset_jobs::units::{DedupUnits, Empty, Unit, UnitOptions, UnitPlan, UnitSummary};

use super::Args;
use crate::join;
use crate::options::Usage;
use crate::show;

/// What is cut out of texts.
#[derive(clap::Args)]
pub(super) struct Units {
    /// Cut repeated parts out of texts instead of dropping records: paragraph (up to a blank line), line, or sentence. The first of equals
    /// stays; equal are parts of the same words, whatever their case and punctuation, or with --shingle bytes:N of the same bytes
    #[arg(long, value_name = "PART", conflicts_with_all = ["near", "max_fn", "keep", "chain", "against", "save", "copies",
        "exhaustive", "scratch", "report", "removed_text"])]
    pub(super) unit: Option<Unit>,

    /// With --unit, parts of fewer words stay, such as headings and list items. What has no words always stays
    #[arg(long, value_name = "N", default_value_t = 1, requires = "unit")]
    min_words: usize,

    /// With --unit, leave out records of which more than this share is repeated, as a whole, such as 0.8; their own parts then don't count
    /// as seen
    #[arg(long, value_name = "SHARE", default_value_t = 1.0, requires = "unit")]
    max_share: f64,

    /// With --unit, what becomes of records that lose everything: drop, or keep with an empty text
    #[arg(long, value_name = "WHAT", default_value_t = Empty::Drop, requires = "unit")]
    empty: Empty,
}

pub(super) fn run(args: &Args, unit: Unit) -> Result<ExitCode> {
    let Units { min_words, max_share, empty, .. } = args.units;
    if !(0.0..=1.0).contains(&max_share) {
        return Err(Usage(format!("--max-share {max_share}: it must be from 0 to 1")).into());
    }
    let mut options = UnitOptions::new(unit);
    let sources = args.input.sources_beside(&args.output, args.running.quiet)?;
    let (wanted, fields) = args.wanted(&sources)?;
    options.run = args.run_options(fields);
    options.shingling = args.near.shingling();
    (options.min_words, options.max_share, options.empty) = (min_words, max_share, empty);
    options.by_filter = args.no_verify;
    options.capacity = args.capacity;
    options.max_false_positive = args.max_fp.unwrap_or(UnitOptions::MAX_FALSE_POSITIVE);
    options.memory = args.room.memory;
    options.seed = wanted.seed;
    let total = sources.total_bytes();
    let dedup = DedupUnits::prepare(sources.list, options)?;
    if !args.running.quiet {
        print_plan(args, unit, dedup.plan());
    }
    let summary = args.explained(join::watched(total, args.running.quiet, |progress| dedup.run(progress))?)?;
    if !args.running.quiet {
        print_summary(args, unit, &summary);
    }
    args.print_json(&summary)?;
    Ok(ExitCode::SUCCESS)
}

fn print_plan(args: &Args, unit: Unit, plan: &UnitPlan) {
    let equal = match args.near.shingling() {
        nearset::Shingling::Bytes(_) => "bytes",
        nearset::Shingling::Code(_) => "tokens",
        nearset::Shingling::Kmers(_) => "letters",
        _ => "words",
    };
    eprintln!("plan      {unit}s go whose {equal} were there before, in the same text or an earlier one");
    let about = plan.units.map_or("an unknown number".to_owned(), |units| format!("about {}", show::count(units)));
    match (plan.bytes, args.no_verify) {
        (Some(bytes), true) => eprintln!(
            "memory    {} of filter for {about}: a new {unit} is taken for a repeated one at a rate of {:e}",
            show::bytes(bytes),
            plan.false_positive
        ),
        (Some(bytes), false) => eprintln!("memory    up to {} for {about}", show::bytes(bytes)),
        (None, _) => {
            eprintln!(
                "memory    up to {} bytes for each different {unit}; a pipe does not tell how many there are",
                UnitOptions::BYTES_PER_UNIT
            )
        }
    }
    join::print_resumed(plan.resumed_records, args.running.resume);
}

fn print_summary(args: &Args, unit: Unit, summary: &UnitSummary) {
    join::print_counts(&summary.counts, args.running.work.on_error, summary.seconds);
    let cuts = &summary.cuts;
    let part = |number: u64, of: u64| show::percent(number as f64 / of.max(1) as f64);
    let of_records = |number: u64| format!("{} ({})", show::count(number), part(number, summary.counts.records));
    let cut = if args.annotate { "marked" } else { "cut" };
    eprintln!(
        "{cut:<10}{} of {} {unit}s ({}), {} of {} ({})",
        show::count(cuts.repeated),
        show::count(cuts.units),
        part(cuts.repeated, cuts.units),
        show::bytes(cuts.repeated_bytes),
        show::bytes(cuts.text_bytes),
        part(cuts.repeated_bytes, cuts.text_bytes),
    );
    eprintln!("whole     {} with nothing repeated", of_records(summary.untouched));
    eprintln!("{:<10}{} without some of their {unit}s", "shorter", of_records(cuts.cut_records));
    let emptied = match args.units.empty {
        _ if args.annotate => "",
        Empty::Keep => ", kept with an empty text",
        _ => ", left out",
    };
    eprintln!("empty     {} of nothing else{emptied}", of_records(cuts.emptied));
    if args.units.max_share < 1.0 {
        let most = show::percent(args.units.max_share);
        eprintln!("left out  {} of which more than {most} is repeated", of_records(cuts.mostly_repeated));
    }
    for (i, frequent) in cuts.frequent.iter().take(5).enumerate() {
        let what = if i == 0 { "most" } else { "" };
        let text: String = frequent.text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(60).collect();
        eprintln!("{what:<10}{} times: {text}", show::count(frequent.times));
    }
    if args.no_verify && summary.false_positive > 2.0 * args.max_fp.unwrap_or(UnitOptions::MAX_FALSE_POSITIVE) {
        eprintln!(
            "ALARM     there were more {unit}s than the filter was made for: at the end it took new ones for repeated ones at a rate of {:.1e}. \
             Run it again with a larger --capacity",
            summary.false_positive
        );
    }
}
