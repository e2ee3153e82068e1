//! From a run to its page.

use std::path::PathBuf;
use std::sync::Arc;

use nearset_view::page;
use nearset_view::run::{CurvePoint, Excerpt, Fact, Removal, Repeated, Report, Stated};
use nearset_view::words::{bytes, count, percent, similarity};

use super::measured::{Checked, measured};
use super::recheck::{Match, Rechecked, recheck};
use super::samples::{LONGEST, Place};
use crate::capacity::Known;
use crate::dedup::summary::{Outcome, Tally};
use crate::dedup::{DedupError, DedupOptions, DedupPlan, OnError, Progress};
use nearset_records::input::Source;

/// Removals that the page shows.
const REMOVALS: usize = 24;

/// Repeated records that it shows.
const REPEATED: usize = 12;

/// The page about a run whose records are all decided on; the inputs are read once more.
///
/// # Errors
/// If the run is stopped meanwhile.
pub(in crate::dedup) fn page_of_run(
    (sources, options, plan): (&Arc<[Source]>, &DedupOptions, &DedupPlan),
    tally: &Tally,
    outcome: &Outcome,
    (promised, stated): (Vec<CurvePoint>, Stated),
    progress: &Progress,
) -> Result<String, DedupError> {
    let pipe = sources.iter().find(|source| source.bytes.is_none());
    let rechecked = match pipe {
        None => Some(recheck(sources, options, &tally.samples, progress)?),
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
        warnings: warnings(options, plan, tally, outcome),
        sources: tally.sources.clone(),
        bytes: tally.bytes,
        filter_bytes: outcome.generations.iter().map(|generation| generation.bytes).sum(),
        promised,
        stated,
        compared: checked.len() as u64,
        measured: measured(&checked, samples.removed().of, samples.kept().of),
        longest_sampled: LONGEST as u64,
        unchecked: pipe.map(|pipe| {
            format!(
                "{} is a pipe and cannot be read twice, so no record could be compared exactly with others.",
                pipe.name
            )
        }),
        repeated: repeated.map(|(removed, place)| Repeated { example: excerpt(place), removed }).collect(),
        removals,
        plan: plan_facts(plan, outcome),
        options: option_facts(options, plan),
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

/// A few of many, evenly spread, the first among them.
fn spread<T>(all: &[T]) -> Vec<&T> {
    let shown = all.len().min(REMOVALS);
    (0..shown).map(|i| &all[i * all.len() / shown]).collect()
}

fn made_by(options: &DedupOptions) -> String {
    let out = options.out.as_ref().map_or("a dry run".to_owned(), |out| format!("output {}", out.display()));
    format!("nearset {} dedup, {out}", env!("CARGO_PKG_VERSION"))
}

fn warnings(options: &DedupOptions, plan: &DedupPlan, tally: &Tally, outcome: &Outcome) -> Vec<String> {
    let mut warnings = Vec::new();
    if options.annotate {
        warnings.push("All records were kept: those called removed here are marked in the output.".to_owned());
    } else if options.out.is_none() {
        warnings
            .push("This was a dry run: no record was written, and those called removed would have been.".to_owned());
    }
    if tally.faulty > 0 {
        let first = tally.errors.shown.first().map(|error| format!(", the first: {error}")).unwrap_or_default();
        warnings.push(format!("{} records could not be read and were left out{first}", count(tally.faulty)));
    }
    for source in tally.sources.iter().filter(|source| source.broken) {
        warnings.push(format!("{} broke off after {} records.", source.name, count(source.records)));
    }
    if outcome.generations.len() > 1 {
        warnings.push(format!(
            "The filter was made for {} records, which was too few, and grew to {} generations. The curve below is that of all of them \
             together.",
            count(plan.capacity.records),
            outcome.generations.len()
        ));
    }
    warnings
}

fn plan_facts(plan: &DedupPlan, outcome: &Outcome) -> Vec<Fact> {
    let known = match plan.capacity.known {
        Known::Given => "as given",
        Known::Counted => "counted",
        Known::Sampled => "estimated from a sample",
        _ => "a guess",
    };
    let items: u64 = outcome.generations.iter().map(|generation| generation.items).sum();
    let fill = outcome.generations.last().map_or(0.0, |generation| generation.fill);
    vec![
        Fact::new("shingles", &plan.shingling),
        Fact::new("bands, rows", format!("{} of {}", plan.bands, plan.rows)),
        Fact::new("made for", format!("{} records, {known}", count(plan.capacity.records))),
        Fact::new("holds", format!("{} records", count(items))),
        Fact::new("memory", bytes(outcome.generations.iter().map(|generation| generation.bytes).sum())),
        Fact::new("bits set", percent(fill)),
        Fact::new(format!("caught at {}", similarity(plan.near)), percent(1.0 - outcome.false_negative)),
        Fact::new(format!("lost at {}", similarity(plan.far)), percent(outcome.false_positive)),
    ]
}

/// What decides the result, but not the seed: it may be secret, and a page is for showing.
fn option_facts(options: &DedupOptions, plan: &DedupPlan) -> Vec<Fact> {
    let path = |path: &PathBuf| path.display().to_string();
    let on_error = match options.on_error {
        OnError::Fail => "fail",
        OnError::Skip => "skip",
    };
    let mut facts = vec![
        Fact::new("--near", options.wanted.near),
        Fact::new("--max-fn", plan.max_false_negative),
        Fact::new("--max-fp", plan.max_false_positive),
        Fact::new("--shingle", options.shingling()),
        Fact::new("--text-field", &options.fields.item),
        Fact::new("--on-error", on_error),
    ];
    facts.extend(options.capacity.map(|records| Fact::new("--capacity", count(records))));
    facts.extend(options.removed.as_ref().map(|removed| Fact::new("--removed", path(removed))));
    facts.extend(options.save.as_ref().map(|save| Fact::new("--save", path(save))));
    facts.extend(options.against.iter().map(|against| Fact::new("--against", path(against))));
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
