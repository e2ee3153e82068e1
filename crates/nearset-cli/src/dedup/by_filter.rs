//! `nearset dedup --no-verify`: a filter decides, in fixed memory, and compares nothing.

use std::process::ExitCode;

use anyhow::Result;
use nearset_jobs::capacity::Known;
use nearset_jobs::dedup::{Dedup, DedupOptions, DedupPlan, Summary};
use nearset_jobs::library::is_library;
use nearset_view::words;

use super::Args;
use crate::join;
use crate::options::Usage;
use crate::show::{self, ALARM};

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    if let Some(library) = args.against.iter().find(|path| is_library(path)) {
        let library = library.display();
        return Err(Usage(format!("--against {library} is a library, to compare with. Leave out --no-verify")).into());
    }
    let sources = args.input.sources_beside(&args.output, args.running.quiet)?;
    let (mut wanted, fields) = args.wanted(&sources)?;
    wanted.max_false_positive = args.max_fp;
    let mut options = DedupOptions::new(wanted);
    options.run = args.run_options(fields);
    options.capacity = args.capacity;
    let screen = args.screen()?;
    options.screen = screen.clone();
    let total = sources.total_bytes();
    let dedup = Dedup::prepare(sources.list, options)?;
    if !args.running.quiet {
        let plan = dedup.plan()?;
        print_plan(&plan, args.running.resume);
        args.print_filters(&screen, plan.near, Some(&plan.shingling))?;
    }
    let summary = args.explained(join::watched(total, args.running.quiet, |progress| dedup.run(progress))?)?;
    if !args.running.quiet {
        print_summary(&summary, args);
        args.print_report(summary.report_seconds);
    }
    args.print_json(&summary)?;
    Ok(ExitCode::SUCCESS)
}

fn print_plan(plan: &DedupPlan, resume: bool) {
    let known = match plan.capacity.known {
        Known::Given => "as given".to_owned(),
        Known::Counted => "counted".to_owned(),
        Known::Sampled => {
            let records = plan.capacity.records;
            format!("estimated from a sample (--capacity {records} repeats this run however the input is split)")
        }
        _ => "a guess, since a pipe does not tell its length; it grows where that is too few".to_owned(),
    };
    eprintln!("plan      near {} by Jaccard similarity of {} shingles", plan.near, plan.shingling);
    eprintln!("counted   against all earlier records together: nothing is compared, and what many share may look near");
    eprintln!("caught    {}", words::caught(&plan.promise));
    eprintln!("lost      {}", words::lost(&plan.promise));
    eprintln!("capacity  {} records, {known}", show::count(plan.capacity.records));
    let each = plan.bytes as f64 / plan.capacity.records as f64;
    let (rows, bands) = (plan.rows, plan.bands);
    eprintln!(
        "memory    {} of filter, {each:.1} bytes per record ({bands} bands of {rows} rows)",
        show::bytes(plan.bytes)
    );
    join::print_resumed(plan.resumed_records, resume);
}

fn print_summary(summary: &Summary, args: &Args) {
    join::print_counts(&summary.counts, args.running.work.on_error, summary.seconds - summary.report_seconds);
    let part = |number: u64| show::percent(number as f64 / summary.counts.records.max(1) as f64);
    let (kept, removed) = if args.annotate { ("new", "marked") } else { ("kept", "removed") };
    eprintln!("{kept:<10}{} ({})", show::count(summary.kept), part(summary.kept));
    eprintln!("{removed:<10}{} near an earlier record ({})", show::count(summary.near), part(summary.near));
    for (name, number) in &summary.against {
        eprintln!("{removed:<10}{} near {name} ({})", show::count(*number), part(*number));
    }
    let bytes: u64 = summary.generations.iter().map(|generation| generation.bytes).sum();
    let fill = summary.generations.last().map_or(0.0, |generation| generation.fill);
    let fills = show::percent(fill);
    if summary.generations.len() > 1 {
        let (number, wrong) = (summary.generations.len(), show::percent(summary.false_positive));
        eprintln!(
            "filter    grew to {number} generations of {} in all: {} was too few records; {} caught at similarity {}, \
             {wrong} lost at {}",
            show::bytes(bytes),
            show::count(summary.plan.capacity.records),
            show::percent(1.0 - summary.false_negative),
            words::similarity(summary.plan.near),
            words::similarity(summary.plan.far),
        );
    } else {
        eprintln!("filter    {}, {fills} of its bits set", show::bytes(bytes));
    }
    if summary.crowded > 0 {
        anstream::eprintln!(
            "{ALARM}     {} of those {removed} are no copies, and share something with many others: a template may have made them look \
             near, although no single record is. Leave --no-verify out to compare them",
            show::count(summary.crowded)
        );
    }
    if let Some(path) = &summary.saved {
        eprintln!("saved     {}", path.display());
    }
}
