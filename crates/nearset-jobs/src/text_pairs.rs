//! Near pairs of texts that are in memory, found as [`Pairs`](crate::join::Pairs) finds those of files.
//!
//! Limit: all shingle sets are held, 8 bytes per shingle.

use std::convert::Infallible;

use nearset::JoinSpec;
use nearset::index::{CommonShingles, NearPairs, ShingleKeys};
use nearset::item::SortedSet;

/// Calls `pair` for every near pair, the earlier text first, in the order of the later one. Copies beyond
/// [`NearPairs::MOST_COPIES`] are paired with those only.
pub fn text_pairs(spec: &JoinSpec, sets: &[SortedSet], mut pair: impl FnMut(usize, usize, f64)) {
    let model = CommonShingles::of_sample(sets.iter().map(SortedSet::as_slice), sets.len());
    let (mut pairs, mut keys, mut entries) = (NearPairs::new(spec), ShingleKeys::default(), Vec::new());
    for (later, set) in sets.iter().enumerate() {
        keys.choose(set.as_slice(), &model, spec);
        let compare = |entry: u32| {
            let other: &SortedSet = entries[entry as usize];
            Ok::<_, Infallible>(spec.similarity_at_least(set.as_slice(), other.as_slice(), spec.near))
        };
        let Ok((entry, near)) = pairs.add(&keys, compare);
        near.iter().for_each(|&(earlier, similarity)| pair(earlier as usize, later, similarity.value()));
        if entry.is_some() {
            entries.push(set);
        }
    }
}
