//! `nearset dedup --verify`: nothing goes that was not compared with a record that stays.

use std::process::ExitCode;

use anyhow::Result;
use nearset::Metric;
use nearset::plan::Request;
use nearset_jobs::join::{JoinOptions, Keep, VerifiedDedupOptions, VerifiedDedupSummary, verified_dedup};
use nearset_records::ItemField;

use super::Args;
use crate::join::{self, Talk};
use crate::options::{self, Usage};
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
        (args.resume, "--resume: no checkpoints are taken. Run it again; outputs appear only when they are whole"),
        (
            args.report.is_some(),
            "--report: the page is about a filter's errors, and here are none. --removed has what went",
        ),
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
    let mut join = JoinOptions::new(wanted);
    join.fields = args.input.fields(&args.text_field, ItemField::Text);
    join.on_error = args.work.on_error.into();
    join.threads = args.work.threads();
    join.force = args.force;
    let mut options = VerifiedDedupOptions::new(join);
    options.keep = args.keep.parse::<Keep>()?;
    options.follow_chains = args.chain;
    options.annotate = args.annotate;
    options.out = args.output.clone();
    options.removed = args.removed.clone();
    let plan = options.join.plan()?;
    let stdout_taken = [&args.output, &args.removed].into_iter().any(options::is_stdout);
    let talk = Talk { quiet: args.quiet, json: args.json, stdout_taken };
    let work = |sources, progress: &_| verified_dedup(sources, &options, progress);
    let done = join::carry_out(&args.input, &plan, &talk, work, |summary| print_summary(summary, args));
    done.map_err(|error| options::missing_outputs(error, &[&args.output, &args.removed]))
}

fn print_summary(summary: &VerifiedDedupSummary, args: &Args) {
    join::print_counts(&summary.counts, summary.seconds);
    let part = |number: u64| show::percent(number as f64 / summary.counts.records.max(1) as f64);
    let (kept, removed) = if args.annotate { ("new", "marked") } else { ("kept", "removed") };
    let near = if args.chain { "near another record" } else { "near a kept record" };
    eprintln!("{kept:<10}{} ({})", show::count(summary.kept), part(summary.kept));
    eprintln!("{removed:<10}{} {near}, each compared with it ({})", show::count(summary.near), part(summary.near));
    join::print_work(summary.compared, summary.read_again, summary.index_bytes);
    join::print_alarms(&summary.alarms);
}
