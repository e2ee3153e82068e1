//! The fourth open question of Section 5: strings that are close in edit distance, by the paper's own filter over what an embedding makes of
//! them.
//!
//! Claim: what a query is near, a comparison with every string says; a filter is measured against that.
//! References: a random walk reads a string and writes some symbols twice, so that two strings a few edits apart fall into step again
//! (Chakraborty, Goldenberg & Koucký 2016); the smallest hashes of runs of letters, pairs of them in the order of the string, collide with a
//! probability that edit similarity bounds from both sides (Marçais et al. 2019); the set of runs says nothing of their order (Ukkonen 1992).
//! All state bounds and no closed `p(d)`, so distances of sampled pairs stand in: what is near is where nearly all near pairs lie after embedding.

#[allow(dead_code)]
#[path = "../../../crates/nearset-jobs/src/join/edit/distance.rs"]
mod distance;

use std::hint::black_box;

use distance::{Chars, Pattern};
use nearset::{
    Distance, Filter, Item, Metric, Rng, Seed, Shingling, Spec, Symbols,
    family::Hashed,
    plan::{Background, FarModel, PlanError, Request},
};

use super::sizes;
use crate::{
    format::{count, significant},
    rate::{Rate, in_parallel},
    run::{Outcome, Run},
    table::Table,
    time::least_seconds,
};

/// Letters of a string: those of an amplicon, about.
const LENGTH: usize = 400;
const LETTERS: u64 = 4;
/// Edits of near queries, as fractions of the letters.
const NEAR: [f64; 2] = [0.01, 0.03];
/// Edits of far ones. Unrelated strings of four letters are some .51 apart.
const FAR: f64 = 0.2;
const PROMISE: f64 = 0.01;
/// Of the near pairs, so many may lie farther apart after embedding than what is planned as near; the filter may lose as many.
const LOST: f64 = PROMISE / 2.0;
/// Letters of a run.
const RUN: usize = 8;
/// Runs by which order is told.
const SAMPLES: usize = 256;

/// What a string becomes.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    /// What so many random walks read.
    Walks(usize),
    /// Pairs of runs, in order.
    OrderedRuns,
    /// All runs.
    Runs,
}

const WAYS: [Way; 4] = [Way::Walks(4), Way::Walks(16), Way::OrderedRuns, Way::Runs];

enum Embedded {
    Symbols(Vec<u32>),
    Set(Vec<u64>),
}

impl Embedded {
    fn item(&self) -> Item<'_> {
        match self {
            Embedded::Symbols(symbols) => Item::Symbols(Symbols::Wide(symbols)),
            Embedded::Set(set) => Item::Set(set),
        }
    }
}

/// Mixes a number (SplitMix64).
fn mixed(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Way {
    fn name(self) -> String {
        match self {
            Way::Walks(walks) => format!("{walks} random walks"),
            Way::OrderedRuns => format!("{SAMPLES} pairs of runs in order"),
            Way::Runs => format!("the set of runs of {RUN}"),
        }
    }

    fn metric(self) -> Metric {
        match self {
            Way::Walks(walks) => Metric::Symbols { length: (walks * 2 * LENGTH) as u32 },
            Way::OrderedRuns => Metric::Symbols { length: SAMPLES as u32 },
            Way::Runs => Metric::Jaccard { shingling: Shingling::default() },
        }
    }

    fn embed(self, string: &[u8]) -> Embedded {
        match self {
            Way::Walks(walks) => Embedded::Symbols((0..walks as u64).flat_map(|walk| walked(string, walk)).collect()),
            Way::OrderedRuns => {
                let runs = runs(string);
                Embedded::Symbols((0..SAMPLES as u64).map(|draw| ordered(&runs, draw)).collect())
            }
            Way::Runs => Embedded::Set(runs(string)),
        }
    }
}

/// What a walk reads that stays where it is, or goes on, by the toss of a coin for each step and letter.
fn walked(string: &[u8], walk: u64) -> impl Iterator<Item = u32> {
    let mut at = 0;
    (0..2 * LENGTH as u64).map(move |step| {
        let Some(&letter) = string.get(at) else { return LETTERS as u32 };
        at += (mixed(walk << 48 | step << 8 | u64::from(letter)) & 1) as usize;
        letter.into()
    })
}

/// Hashes of all runs; one that repeats counts as another each time.
fn runs(string: &[u8]) -> Vec<u64> {
    let mut times = std::collections::HashMap::<u64, u64>::new();
    let runs = string.windows(RUN).map(|run| {
        let number = run.iter().fold(1, |number, &letter| number << 2 | u64::from(letter));
        let times = times.entry(number).or_default();
        *times += 1;
        mixed(number << 8 | *times)
    });
    runs.collect()
}

/// The two runs with the smallest hashes of a draw, in their order.
fn ordered(runs: &[u64], draw: u64) -> u32 {
    let salt = mixed(draw);
    let mut least = [(u64::MAX, 0); 2];
    for (place, &run) in runs.iter().enumerate() {
        let hash = (run ^ salt).wrapping_mul(0xd6e8_feb8_6659_fd93);
        if hash < least[0].0 {
            least = [(hash, place), least[0]];
        } else if hash < least[1].0 {
            least[1] = (hash, place);
        }
    }
    least.sort_unstable_by_key(|&(_, place)| place);
    mixed(least[0].0 ^ least[1].0.rotate_left(32)) as u32
}

fn random(rng: &mut Rng) -> Vec<u8> {
    (0..LENGTH).map(|_| rng.below(LETTERS) as u8).collect()
}

/// A string with so many letters inserted, deleted or replaced.
fn edited(string: &[u8], edits: usize, rng: &mut Rng) -> Vec<u8> {
    let mut string = string.to_vec();
    for _ in 0..edits {
        let at = rng.below(string.len() as u64) as usize;
        match rng.below(3) {
            0 => string.insert(at, rng.below(LETTERS) as u8),
            1 => drop(string.remove(at)),
            _ => string[at] = (string[at] + 1 + rng.below(LETTERS - 1) as u8) % LETTERS as u8,
        }
    }
    string
}

/// Whether any string is within so many edits: compared with every one.
fn is_near_any(strings: &[Vec<u8>], query: &[u8], edits: usize) -> bool {
    let mut pattern = Pattern::default();
    pattern.set(Chars::Narrow(query));
    strings.iter().any(|string| pattern.within(Chars::Narrow(string), edits).is_some())
}

/// A filter planned from sampled pairs, and how far apart these are after embedding.
struct Planned {
    way: Way,
    near: Distance,
    /// `None` where near and far pairs lie too close together for any filter.
    spec: Option<Spec>,
}

fn planned(way: Way, edits: [usize; 2], items: u64, samples: usize) -> anyhow::Result<Planned> {
    let metric = way.metric();
    // Other strings than those that are measured.
    let mut rng = Rng::new(Seed::new(61));
    let mut between = |edits: Option<usize>| -> anyhow::Result<Vec<Distance>> {
        let mut distances = Vec::new();
        for _ in 0..samples {
            let string = random(&mut rng);
            let other = match edits {
                Some(edits) => edited(&string, edits, &mut rng),
                None => random(&mut rng),
            };
            distances.push(metric.between(way.embed(&string).item(), way.embed(&other).item())?);
        }
        distances.sort_by(|a, b| a.value().total_cmp(&b.value()));
        Ok(distances)
    };
    let [near, far] = [between(Some(edits[0]))?, between(Some(edits[1]))?];
    let near = near[((1.0 - LOST) * samples as f64) as usize];
    let far = far[(LOST * samples as f64) as usize];
    let mut request = Request::new(metric, metric.own_unit(near))
        .far(metric.own_unit(far))
        .capacity(items)
        .errors(LOST, LOST)
        .when_full(nearset::spec::WhenFull::Refuse);
    request.far_model = Background::from_distances(between(None)?).map(FarModel::Measured);
    let spec = match request.plan_filter() {
        _ if far <= near => None,
        Err(PlanError::Impossible { .. }) => None,
        Err(PlanError::LargerThanItems { plan, .. }) => Some(sizes::bands_of(&plan)?),
        plan => Some(sizes::bands_of(&plan?)?),
    };
    Ok(Planned { way, near, spec })
}

/// What came of a filter.
#[derive(Default, Clone, Copy)]
struct Found {
    near: Rate,
    far: Rate,
    unrelated: Rate,
}

/// Measures, and answers the question.
pub fn run(run: &mut Run) -> anyhow::Result<()> {
    let (items, runs, queries, samples) = run.full_or_quick((1_000, 10, 400, 2_000), (200, 2, 100, 400));
    let mut table = Table::new([
        "near: edits",
        "a string becomes",
        "near, embedded",
        "l'",
        "k",
        "bits per string",
        "of near found",
        "fp, 80 edits",
        "fp, unrelated",
        "queries per second",
        "times all compared",
        "queries each",
    ]);
    let mut told = Vec::new();
    for fraction in NEAR {
        run.progress(format!("strings within {fraction} in edit distance"));
        let at = |fraction: f64| (fraction * LENGTH as f64).round() as usize;
        let edits = [at(fraction), at(FAR)];
        let filters = in_parallel(&WAYS, |&way| planned(way, edits, items, samples));
        let filters = filters.into_iter().collect::<anyhow::Result<Vec<_>>>()?;
        let seeds: Vec<u64> = (0..runs).collect();
        let parts = in_parallel(&seeds, |&seed| one_run(&filters, items, edits, queries, Seed::new(seed)));
        let parts = parts.into_iter().collect::<anyhow::Result<Vec<_>>>()?;
        let speeds = speeds(&filters, items, edits)?;
        let mut best: Option<(f64, String)> = None;
        for (i, Planned { way, near, spec }) in filters.iter().enumerate() {
            let own = way.metric().own_unit(*near);
            let embedded = match way.metric().shape().length {
                Some(length) => format!("{own} of {length}"),
                None => significant(own, 3),
            };
            let Some(spec) = spec else {
                let mut cells = vec![edits[0].to_string(), way.name(), embedded];
                cells.resize(12, "-".to_owned());
                table.row(cells);
                continue;
            };
            let found = parts.iter().map(|part| part[i]).fold(Found::default(), |a, b| Found {
                near: a.near + b.near,
                far: a.far + b.far,
                unrelated: a.unrelated + b.unrelated,
            });
            let bits = 8.0 * spec.bytes() as f64 / items as f64;
            let kept = |rate: Rate| rate.value() <= PROMISE || rate.sigmas_from(PROMISE) <= 4.5;
            run.require(
                kept(found.near.miss()) && kept(found.far) && kept(found.unrelated),
                format!(
                    "{}: {} of near ones missed, {} and {} of others accepted",
                    way.name(),
                    found.near.miss().value(),
                    found.far.value(),
                    found.unrelated.value()
                ),
            );
            table.row([
                edits[0].to_string(),
                way.name(),
                embedded,
                spec.rows.to_string(),
                spec.layout().bands.to_string(),
                significant(bits, 3),
                significant(found.near.value(), 3),
                significant(found.far.value(), 2),
                significant(found.unrelated.value(), 2),
                count(speeds[i + 1]),
                significant(speeds[i + 1] / speeds[0], 2),
                count(found.near.of as f64),
            ]);
            if best.as_ref().is_none_or(|(least, _)| bits < *least) {
                let words = format!(
                    "{} edits: {}, {} bits, {} of near ones found, fp {} at {} edits",
                    edits[0],
                    way.name(),
                    significant(bits, 3),
                    significant(found.near.value(), 3),
                    significant(found.far.value(), 2),
                    edits[1]
                );
                best = Some((bits, words));
            }
        }
        told.extend(best.map(|(_, words)| words));
    }
    run.table("edits", &table)?;
    run.verdict(
        ("Section 5; Section 1", "question 4: can closeness in edit distance be handled?"),
        "edits.tsv",
        "open; no good locality-sensitive hash is known, and reductions to Hamming distance are hoped for",
        &format!("{} strings of {LENGTH} letters of {LETTERS}, the fewest bits: {}", count(items as f64), told.join("; ")),
        Outcome::Beyond("yes, over an embedding, but by measured distances and not by a proof: what is near after embedding is where all but .5 % of sampled near pairs lie, so the promise holds for strings like those, and edits that fall otherwise, such as all in one place, are another law. Within few edits and for strings that are kept, an index that misses none (`nearset pairs` and `search --metric edit`) needs no such promise".into()),
    );
    Ok(())
}

fn filled(planned: &Planned, strings: &[Vec<u8>], seed: Seed) -> anyhow::Result<Option<Filter<'static>>> {
    let Some(mut spec) = planned.spec.clone() else { return Ok(None) };
    spec.seed = seed.derive("filter", 0);
    let (mut filter, mut room) = (Filter::new(&spec.into())?, Hashed::default());
    for string in strings {
        filter.insert(planned.way.embed(string).item(), &mut room)?;
    }
    Ok(Some(filter))
}

fn one_run(
    filters: &[Planned],
    items: u64,
    edits: [usize; 2],
    queries: usize,
    seed: Seed,
) -> anyhow::Result<Vec<Found>> {
    let mut rng = Rng::new(seed.derive("letters", 0));
    let strings: Vec<Vec<u8>> = (0..items).map(|_| random(&mut rng)).collect();
    let mut near_one = |edits: usize| edited(&strings[rng.below(items) as usize], edits, &mut rng);
    let near: Vec<Vec<u8>> = (0..queries).map(|_| near_one(edits[0])).collect();
    // Edits may undo each other, so all strings are asked whether one is that near.
    let far: Vec<Vec<u8>> = (0..queries).map(|_| near_one(edits[1])).collect();
    let unrelated: Vec<Vec<u8>> = (0..queries).map(|_| random(&mut rng)).collect();
    anyhow::ensure!(near.iter().all(|query| is_near_any(&strings, query, edits[0])), "a near query is near none");
    let others = far.iter().chain(&unrelated);
    anyhow::ensure!(others.clone().all(|query| !is_near_any(&strings, query, edits[0])), "a far query is near one");
    let mut room = Hashed::default();
    let mut found = Vec::new();
    for planned in filters {
        let Some(filter) = filled(planned, &strings, seed)? else {
            found.push(Found::default());
            continue;
        };
        let mut rate = |queries: &[Vec<u8>]| -> anyhow::Result<Rate> {
            let answers = queries.iter().map(|query| filter.contains_near(planned.way.embed(query).item(), &mut room));
            Ok(Rate::count(answers.collect::<Result<Vec<bool>, _>>()?))
        };
        found.push(Found { near: rate(&near)?, far: rate(&far)?, unrelated: rate(&unrelated)? });
    }
    Ok(found)
}

/// Returns queries per second on one thread, half of them near and half unrelated: all strings compared, and then each filter's, embedding included;
/// those of comparing all where there is no filter.
fn speeds(filters: &[Planned], items: u64, edits: [usize; 2]) -> anyhow::Result<Vec<f64>> {
    let mut rng = Rng::new(Seed::new(62));
    let strings: Vec<Vec<u8>> = (0..items).map(|_| random(&mut rng)).collect();
    let mut query = |i: u64| match i % 2 {
        0 => edited(&strings[rng.below(items) as usize], edits[0], &mut rng),
        _ => random(&mut rng),
    };
    let queries: Vec<Vec<u8>> = (0..40).map(&mut query).collect();
    let mut tasks = vec![None];
    for planned in filters {
        let filter = filled(planned, &strings, Seed::new(63))?;
        tasks.push(filter.map(|filter| (planned.way, filter, Hashed::default())));
    }
    let least = least_seconds(15, &mut tasks, |task| {
        for query in &queries {
            black_box(match task {
                None => is_near_any(&strings, query, edits[0]),
                Some((way, filter, room)) => filter.contains_near(way.embed(query).item(), room)?,
            });
        }
        Ok(())
    })?;
    Ok(least.into_iter().map(|seconds| queries.len() as f64 / seconds).collect())
}
