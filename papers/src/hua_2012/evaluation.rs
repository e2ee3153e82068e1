//! The comparison: every competitor, every radius, uniform and Zipf queries.
//!
//! Claim: all competitors answer the same queries over the same records on one thread, and each query is timed as the
//! best of several passes, which other work on the machine disturbs little. Errors are kept apart: *missed* is the
//! fraction of queries with a record within R that are answered with no, *accepted* the fraction of those without one
//! that are answered with yes. The paper has one accuracy for both.

use std::{hint::black_box, time::Instant};

use nearset::{
    Distance, Rng, Seed,
    plan::{Background, Plan},
};
use nearset_theory::locality_sensitive as theory;

use super::{
    competitor::{Competitor, Scan},
    filters::{self, Filter},
    lsb_tree::LsbTree,
    points::{Point, squared_distance},
    queries::Queries,
    smart_store::{GROUPS, SmartStore},
};
use crate::{format::significant, rate::Rate, run::Run};

/// The bucket widths from which the tuned filter is chosen, in units of R.
const WIDTHS: [f64; 4] = [4.0, 8.0, 16.0, 32.0];

/// The number of pairs of far queries and records from which a plan is made.
const PAIRS: usize = 200_000;

/// Records and the queries on them.
pub struct Workload<'a, const D: usize> {
    /// The name of the records.
    pub name: &'static str,
    pub stored: &'a [Point<D>],
    /// The measured queries, by kind.
    pub kinds: &'a [Queries<D>],
    /// Other queries of the same kinds, with which filters are tuned and planned.
    pub training: &'a [Queries<D>],
    pub radii: &'a [f64],
}

/// One competitor's answers to one kind of queries at one radius.
pub struct Measured {
    pub data: &'static str,
    pub kind: &'static str,
    pub radius: f64,
    pub competitor: String,
    /// Queries that have a record within the radius.
    pub near: Rate,
    pub right: Rate,
    pub missed: Rate,
    pub accepted: Rate,
    /// The accepted fraction of queries with nothing within 4 R.
    pub accepted_far: Rate,
    pub microseconds: f64,
    pub accesses: f64,
    pub bytes: u64,
}

/// The state of a filter at a radius.
pub struct Filled {
    pub data: &'static str,
    pub radius: f64,
    pub name: String,
    pub shape: String,
    /// The fraction of the functions' bits that is set.
    pub fill: f64,
    pub bytes: u64,
    pub records: usize,
}

/// All measurements.
#[derive(Default)]
pub struct Evaluation {
    pub measured: Vec<Measured>,
    pub filled: Vec<Filled>,
    /// Data and radius, with the reason why the planner has no locality-sensitive Bloom filter, or no filter at all.
    pub refused: Vec<(&'static str, f64, String)>,
    /// The LSB-tree's bytes without records in its leaves.
    pub codes: Vec<(&'static str, u64)>,
    /// The LSB-tree's mean proximity χ, by data and kind of queries.
    pub proximity: Vec<(&'static str, &'static str, f64)>,
}

impl Evaluation {
    /// Runs all competitors over the workload.
    pub fn add<const D: usize>(&mut self, run: &Run, work: &Workload<'_, D>, seed: Seed) -> anyhow::Result<()> {
        let Workload { name, stored, .. } = *work;
        run.progress(format!("{name}: building the rivals over {} records", stored.len()));
        let scan = Scan(stored);
        let lsb_tree = LsbTree::new(stored, 1, seed);
        let smart_store = SmartStore::new(stored, GROUPS, 1, seed);
        self.codes.push((name, lsb_tree.code_bytes()));
        for kind in work.kinds {
            let chi = kind.points.iter().zip(kind.nearest()).map(|(query, nearest)| {
                let found = lsb_tree.distance_of_nearest(query);
                if found > 0.0 { nearest / found } else { 1.0 }
            });
            self.proximity.push((name, kind.name, chi.sum::<f64>() / kind.points.len() as f64));
        }
        for &radius in work.radii {
            run.progress(format!("{name}: R = {radius}"));
            let filters = self.filters(work, radius, seed)?;
            let rivals: [&dyn Competitor<D>; 3] = [&scan, &lsb_tree, &smart_store];
            let all = rivals.into_iter().chain(filters.iter().map(|filter| filter as &dyn Competitor<D>));
            for competitor in all {
                self.measured.extend(work.kinds.iter().map(|kind| measure(competitor, name, kind, radius)));
            }
        }
        Ok(())
    }

    /// Makes the filters for one radius.
    fn filters<const D: usize>(
        &mut self,
        work: &Workload<'_, D>,
        radius: f64,
        seed: Seed,
    ) -> anyhow::Result<Vec<Filter>> {
        let (stored, records) = (work.stored, work.stored.len());
        let narrow = filters::WIDTH * radius;
        let mut all = vec![
            Filter::of("LSBF as printed", filters::printed::<D>(filters::WIDTH, seed)?, stored)?,
            Filter::of("LSBF as printed, R as unit", filters::printed::<D>(narrow, seed)?, stored)?,
            Filter::of("LSBF half full", filters::half_full::<D>(narrow, records, seed)?, stored)?,
            tuned(work, radius, seed)?,
        ];
        let background = background(work, filters::FAR * radius, seed)?;
        let planned = background.map(|background| filters::request::<D>(radius, records, background, seed));
        match planned.map(|request| filters::planned(&request)) {
            None => self.refused.push((work.name, radius, "no query has nothing within 4 R".into())),
            Some(Err(why)) => self.refused.push((work.name, radius, why)),
            Some(Ok(plan)) => {
                let why = filters::why_not_verified(&plan).unwrap_or("it has one");
                self.refused.push((work.name, radius, why.into()));
                all.extend(of_plan(&plan, stored)?);
            }
        }
        self.filled.extend(all.iter().map(|filter| {
            let spec = filter.spec();
            let layout = spec.layout();
            let width = match spec.family {
                nearset::Family::PStable(family) => family.width,
                _ => f64::NAN,
            };
            let threshold = spec.rule.threshold_at(filter.fill()).unwrap_or(layout.bands);
            Filled {
                data: work.name,
                radius,
                name: Competitor::<D>::name(filter).to_owned(),
                shape: format!(
                    "{threshold} of {} functions of {} hashes, ω = {} R",
                    layout.bands,
                    layout.rows,
                    significant(width / radius, 2)
                ),
                fill: filter.fill(),
                bytes: spec.bytes(),
                records,
            }
        }));
        Ok(all)
    }
}

fn of_plan<const D: usize>(plan: &Plan, stored: &[Point<D>]) -> anyhow::Result<Option<Filter>> {
    plan.spec.near().map(|spec| Filter::of("nearset planned", spec.clone(), stored)).transpose()
}

/// Returns the filter whose width does best on the training queries.
fn tuned<const D: usize>(work: &Workload<'_, D>, radius: f64, seed: Seed) -> anyhow::Result<Filter> {
    let mut best: Option<(f64, Filter)> = None;
    for width in WIDTHS {
        let spec = filters::half_full::<D>(width * radius, work.stored.len(), seed)?;
        let filter = Filter::of("LSBF tuned", spec, work.stored)?;
        let (mut missed, mut accepted) = (Rate::default(), Rate::default());
        for kind in work.training {
            for (query, near) in kind.points.iter().zip(kind.truth(radius)) {
                let answer = filter.is_near(query, radius);
                let count = if near { &mut missed } else { &mut accepted };
                *count = *count + Rate::count([answer != near]);
            }
        }
        let part = |rate: Rate| if rate.of == 0 { 0.0 } else { rate.value() };
        let balance = theory::balance(part(accepted), part(missed), 0.3);
        if best.as_ref().is_none_or(|(least, _)| balance < *least) {
            best = Some((balance, filter));
        }
    }
    Ok(best.expect("widths were tried").1)
}

/// Returns distances between records and training queries that have nothing within `far`, or `None` if there are no
/// such queries.
fn background<const D: usize>(work: &Workload<'_, D>, far: f64, seed: Seed) -> anyhow::Result<Option<Background>> {
    let all = work.training.iter().flat_map(|kind| kind.points.iter().zip(kind.nearest()));
    let lonely: Vec<&Point<D>> = all.filter(|(_, nearest)| *nearest >= far).map(|(query, _)| query).collect();
    if lonely.is_empty() {
        return Ok(None);
    }
    let mut rng = Rng::new(seed.derive("pairs", 0));
    let mut any = |count: usize| rng.below(count as u64) as usize;
    let mut pair = |_| {
        let (query, record) = (lonely[any(lonely.len())], &work.stored[any(work.stored.len())]);
        Distance::new(f64::from(squared_distance(query, record)).sqrt())
    };
    let distances = (0..PAIRS).map(&mut pair).collect::<Result<Vec<_>, _>>()?;
    Ok(Background::from_distances(distances))
}

fn measure<const D: usize>(
    competitor: &dyn Competitor<D>,
    data: &'static str,
    queries: &Queries<D>,
    radius: f64,
) -> Measured {
    let truth = queries.truth(radius);
    let answers: Vec<_> = queries.points.iter().map(|query| competitor.ask(query, radius)).collect();
    let yes_where = |wanted: &dyn Fn(usize) -> bool| {
        Rate::count(answers.iter().enumerate().filter(|(i, _)| wanted(*i)).map(|(_, answer)| answer.near))
    };
    let far: Vec<bool> = queries.nearest().map(|nearest| nearest >= filters::FAR * radius).collect();
    Measured {
        data,
        kind: queries.name,
        radius,
        competitor: competitor.name().to_owned(),
        near: Rate::count(truth.iter().copied()),
        right: Rate::count(answers.iter().zip(&truth).map(|(answer, truth)| answer.near == *truth)),
        missed: yes_where(&|i| truth[i]).miss(),
        accepted: yes_where(&|i| !truth[i]),
        accepted_far: yes_where(&|i| far[i]),
        microseconds: microseconds(competitor, &queries.points, radius),
        accesses: answers.iter().map(|answer| f64::from(answer.accesses)).sum::<f64>() / answers.len() as f64,
        bytes: competitor.bytes(),
    }
}

/// Returns the mean over the queries of each one's best time. There are at least three passes, and up to seven within a
/// third of a second.
fn microseconds<const D: usize>(competitor: &dyn Competitor<D>, queries: &[Point<D>], radius: f64) -> f64 {
    let (started, mut best) = (Instant::now(), vec![f64::INFINITY; queries.len()]);
    for pass in 0..7 {
        if pass >= 3 && started.elapsed().as_secs_f64() > 0.33 {
            break;
        }
        for (query, best) in queries.iter().zip(&mut best) {
            let asked = Instant::now();
            black_box(competitor.is_near(black_box(query), radius));
            *best = best.min(asked.elapsed().as_secs_f64());
        }
    }
    1e6 * best.iter().sum::<f64>() / queries.len() as f64
}
