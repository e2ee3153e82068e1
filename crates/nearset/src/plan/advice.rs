//! What does the job without a filter: comparing everything, or an index.
//!
//! Sizes are exact for the layouts named; times are at the rates stated and serve as orders of magnitude.

use std::fmt;

use nearset_theory::{binomial, zero_fn::Pigeonhole};

use super::{Structure, outcome::significant, request::Goal};
use crate::family::Form;

/// A way to answer without a filter.
#[derive(Debug, Clone, PartialEq)]
pub struct Advice {
    /// Which.
    pub structure: Structure,
    /// Memory for one item, the item itself included where it is kept.
    pub bits_per_item: f64,
    /// Seconds that a query takes on one core.
    pub seconds_per_query: f64,
    /// Its parameter: blocks of an index, bits of a sketch.
    pub parameter: Option<u32>,
}

/// An index: "an index of 12 blocks (1714 bits per item, about 65 µs per query)".
impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match (self.structure, self.parameter) {
            (Structure::MultiIndex, Some(blocks)) => format!("an index of {blocks} blocks"),
            (Structure::SketchScan, Some(bits)) => format!("a scan of {bits}-bit sketches"),
            _ => "a scan of the items".into(),
        };
        let bits = significant(self.bits_per_item);
        write!(f, "{what} ({bits} bits per item, about {} per query)", seconds(self.seconds_per_query))
    }
}

fn seconds(value: f64) -> String {
    match value {
        value if value < 1e-3 => format!("{} µs", significant(1e6 * value)),
        value if value < 1.0 => format!("{} ms", significant(1e3 * value)),
        value => format!("{} s", significant(value)),
    }
}

/// Bytes that one core compares in a second.
const SCANNED_PER_SECOND: f64 = 1e10;

/// Seconds of one look-up in an index: a cache line of offsets, and one for each item that it leads to.
const LOOK_UP: f64 = 2e-8;

/// What answers a goal without a filter, smallest first.
pub(super) fn advise(goal: &Goal) -> Vec<Advice> {
    let items = goal.capacity as f64;
    let scan = |structure, bits: f64, parameter| Advice {
        structure,
        bits_per_item: bits,
        seconds_per_query: bits / 8.0 * items / SCANNED_PER_SECOND,
        parameter,
    };
    let mut advice = Vec::new();
    if let Some(bits) = goal.metric.bits_of_an_item() {
        advice.push(scan(Structure::Scan, bits, None));
    }
    if let Form::Bits(bits) = goal.metric.form() {
        advice.extend(multi_index(bits, goal.near.value() as u32, goal.capacity));
    }
    if let Some(bits) = sketch_bits(goal) {
        advice.push(scan(Structure::SketchScan, f64::from(bits), Some(bits)));
    }
    advice.sort_by(|a, b| a.bits_per_item.total_cmp(&b.bits_per_item));
    advice
}

/// An index of more blocks than this is no index.
const MOST_BLOCKS: u32 = 128;

/// Blocks of more bits than this have more values than any index has items.
const MOST_BLOCK_BITS: u32 = 44;

/// The index with the fewest look-ups: the items, and for each block an offset for every value and an id for every item.
fn multi_index(length: u32, radius: u32, capacity: u64) -> Option<Advice> {
    const WORD: f64 = 32.0;
    let items = capacity as f64;
    let word = if capacity < 1 << 32 { WORD } else { 2.0 * WORD };
    let of = |blocks: u32| {
        // An offset for every value of a block is an array as long as there are values.
        if length / blocks > MOST_BLOCK_BITS {
            return None;
        }
        let index = Pigeonhole::new(length, radius, blocks)?;
        let offsets: f64 = index.blocks().map(|(length, _)| libm::exp2(f64::from(length))).sum();
        let bits = f64::from(length) + word * (f64::from(blocks) + offsets / items);
        let work = index.probes() + index.chance_matches(items);
        (offsets < 64.0 * items.max(1024.0)).then_some((work, bits, blocks))
    };
    let (work, bits, blocks) = (1..=(radius + 1).min(MOST_BLOCKS)).filter_map(of).min_by(|a, b| a.0.total_cmp(&b.0))?;
    Some(Advice {
        structure: Structure::MultiIndex,
        bits_per_item: bits,
        seconds_per_query: work * LOOK_UP,
        parameter: Some(blocks),
    })
}

/// The fewest one-bit functions whose number of agreements tells near from far, with every item at far: hyperplanes for
/// the angle, single bits of MinHash values for sets.
fn sketch_bits(goal: &Goal) -> Option<u32> {
    const MOST: u32 = 1 << 13;
    let family = goal.metric.any_family();
    let (near, far) = (family.bit_agreement(goal.near)?, family.bit_agreement(goal.far)?);
    let keeps = |bits: u32| {
        let threshold = binomial::largest_threshold(bits, near, goal.max_false_negative);
        binomial::at_least(bits, far, threshold) * goal.capacity as f64 <= goal.max_false_positive
    };
    if goal.max_false_negative == 0.0 || !keeps(MOST) {
        return None;
    }
    let (mut low, mut high) = (0, MOST);
    while high - low > 1 {
        let middle = (low + high) / 2;
        if keeps(middle) { high = middle } else { low = middle }
    }
    Some(high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Metric, plan::Request};

    #[test]
    fn perceptual_hashes_are_indexed_in_1714_bits() {
        let advice = Request::new(Metric::Hamming { bits: 256 }, 31.0).far(90.0).capacity(1_000_000).advise();
        assert_eq!((advice[0].structure, advice[0].bits_per_item), (Structure::Scan, 256.0));
        let index = &advice[1];
        assert_eq!(index.structure, Structure::MultiIndex);
        // As measured: 12 blocks at a million items, 15,300 queries per second.
        assert_eq!((index.parameter, index.bits_per_item.round()), (Some(12), 1714.0));
        assert!(index.seconds_per_query > 2e-5 && index.seconds_per_query < 2e-4, "{}", index.seconds_per_query);
    }

    #[test]
    fn sketches_for_cosines_are_as_long_as_measured() {
        // For a .95 / .7 gap between 77 bits, by the laxest promises, and some 400 among a million items.
        let request = Request::new(Metric::Angle { dimension: 384 }, 0.95);
        let bits = |far, capacity| sketch_bits(&request.clone().far(far).capacity(capacity).filter_goal().unwrap());
        let (few, many) = (bits(0.7, 1).unwrap(), bits(0.7, 1_000_000).unwrap());
        assert!(few >= 77 && many <= 420, "{few} {many}");
        assert_eq!(bits(0.946, 1_000_000_000), None);
    }
}
