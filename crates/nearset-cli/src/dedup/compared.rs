//! `nearset dedup` as it is meant: nothing goes that was not compared with a record that stays.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use nearset::Shingling;
use nearset::plan::Request;
use nearset_jobs::join::{Decisions, VerifiedDedup, VerifiedDedupOptions, VerifiedDedupSummary};
use nearset_jobs::library::is_library;

use super::Args;
use crate::join;
use crate::options::Usage;
use crate::show::{self, ALARM};

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    let sources = args.input.sources_beside(&args.output, args.running.quiet)?;
    let (wanted, fields) = args.wanted(&sources)?;
    if !args.running.quiet {
        args.near.print_doubts(&args.input, &sources, &fields);
    }
    let near = wanted.near;
    let mut options = VerifiedDedupOptions::new(wanted);
    options.run = args.run_options(fields);
    options.text_measure = args.near.metric.text_measure();
    options.keep = args.keep.clone();
    options.follow_chains = args.chain;
    options.exhaustive = args.exhaustive;
    if let Some(candidates) = args.candidates.filter(|&candidates| candidates > near) {
        return Err(
            Usage(format!("--candidates {candidates} is above --near {near}: what is near would be missed")).into()
        );
    }
    options.candidates = args.candidates;
    if let Some(path) = &args.decisions {
        options.decisions = Decisions::read(path)?;
    }
    let decided = options.decisions.len();
    options.memory = args.room.memory;
    let screen = args.screen()?;
    options.screen = screen.clone();
    options.library = library_name(args)?;
    options.libraries = args.against.iter().filter(|path| is_library(path)).cloned().collect();
    let total = sources.total_bytes();
    let dedup = VerifiedDedup::prepare(sources.list, options)?;
    if !args.running.quiet {
        join::print_plan(dedup.plan());
        args.print_filters(&screen, near, dedup.plan().shingling.as_deref())?;
        join::print_resumed(dedup.resumed_records(), args.running.resume);
    }
    let summary = args.explained(join::watched(total, args.running.quiet, |progress| dedup.run(progress))?)?;
    if !args.running.quiet {
        print_summary(&summary, args);
        if let Some(path) = &args.decisions {
            let unknown = match summary.unknown_ids {
                0 => String::new(),
                1 => "; 1 of its ids is of no record that was compared".to_owned(),
                unknown => format!("; {} of its ids are of no record that was compared", show::count(unknown)),
            };
            eprintln!("decided   {} as {} says{unknown}", show::counted(decided, "pair"), path.display());
        }
        args.print_report(summary.report_seconds);
    }
    args.print_json(&summary)?;
    Ok(ExitCode::SUCCESS)
}

/// Where what is kept goes for later runs.
fn library_name(args: &Args) -> Result<Option<PathBuf>> {
    if let Some(path) = &args.save
        && (path.is_file() || path.extension().is_some_and(|extension| extension == "nearset"))
    {
        let path = path.display();
        return Err(Usage(format!("--save {path} names a filter, which only --no-verify builds. Without it a library is saved, a folder: --save seen.library")).into());
    }
    Ok(args.save.clone())
}

/// Whether one changed word in the middle of a text of few shingles hides that it is near: it is in as many shingles as each has words.
fn is_hidden_by_a_word(args: &Args) -> bool {
    let Shingling::Words(length) = args.near.shingling() else { return true };
    let (most, lost) = (VerifiedDedupSummary::FEW_SHINGLES as f64 - 1.0, f64::from(length));
    (most - lost) / (most + lost) < args.near.near.unwrap_or(Request::NEAR)
}

fn print_summary(summary: &VerifiedDedupSummary, args: &Args) {
    join::print_counts(&summary.counts, args.running.work.on_error, summary.seconds - summary.report_seconds);
    let part = |number: u64| show::percent(number as f64 / summary.counts.records.max(1) as f64);
    let (kept, removed) = if args.annotate { ("new", "marked") } else { ("kept", "removed") };
    let near = if args.chain { "near another record" } else { "near a kept record" };
    eprintln!("{kept:<10}{} ({})", show::count(summary.kept), part(summary.kept));
    let compared = summary.near - summary.marked;
    eprintln!("{removed:<10}{} {near}, each compared with it ({})", show::count(compared), part(compared));
    if summary.marked > 0 {
        let marked = show::count(summary.marked);
        eprintln!("{removed:<10}{marked} marked as duplicates of a kept record ({})", part(summary.marked));
    }
    for (name, number) in &summary.against {
        eprintln!("{removed:<10}{} near {name}, not compared ({})", show::count(*number), part(*number));
    }
    for (name, number) in &summary.libraries {
        eprintln!(
            "{removed:<10}{} near a record of {name}, each compared with it ({})",
            show::count(*number),
            part(*number)
        );
    }
    let in_libraries: u64 = summary.libraries.iter().map(|(_, number)| number).sum();
    if in_libraries > 0 && in_libraries == summary.counts.records - summary.counts.faulty {
        anstream::eprintln!("{ALARM}     every record is near one of a library: was this input added to it before?");
    }
    let cure = if args.exhaustive { "" } else { "; --exhaustive compares them" };
    join::print_limited(summary.cut_short, &format!("of those {kept}"), cure);
    if summary.is_mostly_short() && is_hidden_by_a_word(args) {
        let advice = match args.near.shingling() {
            Shingling::Words(_) => "--shingle chars:8 --near 0.6 sees such edits",
            _ => "a shorter --shingle or a lower --near sees such edits",
        };
        eprintln!(
            "short     {} have fewer than {} shingles, so that one changed word may hide a copy; equal texts are found. {advice}",
            part(summary.short),
            VerifiedDedupSummary::FEW_SHINGLES,
        );
    }
    join::print_work(summary.compared, summary.read_again, summary.index_bytes);
    if let Some(path) = &summary.saved {
        eprintln!("saved     {}", path.display());
    }
    join::print_alarms(&summary.alarms);
}
