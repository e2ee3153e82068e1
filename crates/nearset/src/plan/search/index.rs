//! The search for the quickest near-neighbour index that keeps a goal's promise.
//!
//! Claim: the index returned finds a near item with at least `1 - max_false_negative`, and no other number of rows, tables and
//! probes that was tried answers in fewer steps; where bytes are to be few, it has the fewest tables of those that take at most
//! [`SLOWER`] times that.
//! Reference: the course notes on near neighbours by Kesselheim & Mehlhorn, whose `k` and `L` a plan states beside its own.
//!
//! Rows trade tables for candidates: a table more costs its hashes and a look into it, a row fewer lets more far items into a
//! bucket, each of which is verified. The notes weigh neither; here both are counted in the steps of [`Work`].

use std::fmt;

use nearset_theory::near_neighbour::Sensitivity;

use super::{
    super::{
        Goal, Minimise, PlanError, Request,
        outcome::{percent, significant},
    },
    Model, Work, families, most_functions, most_rows,
};
use crate::{
    Distance, Family, Layout, LshSpec, Metric,
    family::{Form, LshFamily, MOST_PROBES},
};

/// How much slower than the quickest an index may be to have fewer tables.
const SLOWER: f64 = 2.0;

/// Steps to note a candidate and to drop its repeats.
const CANDIDATE: f64 = 12.0;

/// Cache lines of a look into a bucket: where it starts, and its entries.
const LINES_A_BUCKET: f64 = 2.0;

/// Steps to find the next bucket beside an item's own.
const PROBE: f64 = 30.0;

/// Distances at which the crowd's chances are worked out where probing makes them dear; each item of the crowd counts as lying at
/// the nearest of them below it.
const CROWD_POINTS: u32 = 8;

/// The part of all items that is taken to lie at far, whatever the far model says of the others: corpora have families, and an
/// index whose buckets held whole families would verify them all.
const RELATED: f64 = 0.01;

/// What the notes' formulas give: `k = ln n / ln(1/p2)` and `L = n^ρ`, each rounded up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct NotesIndex {
    /// Rows of a table's key.
    pub rows: u32,
    /// Tables.
    pub tables: u32,
    /// How likely a near item is found: at least about `1 - 1/e`.
    pub success: f64,
    /// Far candidates of all tables together, at most, on average.
    pub far_candidates: f64,
}

/// The index that keeps a request, with what it will do.
///
/// ```
/// use nearset::{Index, Metric, plan::Request};
///
/// let metric = Metric::Jaccard { shingling: "words:5".parse()? };
/// let plan = Request::new(metric, 0.8).far(0.3).capacity(1_000_000).plan_index()?;
/// assert!(plan.success >= 0.98);
/// let index = Index::new(plan.spec)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct IndexPlan {
    /// What was asked for. Its rate of false positives is left aside: candidates are verified.
    pub request: Request,
    /// How likely a near item is to be found, at least.
    pub promised: f64,
    /// The hash family's name.
    pub family: &'static str,
    /// From which to build it.
    pub spec: LshSpec,
    /// How likely an item at the near distance is found.
    pub success: f64,
    /// How many items a query meets that it has nothing to do with, each once, on average at capacity.
    pub candidates: f64,
    /// Bytes of all tables for one item, the items themselves not counted; at most.
    pub table_bytes_per_item: f64,
    /// What a query costs, verification included.
    pub work: Work,
    /// Steps to compare the query with every item instead.
    pub scan_steps: f64,
    /// The notes' choice for the same family, goal and capacity, where every item is at far at least.
    pub(crate) notes: NotesIndex,
}

/// For people, aligned, one fact a line.
impl fmt::Display for IndexPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (metric, LshSpec { layout, probes, .. }) = (self.request.metric, &self.spec);
        let beside = if *probes > 1 { format!(", {probes} buckets of each tried") } else { String::new() };
        writeln!(f, "{:<16}{metric}, {} items", "metric", self.request.capacity)?;
        writeln!(f, "{:<16}{} tables of {} rows over {}{beside}", "index", layout.bands, layout.rows, self.family)?;
        writeln!(f, "{:<16}{} bytes of tables per item", "memory", significant(self.table_bytes_per_item))?;
        let own = significant(self.request.near);
        let promised = percent(self.promised);
        writeln!(f, "{:<16}{} found at {own} {} ({promised} promised)", "near", percent(self.success), metric.unit())?;
        let quicker = self.scan_steps / self.work.steps;
        let than_scan = if quicker >= 1.0 {
            format!("{} times quicker than a scan", significant(quicker))
        } else {
            "slower than comparing all items: scan them".into()
        };
        writeln!(f, "{:<16}{} candidates to verify; {than_scan}", "per query", significant(self.candidates))?;
        let NotesIndex { rows, tables, success, far_candidates } = self.notes;
        let (success, met) = (percent(success), significant(far_candidates));
        writeln!(f, "{:<16}{tables} tables of {rows} rows: {success} found, {met} far candidates at most", "textbook")
    }
}

/// The quickest index that finds near items as often as the goal asks.
pub(in crate::plan) fn plan(request: &Request, goal: &Goal) -> Result<IndexPlan, PlanError> {
    if goal.max_false_negative == 0.0 {
        return Err(PlanError::NoZeroFalseNegatives { metric: goal.metric });
    }
    let mut all = Vec::new();
    for variants in families(goal) {
        // Widths lie close together, and each is expensive to try where it can probe.
        let step = if variants.len() > 2 { 2 } else { 1 };
        variants.into_iter().step_by(step).for_each(|family| search(request, goal, family, &mut all));
    }
    let quickest = all.iter().map(|plan| plan.work.steps).fold(f64::INFINITY, f64::min);
    let compare = |a: &&IndexPlan, b: &&IndexPlan| {
        let (steps, bands) = (a.work.steps.total_cmp(&b.work.steps), a.spec.layout.bands.cmp(&b.spec.layout.bands));
        match goal.minimise {
            Minimise::Time => steps.then(bands),
            Minimise::Bytes => bands.then(steps),
        }
    };
    let quick = all.iter().filter(|plan| plan.work.steps <= SLOWER * quickest);
    quick.min_by(compare).cloned().ok_or_else(|| PlanError::Impossible {
        terms: Box::new(request.terms(goal)),
        tried: Vec::new(),
        nearest: Vec::new(),
        advice: super::advise(goal),
    })
}

/// For each number of rows and probes that may be worth it, the fewest tables that keep the promise.
fn search(request: &Request, goal: &Goal, family: Family, found: &mut Vec<IndexPlan>) {
    let model = Model::new(goal, family);
    let most_probes = if family.can_probe() { MOST_PROBES } else { 1 };
    let mut quickest = found.iter().map(|plan| plan.work.steps).fold(f64::INFINITY, f64::min);
    let (mut rows, mut before) = (1, f64::INFINITY);
    while rows <= most_rows(&family) {
        // One look into one table meets this many already.
        let least = goal.capacity as f64 * crowd_chance(&model, |distance| family.band_probability(distance, rows));
        if least * verification(goal.metric) <= SLOWER * quickest {
            let chances = Chances::new(&model, rows, most_probes);
            let mut quickest_here = f64::INFINITY;
            for probes in (0..).map(|power| 1 << power).take_while(|&probes| probes <= most_probes) {
                let (near, crowd) = (chances.near[probes as usize - 1], chances.crowd[probes as usize - 1]);
                if let Some(spec) = fewest_tables(goal, family, rows, probes, near) {
                    let plan = describe(request, goal, family.name(), spec, near, crowd);
                    quickest_here = quickest_here.min(plan.work.steps);
                    found.push(plan);
                }
            }
            // From here on, more rows need so many more tables that it gets worse and worse.
            if quickest_here.is_infinite() || quickest_here > before && quickest_here > SLOWER * quickest {
                return;
            }
            (before, quickest) = (quickest_here, quickest.min(quickest_here));
        }
        // Every number up to 8, then in steps of an eighth.
        rows += 1 + rows / 8;
    }
}

/// The least index of so many rows and probes, if it may have as many functions as it needs.
fn fewest_tables(goal: &Goal, family: Family, rows: u32, probes: u32, near: f64) -> Option<LshSpec> {
    let with = |bands| LshSpec { family, seed: goal.seed, layout: Layout::new(rows, bands), probes, keeps_items: true };
    let most = most_functions(&family) / rows;
    let mut enough = tables_for(near, goal.max_false_negative).filter(|&bands| bands <= most)?;
    // Bands that share positions do better than independent ones.
    if family.agreeing_bands(goal.near, Layout::new(rows, enough)).is_some() {
        let mut too_few = 0;
        while enough - too_few > 1 {
            let middle = too_few + (enough - too_few) / 2;
            let keeps = with(middle).success_given(goal.near, near) >= 1.0 - goal.max_false_negative;
            if keeps { enough = middle } else { too_few = middle }
        }
    }
    Some(with(enough))
}

/// The fewest tables of which one agrees with a near item often enough.
fn tables_for(agreement: f64, max_false_negative: f64) -> Option<u32> {
    let tables = libm::ceil(libm::log(max_false_negative) / libm::log1p(-agreement.min(1.0 - 1e-15)));
    (tables >= 0.0 && tables <= f64::from(u32::MAX)).then_some((tables as u32).max(1))
}

/// The mean of a chance over all items that a query has nothing to do with.
fn crowd_chance(model: &Model<'_>, p: impl Fn(Distance) -> f64) -> f64 {
    (1.0 - RELATED) * model.one_of_crowd_by(&p) + RELATED * p(model.goal.far)
}

/// The chances that an item lies in one of the first buckets of a table, by how many are looked into.
struct Chances {
    near: Vec<f64>,
    crowd: Vec<f64>,
}

impl Chances {
    fn new(model: &Model<'_>, rows: u32, probes: u32) -> Self {
        let (goal, family) = (model.goal, model.family);
        if probes == 1 {
            let band = |distance| family.band_probability(distance, rows);
            return Self { near: vec![band(goal.near)], crowd: vec![crowd_chance(model, band)] };
        }
        let (from, to) = (goal.far.value(), model.farthest_of_crowd().value());
        let point = |i: u32| from + (to - from) * f64::from(i) / f64::from(CROWD_POINTS);
        let crowd = (0..CROWD_POINTS).filter_map(|i| Distance::new(point(i)).ok());
        let points: Vec<Distance> = [goal.near].into_iter().chain(crowd).collect();
        let mut chances = family.probed_probabilities(&points, rows, probes);
        let below = |distance: Distance| points.partition_point(|point| *point <= distance).max(2) - 1;
        let crowd =
            (0..probes as usize).map(|probe| crowd_chance(model, |distance| chances[below(distance)][probe])).collect();
        Self { near: chances.swap_remove(0), crowd }
    }
}

/// Steps to work out one exact distance.
fn verification(metric: Metric) -> f64 {
    let (bytes, steps) = match metric.form() {
        Form::Bits(bits) => (f64::from(bits) / 8.0, f64::from(bits) / 64.0),
        Form::Symbols(length) => (4.0 * f64::from(length), f64::from(length) / 8.0),
        Form::Vector(dimension) => (4.0 * f64::from(dimension), f64::from(dimension)),
        // A text of some hundred words, merged with the query's.
        Form::Set(_) | Form::Weighted(_) => (1600.0, 400.0),
    };
    // What follows the first line comes by itself.
    Work::LINE + 2.0 * (bytes / 64.0) + steps
}

/// `near` and `crowd` are the chances that an item lies in a bucket that a query looks into.
fn describe(request: &Request, goal: &Goal, name: &'static str, spec: LshSpec, near: f64, crowd: f64) -> IndexPlan {
    let (capacity, tables) = (goal.capacity as f64, f64::from(spec.layout.bands));
    let met = tables * capacity * crowd;
    let candidates = capacity * -libm::expm1(tables * libm::log1p(-crowd.min(1.0 - 1e-15)));
    let buckets = tables * f64::from(spec.probes);
    let hash_evaluations = spec.layout.functions() as f64;
    let verified = verification(goal.metric);
    let cache_lines = LINES_A_BUCKET * buckets + candidates;
    let steps = spec.family.steps() * hash_evaluations
        + (Work::LINE * LINES_A_BUCKET) * buckets
        + PROBE * (buckets - tables)
        + CANDIDATE * met
        + verified * candidates;
    let sensitivity = Sensitivity {
        p1: spec.family.collision_probability(goal.near),
        p2: spec.family.collision_probability(goal.far),
    };
    let (notes_rows, notes_tables) = (sensitivity.rows(capacity).ceil(), sensitivity.tables(capacity).ceil());
    IndexPlan {
        request: request.clone(),
        promised: 1.0 - goal.max_false_negative,
        family: name,
        success: spec.success_given(goal.near, near),
        candidates,
        table_bytes_per_item: tables * 12.0,
        work: Work { cache_lines, hash_evaluations, steps },
        scan_steps: capacity * (verified - Work::LINE),
        notes: NotesIndex {
            rows: notes_rows.clamp(1.0, f64::from(u32::MAX)) as u32,
            tables: notes_tables.clamp(1.0, f64::from(u32::MAX)) as u32,
            success: sensitivity.success(notes_rows.max(1.0), notes_tables.max(1.0)),
            far_candidates: sensitivity.far_candidates(capacity, notes_rows.max(1.0), notes_tables.max(1.0)),
        },
        spec,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::FarModel;

    fn requests() -> Vec<Request> {
        let shingling = crate::Shingling::default();
        let request = |metric, near, far, capacity| Request::new(metric, near).far(far).capacity(capacity);
        vec![
            request(Metric::Jaccard { shingling }, 0.8, 0.3, 1_000_000),
            request(Metric::Hamming { bits: 64 }, 4.0, 20.0, 100_000),
            request(Metric::Hamming { bits: 256 }, 31.0, 90.0, 1_000_000),
            request(Metric::Symbols { length: 100 }, 5.0, 40.0, 10_000),
            request(Metric::Angle { dimension: 50 }, 0.92, 0.54, 50_000),
            request(Metric::L2 { dimension: 10 }, 30.0, 200.0, 100_000),
        ]
    }

    #[test]
    fn every_metric_has_an_index_that_keeps_its_promise_and_beats_a_scan() {
        for request in requests() {
            let plan = request.plan_index().unwrap();
            println!("{plan}");
            assert!(plan.success >= 0.98 && plan.spec.check().is_ok(), "{plan}");
            let near = request.metric.distance(request.near).unwrap();
            assert_eq!(plan.success, plan.spec.success_probability(near));
            assert!(plan.work.steps < plan.scan_steps, "{plan}");
            assert!(plan.candidates < 0.5 * request.capacity as f64, "{plan}");
        }
    }

    #[test]
    fn the_notes_numbers_are_those_of_their_formulas() {
        // 64 bits, near 8, far 32: p1 = 7/8, p2 = 1/2, so k = log2 n = 10 and L = n^log2(8/7) = 3.8.
        let request = Request::new(Metric::Hamming { bits: 64 }, 8.0).far(32.0).capacity(1024);
        let NotesIndex { rows, tables, success, far_candidates } = request.plan_index().unwrap().notes;
        assert_eq!((rows, tables), (10, 4));
        assert!((success - (1.0 - (1.0 - 0.875f64.powi(10)).powi(4))).abs() < 1e-12);
        assert!((far_candidates - 4.0).abs() < 1e-9, "one far item per bucket");
    }

    #[test]
    fn no_index_by_the_notes_is_quicker_at_their_own_promise() {
        for mut request in requests() {
            request.far_model = Some(FarModel::WorstCase);
            request.minimise = Minimise::Time;
            let notes = request.plan_index().unwrap();
            let NotesIndex { rows, tables, .. } = notes.notes;
            // The same family in the notes' shape, under the promise that it keeps.
            let spec = LshSpec { layout: Layout::new(rows, tables), probes: 1, ..notes.spec.clone() };
            let near = request.metric.distance(request.near).unwrap();
            request.max_false_negative = Some(1.0 - spec.success_probability(near));
            let goal = request.filter_goal().unwrap();
            let Chances { near, crowd } = Chances::new(&Model::new(&goal, spec.family), rows, 1);
            let theirs = describe(&request, &goal, "notes", spec, near[0], crowd[0]);
            let ours = request.plan_index().unwrap();
            assert!(ours.work.steps <= theirs.work.steps * 1.05, "{ours}{theirs}");
        }
    }

    #[test]
    fn fewer_bytes_are_fewer_tables_and_not_much_slower() {
        for request in requests() {
            let small = request.plan_index().unwrap();
            let quick = Request { minimise: Minimise::Time, ..request }.plan_index().unwrap();
            assert!(small.spec.layout.bands <= quick.spec.layout.bands);
            assert!(quick.work.steps <= small.work.steps && small.work.steps <= SLOWER * quick.work.steps);
        }
    }

    #[test]
    fn what_no_index_can_promise_is_refused() {
        let mut request = requests().remove(0);
        request.max_false_negative = Some(0.0);
        assert!(matches!(request.plan_index(), Err(PlanError::NoZeroFalseNegatives { .. })));
        request.capacity = 0;
        assert!(matches!(request.plan_index(), Err(PlanError::Request(_))));
    }
}
