//! Pairs of sets of a given Jaccard similarity, and how often a filter that holds one accepts the other.

use nearset::{Filter, Rng, Seed, Spec, family::Hashed, item::Item};

use crate::rate::{Rate, in_parallel};

/// The number of elements in a pair's union, so that every multiple of .05 is a similarity. There are many more
/// elements than functions, because a one-pass signature fills its slots without replacement: over few elements slots
/// are not independent, and curves are a little steeper than the formulas.
const UNION: usize = 4_000;

/// Makes two sets of this Jaccard similarity, to a 2,000th.
fn pair(similarity: f64, rng: &mut Rng) -> [Vec<u64>; 2] {
    let common = (similarity * UNION as f64).round() as usize;
    let own = (UNION - common) / 2;
    let shared: Vec<u64> = (0..common).map(|_| rng.next_u64()).collect();
    [(); 2].map(|()| shared.iter().copied().chain((0..own).map(|_| rng.next_u64())).collect())
}

/// Measures how often filters of this spec accept a set at each similarity from one that they hold: there are `filters`
/// of them, each with its own functions and `pairs` pairs at each similarity.
pub fn acceptance(spec: &Spec, similarities: &[f64], filters: u64, pairs: usize) -> anyhow::Result<Vec<Rate>> {
    let seeds: Vec<u64> = (0..filters).collect();
    let parts = in_parallel(&seeds, |&seed| -> anyhow::Result<Vec<Rate>> {
        let seed = Seed::new(seed);
        let mut rng = Rng::new(seed.derive("sets", 0));
        let mut spec = spec.clone();
        spec.seed = seed;
        let (mut filter, mut room) = (Filter::new(&spec.into())?, Hashed::default());
        let mut queries = Vec::new();
        for &similarity in similarities {
            let mut of_similarity = Vec::new();
            for _ in 0..pairs {
                let [stored, query] = pair(similarity, &mut rng);
                filter.insert(Item::Set(&stored), &mut room)?;
                of_similarity.push(query);
            }
            queries.push(of_similarity);
        }
        let answers = queries.iter().map(|queries| filter.contains_all(queries.iter().map(|query| Item::Set(query))));
        answers.map(|answers| Ok(Rate::count(answers?))).collect()
    });
    let parts = parts.into_iter().collect::<anyhow::Result<Vec<_>>>()?;
    Ok((0..similarities.len()).map(|i| parts.iter().map(|part| part[i]).sum()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_have_their_similarity() {
        let mut rng = Rng::new(Seed::new(1));
        for similarity in [0.0, 0.05, 0.2, 0.5, 0.95, 1.0] {
            let [a, b] = pair(similarity, &mut rng).map(nearset::item::SortedSet::from);
            assert_eq!(a.jaccard(&b).value(), similarity);
        }
    }
}
