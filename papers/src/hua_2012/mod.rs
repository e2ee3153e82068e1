//! Hua, Xiao, Veeravalli & Feng, "Locality-Sensitive Bloom Filter for Approximate Membership Query" (2012).
//!
//! The paper's evaluation on the forest data and on a trace like its own, with its rivals: [`competitor::Scan`],
//! [`lsb_tree`] and [`smart_store`]; its theorems ([`theorems`], [`cases`]); and its distribution over nodes ([`nodes`]).

mod cases;
mod claims;
mod competitor;
mod evaluation;
mod filters;
mod forest;
mod lsb_tree;
mod nodes;
mod pages;
mod points;
mod queries;
mod report;
mod semantics;
mod smart_store;
mod theorems;
mod trace;
mod tuning;

use nearset::Seed;

use self::{
    evaluation::{Evaluation, Workload},
    points::Point,
    queries::Queries,
    tuning::Tuned,
};
use crate::run::Run;

/// The paper's R, and radii at which always saying yes is not the right answer.
const FOREST_RADII: [f64; 4] = [100.0, 200.0, 500.0, FOREST_RADIUS];
const FOREST_RADIUS: f64 = 2000.0;
const TRACE_RADII: [f64; 4] = [10.0, 50.0, 200.0, TRACE_RADIUS];
const TRACE_RADIUS: f64 = 600.0;

/// The number of nodes in the paper's cluster.
const NODES: usize = 30;

/// The experiments with one kind of records.
struct Records<const D: usize> {
    name: &'static str,
    stored: Vec<Point<D>>,
    kinds: [Queries<D>; 2],
    training: [Queries<D>; 2],
    paper_radius: f64,
}

impl<const D: usize> Records<D> {
    fn new(run: &Run, name: &'static str, stored: Vec<Point<D>>, paper_radius: f64) -> Self {
        run.progress(format!("{name}: the truth about the queries"));
        let (queries, training) = run.full_or_quick((1000, 500), (300, 150));
        let both =
            |count: usize, seed: Seed| [Queries::uniform(&stored, count, seed), Queries::zipf(&stored, count, seed)];
        let (kinds, training) = (both(queries, Seed::new(2012)), both(training, Seed::new(2013)));
        Self { name, stored, kinds, training, paper_radius }
    }

    fn tune(&self, run: &Run, radii: &[f64]) -> anyhow::Result<(&'static str, Vec<Tuned>, f64)> {
        run.progress(format!("{}: choosing R", self.name));
        let sample = &self.stored[..self.stored.len().min(100_000)];
        let tuned = tuning::tune(sample, &self.kinds, run.full_or_quick(200, 50), radii, Seed::new(9))?;
        Ok((self.name, tuned, self.paper_radius))
    }

    fn evaluate(&self, run: &Run, radii: &[f64], evaluation: &mut Evaluation) -> anyhow::Result<()> {
        let Self { name, stored, kinds, training, .. } = self;
        evaluation.add(run, &Workload { name, stored, kinds, training, radii }, Seed::new(42))
    }

    /// Measures summaries over nodes, with the paper's ω.
    fn distribute(&self, run: &Run) -> anyhow::Result<(Vec<nodes::Nodes>, Vec<nodes::Staleness>)> {
        run.progress(format!("{}: a filter per node", self.name));
        let stored = &self.stored[..self.stored.len().min(run.full_or_quick(145_000, 10_000))];
        let (seed, width) = (Seed::new(30), filters::WIDTH);
        let far = queries::uniform(stored, run.full_or_quick(20_000, 3_000), seed);
        let queries = (&stored[..1_000], far.as_slice());
        let counts: &[usize] = run.full_or_quick(&[1, 2, 3, 5, 10, 15, 20, 25, NODES], &[1, 5, NODES]);
        let spread = counts.iter().map(|&count| nodes::distribute(stored, queries, count, width, seed));
        let spread = spread.collect::<anyhow::Result<Vec<_>>>()?;
        let recent = stored.len() / 7;
        let parts: &[usize] = run.full_or_quick(&[40, 20, 10, 5, 2, 1], &[10, 2]);
        let lags = parts.iter().map(|part| recent / part).chain([2 * recent]);
        let asked = run.full_or_quick(4_000, 1_000);
        let stale = lags.map(|lag| nodes::staleness(stored, NODES, recent, lag, (width, asked), seed));
        Ok((spread, stale.collect::<anyhow::Result<Vec<_>>>()?))
    }
}

/// Reruns the evaluation, the theorems and the distribution.
pub fn run(run: &mut Run) -> anyhow::Result<()> {
    run.progress("the theorems");
    let (repetitions, queries) = run.full_or_quick((25, 20_000), (4, 2_000));
    let outcomes = theorems::outcomes(repetitions, queries, Seed::new(5))?;
    report::theorems(run, &outcomes)?;
    claims::theorems(run, &outcomes);
    cases::run(run)?;

    let (mut evaluation, mut tuned) = (Evaluation::default(), Vec::new());
    let mut spread = None;
    run.progress("reading the forest");
    match forest::places(run.full_or_quick(1, 40), Seed::new(1))? {
        None => run.progress(format!(
            "the forest is left out: `xz -dc {}` gives nothing here, so only the trace is measured",
            forest::SHOWN
        )),
        Some(places) => {
            let forest = Records::new(run, "forest", places, FOREST_RADIUS);
            let radii =
                run.full_or_quick(&[125.0, 250.0, 500.0, 1000.0, 2000.0, 4000.0, 8000.0, 16_000.0][..], &[2000.0]);
            tuned.push(forest.tune(run, radii)?);
            forest.evaluate(run, run.full_or_quick(&FOREST_RADII, &[200.0, FOREST_RADIUS]), &mut evaluation)?;
            spread = Some(forest.distribute(run)?);
        }
    }
    run.progress("making the trace");
    let trace = trace::files(run.full_or_quick(trace::FILES, 20_000), Seed::new(1));
    let trace = Records::new(run, "trace", trace, TRACE_RADIUS);
    let radii = run.full_or_quick(&[37.5, 75.0, 150.0, 300.0, 600.0, 1200.0, 2400.0, 4800.0][..], &[600.0]);
    tuned.push(trace.tune(run, radii)?);
    trace.evaluate(run, run.full_or_quick(&TRACE_RADII, &[50.0, TRACE_RADIUS]), &mut evaluation)?;
    let (spread, stale) = match spread {
        Some(spread) => spread,
        None => trace.distribute(run)?,
    };

    report::tuning(run, &tuned)?;
    report::evaluation_tables(run, &evaluation)?;
    report::space_table(run, &evaluation, &PAPER)?;
    report::evaluation_figures(run, &evaluation)?;
    report::nodes(run, &spread, &stale)?;
    claims::evaluation(run, &evaluation, &tuned);
    claims::nodes(run, &spread, &stale);
    run.headline(
        "as printed the filter is full and says yes to everything; with buckets 16 to 32 R wide it is a fair summary in a tenth of an index's space",
    )
}

/// The settings for which the paper printed numbers.
const PAPER: [(&str, f64); 2] = [("trace", TRACE_RADIUS), ("forest", FOREST_RADIUS)];
