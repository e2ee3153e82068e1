//! From a run to the page about it: what is remembered of it, a sample compared exactly, and what comes of both.
//!
//! Invariant: the page is a function of the records, their order and the options. It names neither time nor threads, so equal runs
//! give equal pages.

mod measured;
mod recheck;

use std::sync::Arc;

use nearset::Shingling;
use nearset_records::Source;
use nearset_view::page;
use nearset_view::run::{CurvePoint, Excerpt, Fact, Others, Promise, Removal, Repeated, Report};
use nearset_view::words::count;

use crate::run::{LONGEST, OnError, Place, Progress, RunError, RunOptions, Tally};
use measured::{Checked, measured};
use recheck::{Match, Rechecked, recheck};

/// Removals that the page shows.
const REMOVALS: usize = 24;

/// Repeated records that it shows.
const REPEATED: usize = 12;

/// What a job says about itself.
pub(crate) struct About<'r> {
    pub sources: &'r Arc<[Source]>,
    pub options: &'r RunOptions,
    pub shingling: Shingling,
    pub warnings: Vec<String>,
    pub memory: u64,
    pub compared_all: bool,
    pub others: Others,
    pub promised: Vec<CurvePoint>,
    pub promise: Promise,
    pub plan: Vec<Fact>,
    /// The options that are the job's own.
    pub facts: Vec<Fact>,
}

/// Returns the page about a run whose records are all decided on; the inputs are read once more.
///
/// # Errors
/// If the run is stopped meanwhile.
pub(crate) fn page(about: About<'_>, tally: &Tally, progress: &Progress) -> Result<String, RunError> {
    let About { sources, options, .. } = about;
    let once = sources.iter().find(|source| !source.is_rereadable());
    let rechecked = match once {
        None => Some(recheck(&about, &tally.samples, progress)?),
        Some(_) => None,
    };
    let samples = &tally.samples;
    let excerpt_of = |source: usize, line: u64, id: &str, text: &str| {
        let place = format!("{}:{line}", sources[source].name);
        // A record without an id is called by its place, which need not be said twice.
        Excerpt { id: if id == place { String::new() } else { id.to_owned() }, place, text: text.to_owned() }
    };
    let excerpt = |place: &Place| excerpt_of(place.source, place.line, &place.id, &place.text);
    let beside = |found: &Match| excerpt_of(found.source, found.line, &found.id, &found.text);
    let removals = match &rechecked {
        Some(rechecked) => by_similarity(rechecked)
            .into_iter()
            .map(|one| Removal {
                removed: excerpt(&one.place),
                similarity: one.kept_similarity(),
                kept: one.kept.as_ref().map(beside),
            })
            .collect(),
        None => {
            let places = samples.removed().places();
            let alone = |place: &&Place| Removal { removed: excerpt(place), ..Removal::default() };
            spread(&places).into_iter().map(alone).collect()
        }
    };
    let checked: Vec<Checked> =
        rechecked.iter().flatten().map(|one| Checked { similarity: one.similarity, removed: one.removed }).collect();
    let repeated = samples.most_repeated().into_iter().filter(|(removed, _)| *removed > 1).take(REPEATED);
    let report = Report {
        title: match &sources[..] {
            [only] => format!("Near-duplicates in {}", only.name),
            many => format!("Near-duplicates in {} files", count(many.len() as u64)),
        },
        made_by: made_by(options),
        warnings: warnings(options, tally).into_iter().chain(about.warnings).collect(),
        sources: tally.sources.clone(),
        bytes: tally.bytes,
        memory: about.memory,
        compared_all: about.compared_all,
        promised: about.promised,
        promise: about.promise,
        compared: checked.len() as u64,
        others: about.others,
        measured: measured(&checked, samples.removed().of, samples.kept().of),
        longest_sampled: LONGEST as u64,
        unchecked: once.map(|source| {
            let what = match source.is_remote() {
                true => "may change unnoticed",
                false => "is a pipe",
            };
            format!(
                "{} {what} and cannot be read twice, so no record could be compared exactly with others.",
                source.name
            )
        }),
        repeated: repeated.map(|(removed, place)| Repeated { example: excerpt(place), removed }).collect(),
        removals,
        plan: about.plan,
        options: about.facts.into_iter().chain(option_facts(options)).collect(),
    };
    Ok(page::render(&report))
}

/// Removed records from the least similar to the most, evenly spread over all that were sampled: doubtful ones are seen first and the
/// others in proportion.
fn by_similarity(rechecked: &[Rechecked]) -> Vec<&Rechecked> {
    let mut removed: Vec<&Rechecked> = rechecked.iter().filter(|one| one.removed).collect();
    let order = |one: &Rechecked| (one.kept_similarity(), one.place.record);
    removed.sort_by(|a, b| order(a).partial_cmp(&order(b)).unwrap_or(std::cmp::Ordering::Equal));
    spread(&removed).into_iter().copied().collect()
}

/// Returns a few of many, evenly spread, the first among them.
fn spread<T>(all: &[T]) -> Vec<&T> {
    let shown = all.len().min(REMOVALS);
    (0..shown).map(|i| &all[i * all.len() / shown]).collect()
}

fn made_by(options: &RunOptions) -> String {
    let out = options.out.as_ref().map_or("a dry run".to_owned(), |out| format!("output {}", out.display()));
    format!("nearset {} dedup, {out}", env!("CARGO_PKG_VERSION"))
}

fn warnings(options: &RunOptions, tally: &Tally) -> Vec<String> {
    let mut warnings = Vec::new();
    if options.annotate {
        warnings.push("All records were kept: those called removed here are marked in the output.".to_owned());
    } else if options.out.is_none() {
        warnings
            .push("This was a dry run: no record was written, and those called removed would have been.".to_owned());
    }
    if tally.faulty > 0 {
        let first = tally.errors.shown.first().map(|error| format!(", the first: {error}")).unwrap_or_default();
        let fate = if options.on_error == OnError::Keep { "kept as they are" } else { "left out" };
        warnings.push(format!("{} records could not be read and were {fate}{first}", count(tally.faulty)));
    }
    for source in tally.sources.iter().filter(|source| source.broken) {
        warnings.push(format!("{} broke off after {} records.", source.name, count(source.records)));
    }
    warnings
}

fn option_facts(options: &RunOptions) -> Vec<Fact> {
    let on_error = match options.on_error {
        OnError::Fail => "fail",
        OnError::Skip => "skip",
        OnError::Keep => "keep",
    };
    let mut facts = vec![Fact::new("text field", &options.fields.item), Fact::new("on error", on_error)];
    facts.extend(options.removed.as_ref().map(|removed| Fact::new("removed", removed.display())));
    facts.extend(options.save.as_ref().map(|save| Fact::new("save", save.display())));
    facts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_of_many_are_spread_evenly() {
        let all: Vec<usize> = (0..240).collect();
        let shown = spread(&all);
        assert_eq!(shown.len(), REMOVALS);
        assert!(shown.iter().enumerate().all(|(i, &&one)| one == 10 * i));
        assert_eq!(spread(&all[..3]), [&0, &1, &2]);
        assert!(spread(&all[..0]).is_empty());
    }
}
