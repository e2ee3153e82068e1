//! `nearset dedup --verify`: nothing goes that was not compared with a record that stays.

use std::process::ExitCode;

use anyhow::Result;
use nearset::Metric;
use nearset::plan::Request;
use nearset_jobs::join::{Keep, VerifiedDedup, VerifiedDedupOptions, VerifiedDedupSummary};

use super::Args;
use crate::join;
use crate::options::Usage;
use crate::show;

/// What cannot be had together with `--verify`, and what to do instead.
fn refuse(args: &Args) -> Result<()> {
    let refused = [
        (
            !args.against.is_empty(),
            "--against: a filter holds no texts to compare with. Screen first (dedup --against without --verify), or name the \
             earlier corpus itself as the first input",
        ),
        (args.save.is_some(), "--save: no filter is built. Use nearset build on the output"),
        (args.capacity.is_some(), "--capacity: the index grows with what it holds. Leave it out"),
    ];
    match refused.iter().find(|(given, _)| *given) {
        Some((_, why)) => Err(Usage(format!("--verify cannot be used with {why}")).into()),
        None => Ok(()),
    }
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    refuse(args)?;
    let mut wanted = Request::new(Metric::Jaccard { shingling: args.shingle }, args.near).seed(args.seed);
    wanted.max_false_negative = args.max_fn;
    let mut options = VerifiedDedupOptions::new(wanted);
    options.run = args.run_options();
    options.keep = args.keep.parse::<Keep>()?;
    options.follow_chains = args.chain;
    let sources = args.input.sources(args.quiet)?;
    let total = sources.total_bytes();
    let dedup = VerifiedDedup::prepare(sources.list, options)?;
    if !args.quiet {
        join::print_plan(dedup.plan());
        join::print_resumed(dedup.resumed_records());
    }
    let summary = args.explained(join::watched(total, args.quiet, |progress| dedup.run(progress))?)?;
    if !args.quiet {
        print_summary(&summary, args);
        args.print_report(summary.report_seconds);
    }
    args.print_json(&summary)?;
    Ok(ExitCode::SUCCESS)
}

fn print_summary(summary: &VerifiedDedupSummary, args: &Args) {
    join::print_counts(&summary.counts, summary.seconds - summary.report_seconds);
    let part = |number: u64| show::percent(number as f64 / summary.counts.records.max(1) as f64);
    let (kept, removed) = if args.annotate { ("new", "marked") } else { ("kept", "removed") };
    let near = if args.chain { "near another record" } else { "near a kept record" };
    eprintln!("{kept:<10}{} ({})", show::count(summary.kept), part(summary.kept));
    eprintln!("{removed:<10}{} {near}, each compared with it ({})", show::count(summary.near), part(summary.near));
    if summary.cut_short > 0 {
        eprintln!(
            "limited   {} of those {kept} were not compared with all that they share shingles with, and may be near one of them",
            show::count(summary.cut_short)
        );
    }
    join::print_work(summary.compared, summary.read_again, summary.index_bytes);
    join::print_alarms(&summary.alarms);
}
