//! Texts that are inside others, out of a corpus: the longest is decided on first.

use nearset_records::ReadOptions;

use super::super::containment::{Held, cutter};
use super::decided::{Decided, Sound, Verdicts, states};
use super::{JoinPlan, Outcome, VerifiedDedupOptions};
use crate::crew::Crew;
use crate::run::{Done, Ids, Outputs, Progress, RunError, Start, Tally};
use crate::screen::Against;

/// Decides on all records, and writes.
pub(super) fn compare(
    (start, options): (&Start, &VerifiedDedupOptions),
    plan: &JoinPlan,
    outputs: Outputs,
    against: &[Against<'_>],
    progress: &Progress,
) -> Result<Done<Outcome>, RunError> {
    let (wanted, run) = (&options.wanted, &options.run);
    let inputs = states(&start.sources);
    let most_bytes = plan.most_bytes();
    let cutter = cutter(&start.sources, wanted, &run.fields, against, progress)?;
    let (held, counts) = Held::read(&start.sources, (run.threads, run.on_error), &cutter, most_bytes, progress)?;
    let holders = held.holders(&Crew::new(run.threads), progress)?;
    let mut names = Ids::default();
    for &record in &held.texts.first {
        names.push(held.ids.get(record as usize));
    }
    let number = |(record, removal): (usize, (u32, f64))| (held.numbers[record], removal);
    let removals = held.removals(&holders).map(number).collect();
    let outcome = Outcome {
        records: counts.records,
        cut_short: held.keys.cut_short,
        short: 0,
        unknown_ids: 0,
        compared: None,
        read_again: 0,
        index_bytes: held.bytes(),
        alarms: held.alarms(held.removals(&holders).map(|(_, (holder, _))| holder), counts.records),
        library: None,
    };
    let decisions = Verdicts { removals, screened: held.screened, names };
    let mut decider = Decided::new(decisions, outcome, inputs, start)?;
    let page = |_: &Decided, _: &Tally, _: &Outcome| Ok(String::new());
    let read = ReadOptions::new(run.fields.clone());
    start.carry_out(outputs, read, (&Sound(&cutter), &mut decider), wanted.seed, progress, page)
}
