//! The same of items that are held in memory.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use nearset::Distance;
use nearset::index::PreparedItem;
use nearset_records::Source;
use nearset_records::output::{TableFile, Value};

use super::super::alarm::{self, Cause};
use super::super::components::UnionFind;
use super::super::items::{AT_ONCE, Arrival, Centres, Families, ItemPlan, Preparer};
use super::super::needs::expect_memory;
use super::super::stars::Placement;
use super::super::stream;
use super::{ClusterOptions, ClusterSummary};
use crate::crew::Crew;
use crate::run::{Ids, Progress, RunError};

pub(super) fn stars(
    sources: &Arc<[Source]>,
    options: &ClusterOptions,
    plan: &ItemPlan,
    progress: &Progress,
    mut table: TableFile,
    summary: &mut ClusterSummary,
) -> Result<(), RunError> {
    let join = &options.join;
    let crew = Crew::new(join.threads);
    let preparer = Preparer::new(plan, &join.fields)?.with_ids(true);
    let mut centres = Centres::new(plan, false);
    let (mut ids, mut empty, most_bytes) = (Ids::default(), 0, summary.plan.most_bytes());
    let itself = Value::Number(plan.metric.own_unit(Distance::default()));
    let of = (&preparer, &join.fields);
    summary.counts = stream::read(sources, join.reading(), of, progress, |batch, arrivals| {
        let mut joined = 0;
        for arrivals in arrivals.chunks(AT_ONCE) {
            let items: Vec<Option<&PreparedItem>> = arrivals.iter().map(|arrival| arrival.item.as_ref()).collect();
            centres.add(&items, &crew, |i, Placement { near, entry }| {
                let id = &arrivals[i].id;
                match (near, entry) {
                    (Some((of, near)), _) => {
                        joined += 1;
                        let centre = Value::Text(ids.get(of as usize));
                        table.row(&[Value::Text(id), centre, Value::Number(near)])?;
                    }
                    (None, Some(_)) => {
                        ids.push(id);
                        table.row(&[Value::Text(id), Value::Text(id), itself])?;
                    }
                    (None, None) => {
                        empty += 1;
                        table.row(&[Value::Text(id), Value::Text(id), Value::Null])?;
                    }
                }
                Ok(())
            })?;
        }
        let taken = centres.bytes() + ids.bytes();
        progress.filter_bytes.store(taken, Ordering::Relaxed);
        expect_memory(taken, most_bytes, batch.start().record + batch.len() as u64)?;
        Ok(joined)
    })?;
    let sizes = centres.copied().map(|(entry, members)| (entry, members + 1));
    let name = |entry: u32| ids.get(entry as usize);
    summary.alarms = alarm::named(Cause::Cluster, sizes, summary.counts.records, name);
    table.finish()?;
    summary.note_sizes(centres.members.iter().map(|&members| u64::from(members) + 1).chain((0..empty).map(|_| 1)));
    summary.index_bytes = centres.bytes();
    Ok(())
}

pub(super) fn chains(
    sources: &Arc<[Source]>,
    options: &ClusterOptions,
    plan: &ItemPlan,
    progress: &Progress,
    mut table: TableFile,
    summary: &mut ClusterSummary,
) -> Result<(), RunError> {
    let join = &options.join;
    let crew = Crew::new(join.threads);
    let preparer = Preparer::new(plan, &join.fields)?.with_ids(true);
    let of = (&preparer, &join.fields);
    // Copies need not be paired with each other: the first one connects them.
    let mut families = Families::new(plan, 0);
    let mut components = UnionFind::default();
    let (mut records, most_bytes) = (0u32, summary.plan.most_bytes());
    let mut add = |arrivals: &mut Vec<Arrival>, is_last| {
        let mut joined = 0;
        families.add(arrivals, is_last, &crew, |_, near| {
            components.grow(records as usize + 1);
            near.iter().for_each(|&(earlier, _)| components.union(earlier, records));
            joined += u64::from(!near.is_empty());
            records += 1;
            Ok(())
        })?;
        let taken = families.bytes() + 4 * u64::from(records);
        progress.filter_bytes.store(taken, Ordering::Relaxed);
        expect_memory(taken, most_bytes, records.into())?;
        Ok(joined)
    };
    summary.counts = stream::read(sources, join.reading(), of, progress, |_, arrivals| add(arrivals, false))?;
    add(&mut Vec::new(), true)?;
    summary.index_bytes = families.bytes() + 4 * u64::from(records);
    drop(families);
    let mut sizes: BTreeMap<u32, u64> = BTreeMap::new();
    for record in 0..records {
        *sizes.entry(components.find(record)).or_default() += 1;
    }
    summary.note_sizes(sizes.values().copied());
    // The first record of a cluster comes before all others, so it is known when they come.
    let mut firsts: BTreeMap<u32, (Box<str>, Option<PreparedItem>)> = BTreeMap::new();
    let mut record = 0;
    let counts = stream::read(sources, join.reading(), of, progress, |_, arrivals| {
        for arrival in std::mem::take(arrivals) {
            if record == records {
                return Err(RunError::InputChanged);
            }
            let first = components.find(record);
            let id = Value::Text(&arrival.id);
            if first == record {
                let itself = Value::Number(plan.metric.own_unit(Distance::default()));
                table.row(&[id, id, if arrival.item.is_some() { itself } else { Value::Null }])?;
                if sizes[&first] > 1 {
                    firsts.insert(record, (arrival.id, arrival.item));
                }
            } else {
                let (name, centre) = firsts.get(&first).ok_or(RunError::InputChanged)?;
                let items = arrival.item.as_ref().zip(centre.as_ref()).ok_or(RunError::InputChanged)?;
                let distance = plan.metric.between(items.0.into(), items.1.into());
                let near = plan.metric.own_unit(distance.map_err(|_| RunError::InputChanged)?);
                table.row(&[id, Value::Text(name), Value::Number(near)])?;
            }
            record += 1;
        }
        Ok(0)
    })?;
    if record != records || counts.bytes != summary.counts.bytes {
        return Err(RunError::InputChanged);
    }
    let name = |first: u32| firsts.get(&first).map_or("", |(id, _)| &**id);
    summary.alarms = alarm::named(Cause::Cluster, sizes.into_iter(), summary.counts.records, name);
    Ok(table.finish()?)
}
