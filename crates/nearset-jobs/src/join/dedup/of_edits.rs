//! Texts that are few edits from one that stays, out of a corpus: what is wanted most is decided on first.

use nearset_records::ReadOptions;

use super::super::edit::{Held, Limit, Reader};
use super::decided::{Decided, Sound, Verdicts, states};
use super::of_items::names_of;
use super::{JoinPlan, Outcome, VerifiedDedupOptions};
use crate::crew::Crew;
use crate::run::{Done, Ids, Outputs, Progress, RunError, Start, Tally};
use crate::screen::Against;

/// Decides on all records, and writes.
pub(super) fn compare(
    (start, options): (&Start, &VerifiedDedupOptions),
    (limit, plan): (Limit, &JoinPlan),
    outputs: Outputs,
    against: &[Against<'_>],
    progress: &Progress,
) -> Result<Done<Outcome>, RunError> {
    let run = &options.run;
    let inputs = states(&start.sources);
    let most_bytes = plan.most_bytes();
    let reader = Reader::new(&run.fields, against, options.keep.field());
    let reading = (run.threads, run.on_error);
    let (mut held, counts) =
        Held::read(&start.sources, reading, (&reader, &options.keep), (limit, 0), most_bytes, progress)?;
    let nearest = held.nearest(options.follow_chains, &Crew::new(run.threads), progress)?;
    let mut names = Ids::default();
    if options.keep.field().is_some() {
        // Another field was read in the place of the id.
        let records: Vec<u64> = held.first.iter().map(|&record| held.numbers[record as usize]).collect();
        names = names_of(&records, start, options, progress)?;
    } else {
        for &record in &held.first {
            names.push(held.ids.get(record as usize));
        }
    }
    let number = |(record, removal): (usize, (u32, f64))| (held.numbers[record], removal);
    let removals = held.removals(&nearest).map(number).collect();
    let alarms = Held::alarms(&names, held.removals(&nearest).map(|(_, (text, _))| text), counts.records);
    let outcome = Outcome {
        records: counts.records,
        cut_short: 0,
        short: 0,
        unknown_ids: 0,
        compared: Some(held.compared()),
        read_again: 0,
        index_bytes: held.bytes(),
        alarms,
        library: None,
    };
    let decisions = Verdicts { removals, screened: held.screened, names };
    let mut decider = Decided::new(decisions, outcome, inputs, start)?;
    let page = |_: &Decided, _: &Tally, _: &Outcome| Ok(String::new());
    let read = ReadOptions::new(run.fields.clone());
    // The second pass names records, so it reads what the first one did but for the field.
    let reader = Reader::new(&run.fields, against, None);
    start.carry_out(outputs, read, (&Sound(&reader), &mut decider), options.wanted.seed, progress, page)
}
