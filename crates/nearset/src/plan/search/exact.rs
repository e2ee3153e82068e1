//! Structures for Hamming distance over whole strings: pigeonhole blocks and covering masks, which lose nothing within the
//! radius, and the scan of samples, which may.
//!
//! Their false positives have two parts: blocks or masks that really agree with a far item, or with anything else that is
//! in, which no table removes, and chance hits, which its size does. So for each number of blocks the tables get what the
//! first part leaves. A scan has no tables, and looks at every item: it is only planned while that is little work.

use nearset_theory::{
    bloom::lines_false_positive,
    zero_fn::{Pigeonhole, ball, covering_acceptance, covering_masks, prefix_acceptance},
};

use super::{Attempt, Candidate, Failure, Objective, model::Model, reason};
use crate::{
    BloomFilter, Distance, ExactSpec, Table,
    error::MOST_DIRECT_ROWS,
    family::BitSampling,
    plan::{FarModel, Goal, Structure, Work},
    spec::{Construction, GenerationSpec},
};

/// A filter whose query looks up more keys than this is no constant-probe filter.
const MOST_PROBES: f64 = 1e4;

/// More blocks than this cost more than any filter is worth.
const MOST_BLOCKS: u32 = 40;

/// What a block accepts takes `bits x far` steps to work out; strings longer than this have better filters anyway.
const MOST_STEPS: f64 = 4e5;

/// A scan is planned only while a query compares at most so many words of 64 bits, some 20 µs on one core: beyond it a
/// filter that looks at a constant number of places is worth its bits.
pub(super) const MOST_SCANNED_WORDS: f64 = 65_536.0;

/// Samples of more bits than this are no sketches any more.
const MOST_SAMPLED_BITS: u32 = 4096;

/// The narrowest samples that keep both promises.
pub(super) fn sampled_scan(goal: &Goal, bits: u32) -> Attempt {
    let radius = goal.near.value() as u32;
    let widths = (64..=MOST_SAMPLED_BITS.min(bits.saturating_sub(1) / 64 * 64)).step_by(64);
    let found = widths.filter_map(|width| sample(goal, bits, radius, width)).next();
    let outcome = found.ok_or_else(|| reason(goal, Structure::SketchScan, Failure::Nothing)).and_then(|found| {
        let words = found.bits / 64.0;
        match words <= MOST_SCANNED_WORDS {
            true if goal.grows => Err("a query compares all items, and this filter may come to hold more than its capacity".to_owned()),
            true => Ok(found),
            false => Err(format!(
                "{:.0} bits per item, but a query compares {words:.0} words, and a scan is planned up to {MOST_SCANNED_WORDS}",
                found.bits / goal.capacity as f64
            )),
        }
    });
    Attempt { structure: Structure::SketchScan, family: "sampled bits", outcome }
}

/// Samples of so many bits, if some number of differences tells near from far.
fn sample(goal: &Goal, bits: u32, radius: u32, width: u32) -> Option<Candidate> {
    let missed = |within: u32| 1.0 - prefix_acceptance(bits, width, radius, within);
    let (mut low, mut high) = (0, width - 1);
    if missed(high) > goal.max_false_negative {
        return None;
    }
    while low < high {
        let middle = low.midpoint(high);
        if missed(middle) <= goal.max_false_negative { high = middle } else { low = middle + 1 }
    }
    let spec =
        ExactSpec { bits, radius, seed: goal.seed, construction: Construction::SampledScan { width, within: high } };
    spec.check_possible().ok()?;
    let false_positive = predicted(goal, &spec).0(goal.far, true);
    let words = f64::from(width / 64) * goal.capacity as f64;
    // Lines are read one after the other, which takes about a step for each of a line's eight words.
    let steps = words + f64::from(width);
    let work = Work { cache_lines: (words / 8.0).ceil(), hash_evaluations: f64::from(width), steps };
    let found = Candidate {
        structure: Structure::SketchScan,
        spec: GenerationSpec::Exact(spec),
        bits: f64::from(width) * goal.capacity as f64,
        work,
        false_negative: missed(high),
        false_positive,
    };
    (false_positive <= goal.max_false_positive).then_some(found)
}

pub(super) fn attempts(goal: &Goal, bits: u32, objective: &Objective) -> Vec<Attempt> {
    let radius = goal.near.value() as u32;
    let most = if f64::from(bits) * goal.far.value() > MOST_STEPS { 0 } else { MOST_BLOCKS };
    let blocks = (1..=most.min(radius + 1).min(bits)).flat_map(|blocks| pigeonholes(goal, bits, radius, blocks));
    let masks = if radius <= 6 { covering(goal, bits, radius) } else { None };
    let best = |structure, found: Option<Candidate>| Attempt {
        structure,
        family: "whole strings",
        outcome: found.ok_or_else(|| reason(goal, structure, Failure::Nothing)),
    };
    vec![best(Structure::Pigeonhole, blocks.min_by(|a, b| objective.compare(a, b))), best(Structure::Covering, masks)]
}

/// How likely a query is accepted, by what really agrees and by chance hits of the tables.
struct Acceptance {
    /// Of the item that the query is compared with, by distance and chance hit of a key.
    one: Box<dyn Fn(u32, f64) -> f64>,
    /// By any of all others.
    crowd: f64,
}

impl Acceptance {
    fn of(goal: &Goal, spec: &ExactSpec) -> Self {
        let ExactSpec { bits, radius, construction, .. } = *spec;
        let one: Box<dyn Fn(u32, f64) -> f64> = match construction {
            Construction::Pigeonhole { blocks, .. } => {
                let cut = Pigeonhole::new(bits, radius, blocks).expect("a checked spec");
                Box::new(move |distance, chance| {
                    let hit = |(length, radius)| -libm::expm1(ball(length, radius) * libm::log1p(-chance));
                    cut.acceptance(distance, &cut.blocks().map(hit).collect::<Vec<_>>())
                })
            }
            Construction::SampledScan { width, within } => {
                Box::new(move |distance, _| prefix_acceptance(bits, width, distance.min(bits), within))
            }
            _ => Box::new(move |distance, chance| {
                let no_chance = libm::exp(covering_masks(radius) * libm::log1p(-chance));
                1.0 - (1.0 - covering_acceptance(radius, distance)) * no_chance
            }),
        };
        let crowd = match (construction, &goal.far_model) {
            (Construction::Pigeonhole { blocks, .. }, FarModel::Random) => {
                let cut = Pigeonhole::new(bits, radius, blocks).expect("a checked spec");
                -libm::expm1(-cut.chance_matches((goal.capacity - 1) as f64))
            }
            _ => {
                let model = Model::new(goal, BitSampling::new(bits).into());
                model.any_of_crowd_by(|distance| one(distance.value() as u32, 0.0))
            }
        };
        Self { one, crowd }
    }

    fn at(&self, distance: Distance, chance: f64, crowded: bool) -> f64 {
        let alone = (self.one)(distance.value() as u32, chance);
        if crowded { 1.0 - (1.0 - alone) * (1.0 - self.crowd) } else { alone }
    }
}

/// How likely a query at some distance is accepted, with the one item alone and at capacity, and the chance hit of a key.
pub(super) fn predicted(goal: &Goal, spec: &ExactSpec) -> (impl Fn(Distance, bool) -> f64 + use<>, f64) {
    let chance = match spec.construction.table() {
        Some(Table::Lines { lines, hashes }) => lines_false_positive(goal.capacity, lines, hashes),
        _ => 0.0,
    };
    let acceptance = Acceptance::of(goal, spec);
    (move |distance, full| acceptance.at(distance, if full { chance } else { 0.0 }, full), chance)
}

/// Blocks in direct tables and in Bloom tables, as far as they keep the false positives.
fn pigeonholes(goal: &Goal, bits: u32, radius: u32, blocks: u32) -> Vec<Candidate> {
    let Some(cut) = Pigeonhole::new(bits, radius, blocks).filter(|cut| cut.probes() <= MOST_PROBES) else {
        return Vec::new();
    };
    let spec =
        |table| ExactSpec { bits, radius, seed: goal.seed, construction: Construction::Pigeonhole { blocks, table } };
    let candidate = |spec, size| candidate(goal, Structure::Pigeonhole, spec, size, cut.probes(), blocks);
    let direct = cut
        .blocks()
        .all(|(length, _)| length <= MOST_DIRECT_ROWS)
        .then(|| candidate(spec(Table::Direct), cut.blocks().map(|(length, _)| libm::exp2(f64::from(length))).sum()));
    let hashed = lines(goal, &spec(Table::Direct), cut.probes()).and_then(|(lines, hashes)| {
        candidate(spec(Table::Lines { lines, hashes }), 512.0 * lines as f64 * f64::from(blocks))
    });
    direct.flatten().into_iter().chain(hashed).collect()
}

fn covering(goal: &Goal, bits: u32, radius: u32) -> Option<Candidate> {
    let spec = |table| ExactSpec { bits, radius, seed: goal.seed, construction: Construction::Covering { table } };
    let masks = covering_masks(radius);
    let (lines, hashes) = lines(goal, &spec(Table::Direct), masks)?;
    let spec = spec(Table::Lines { lines, hashes });
    candidate(goal, Structure::Covering, spec, 512.0 * lines as f64 * masks, masks, masks as u32)
}

/// Lines and bits per key of tables whose chance hits, over all keys that a query looks up, fit into what agreement leaves of
/// the false positives.
fn lines(goal: &Goal, spec: &ExactSpec, probes: f64) -> Option<(u64, u32)> {
    let left = goal.max_false_positive - Acceptance::of(goal, spec).at(goal.far, 0.0, true);
    BloomFilter::planned(goal.capacity, (left / probes).min(0.5)).ok()
}

fn candidate(
    goal: &Goal,
    structure: Structure,
    spec: ExactSpec,
    bits: f64,
    probes: f64,
    keys: u32,
) -> Option<Candidate> {
    spec.check_possible().ok()?;
    let false_positive = predicted(goal, &spec).0(goal.far, true);
    let hash_evaluations = f64::from(keys);
    let work = Work { cache_lines: probes, hash_evaluations, steps: Work::LINE * probes + f64::from(spec.bits) };
    let spec = GenerationSpec::Exact(spec);
    let found = Candidate { structure, spec, bits, work, false_negative: 0.0, false_positive };
    (false_positive <= goal.max_false_positive).then_some(found)
}
