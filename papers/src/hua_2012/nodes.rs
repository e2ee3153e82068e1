//! One filter per node, as the paper ran it on 30 nodes: summaries merged, or kept apart.
//!
//! Every node stores its share of the records and tells the others about it by a filter. *Merged*: all filters have one
//! spec, sized for all records; a node keeps the OR of them. *Apart*: each is sized for a node's share; a node keeps
//! them all and queries each.
//! Claim: merged summaries answer bit for bit like one filter of all records (the OR law). Kept apart they take the
//! same space, but a query goes to all of them, and their false positives add up: `1 - (1-f)^N`.
//!
//! Traffic of one exchange, all nodes together: N - 1 copies of each node's filter if they are kept apart. If they are
//! merged, a ring first adds the filters up and then passes the sum round, each node sending `2 (N-1)/N` filters.

use nearset::{Filter, FilterSpec, Rng, Seed, Spec, Table, family::Hashed};

use super::{filters, points::Point};
use crate::rate::Rate;

/// The performance of summaries over `nodes` nodes.
pub struct Nodes {
    pub nodes: usize,
    /// Whether the merged filter has the bytes of one filter of all records.
    pub equal: bool,
    /// Far queries accepted by the merged filter, and by any of the filters kept apart.
    pub merged: Rate,
    pub apart: Rate,
    /// Near queries missed by each.
    pub merged_missed: Rate,
    pub apart_missed: Rate,
    /// Bytes that a node keeps.
    pub merged_bytes: u64,
    pub apart_bytes: u64,
    /// Bytes that all nodes together send in one exchange.
    pub merged_traffic: u64,
    pub apart_traffic: u64,
}

/// Returns a filter of the paper's basic kind for `records` records: 7 functions of 10 hashes with buckets of this
/// width. Verification would leave too few false positives to compare.
fn summary<const D: usize>(width: f64, records: usize, seed: Seed) -> anyhow::Result<Spec> {
    let mut spec = filters::half_full::<D>(width, records, seed)?;
    (spec.verification, spec.probing) = (None, None);
    Ok(spec)
}

/// Distributes the records over nodes, and measures the answers to near and far queries.
pub fn distribute<const D: usize>(
    stored: &[Point<D>],
    (near, far): (&[Point<D>], &[Point<D>]),
    nodes: usize,
    width: f64,
    seed: Seed,
) -> anyhow::Result<Nodes> {
    let filled = |records: &mut dyn Iterator<Item = &Point<D>>, spec: Spec| -> anyhow::Result<Filter<'static>> {
        let mut filter = Filter::new(&spec.into())?;
        let records: Vec<Point<D>> = records.copied().collect();
        filters::insert_all(&mut filter, &records);
        Ok(filter)
    };
    let whole = summary::<D>(width, stored.len(), seed)?;
    let central = filled(&mut stored.iter(), whole.clone())?;
    let mut merged = Filter::new(&whole.clone().into())?;
    let (share, mut apart) = (summary::<D>(width, stored.len().div_ceil(nodes), seed)?, Vec::new());
    for node in 0..nodes {
        let own = || stored.iter().skip(node).step_by(nodes);
        merged.merge(&filled(&mut own(), whole.clone())?)?;
        apart.push(filled(&mut own(), share.clone())?);
    }
    let ask = |queries: &[Point<D>], filters: &[Filter<'static>]| -> anyhow::Result<Rate> {
        let mut yes = Vec::new();
        for query in queries {
            let mut any = false;
            for filter in filters {
                any |= filter.contains_near(query.as_slice(), &mut Hashed::default())?;
            }
            yes.push(any);
        }
        Ok(Rate::count(yes))
    };
    let equal = bytes(&merged)? == bytes(&central)?;
    let merged = [merged];
    let count = nodes as u64;
    Ok(Nodes {
        nodes,
        equal,
        merged: ask(far, &merged)?,
        apart: ask(far, &apart)?,
        merged_missed: ask(near, &merged)?.miss(),
        apart_missed: ask(near, &apart)?.miss(),
        merged_bytes: whole.bytes(),
        apart_bytes: count * share.bytes(),
        merged_traffic: 2 * (count - 1) * whole.bytes(),
        apart_traffic: count * (count - 1) * share.bytes(),
    })
}

fn bytes(filter: &Filter<'_>) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    filter.encode(&mut bytes)?;
    Ok(bytes)
}

/// Misses of records that arrived after the last exchange.
pub struct Staleness {
    /// The number of records of all nodes between two exchanges.
    pub lag: usize,
    /// Queries for recent records that the queried node answers with no, although a filter of all records would say
    /// yes.
    pub missed: Rate,
    /// The same, calculated: on average half of the lag has arrived since the exchange, all but 1/N of it at other
    /// nodes.
    pub expected: f64,
    /// Bytes that all nodes together send per record.
    pub traffic_per_record: f64,
}

/// Records arrive at all nodes in turn; now and then a random node is queried for one of the `recent` newest. Summaries
/// are exchanged after every `lag` records.
pub fn staleness<const D: usize>(
    stored: &[Point<D>],
    nodes: usize,
    recent: usize,
    lag: usize,
    (width, queries): (f64, usize),
    seed: Seed,
) -> anyhow::Result<Staleness> {
    // Before the first query, all nodes know as many records as count as recent.
    let spec = summary::<D>(width, stored.len(), seed)?;
    let mut rng = Rng::new(seed.derive("staleness", lag as u64));
    let whole = FilterSpec::from(spec.clone());
    let (mut fresh, mut exchanged) = (Filter::new(&whole)?, Filter::new(&whole)?);
    let mut of_node = spec.clone();
    of_node.table = Table::Bits(64 * lag.max(1) as u64);
    let of_node = FilterSpec::from(of_node);
    let mut local = vec![Filter::new(&of_node)?; nodes];
    let mut room = Hashed::default();
    filters::insert_all(&mut fresh, &stored[..recent]);
    exchanged.merge(&fresh)?;
    let (mut answers, stream) = (Vec::new(), stored.len() - recent);
    let every = (stream / queries).max(1);
    for (i, record) in stored.iter().enumerate().skip(recent) {
        fresh.insert(record.as_slice(), &mut room)?;
        local[i % nodes].insert(record.as_slice(), &mut room)?;
        if lag == 0 || (i - recent + 1).is_multiple_of(lag) {
            exchanged.merge(&fresh)?;
            local.fill(Filter::new(&of_node)?);
        }
        if i.is_multiple_of(every) {
            let wanted = stored[i - rng.below(recent as u64) as usize];
            let node = &local[rng.below(nodes as u64) as usize];
            let wanted = wanted.as_slice();
            answers.push(exchanged.contains_near(wanted, &mut room)? || node.contains_near(wanted, &mut room)?);
        }
    }
    let elsewhere = (nodes - 1) as f64 / nodes as f64;
    let unknown = match lag <= recent {
        true => lag as f64 / (2.0 * recent as f64),
        // During the part of the lag after `recent` records, none of the recent ones has been exchanged.
        false => 1.0 - recent as f64 / (2.0 * lag as f64),
    };
    Ok(Staleness {
        lag,
        missed: Rate::count(answers).miss(),
        expected: elsewhere * unknown,
        traffic_per_record: 2.0 * (nodes - 1) as f64 * spec.bytes() as f64 / lag.max(1) as f64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hua_2012::competitor::clumps;

    #[test]
    fn merged_summaries_are_one_filter() {
        let (stored, queries) = clumps::stored_and_queries(3_000, 200, 10);
        for nodes in [1, 7] {
            let found = distribute(&stored, (&stored[..200], &queries), nodes, 400.0, Seed::new(1)).unwrap();
            assert!(found.equal);
            // What was stored is found, whichever node stored it.
            assert_eq!((found.merged_missed.yes, found.apart_missed.yes), (0, 0));
        }
    }

    #[test]
    fn only_unexchanged_records_of_other_nodes_are_missed() {
        let (stored, _) = clumps::stored_and_queries(4_000, 0, 11);
        // Narrow buckets, so that hardly any record is mistaken for another.
        let stale = |lag| staleness(&stored, 10, 500, lag, (4.0, 1_000), Seed::new(2)).unwrap();
        assert_eq!(stale(0).missed.yes, 0);
        for lag in [250, 1_000] {
            let found = stale(lag);
            // 5 sigma, and 2 % for records found by chance hits.
            let sigma = (found.expected * (1.0 - found.expected) / found.missed.of as f64).sqrt();
            let seen = found.missed.value();
            assert!((seen - found.expected).abs() < 5.0 * sigma + 0.02, "{seen} for {}", found.expected);
        }
    }
}
