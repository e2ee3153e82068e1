//! What is planned for a grid of requests, pinned: `testdata/plan/requests.tsv` is added to and never edited.

use nearset::{
    Family, Seed,
    generations::{Description, Generations, Terms, WhenFull},
    plan::{FarModel, Goal, MetricName, Minimise, Shape, TextDedup, TextJoin, plan_index},
};

/// What is wanted, in the metric's own unit; `None` is the default of what is planned.
#[derive(Debug, Clone, Copy)]
struct Wish {
    metric: MetricName,
    length: Option<u32>,
    near: f64,
    far: Option<f64>,
    missed: Option<f64>,
    accepted: Option<f64>,
    capacity: u64,
    when_full: WhenFull,
    minimise: Minimise,
    worst_case: bool,
}

fn wish(metric: MetricName, near: f64, far: Option<f64>, capacity: u64) -> Wish {
    let length = match metric {
        MetricName::Jaccard | MetricName::WeightedJaccard => None,
        MetricName::Hamming => Some(256),
        _ => Some(16),
    };
    Wish {
        metric,
        length,
        near,
        far,
        missed: None,
        accepted: None,
        capacity,
        when_full: WhenFull::Grow,
        minimise: Minimise::Bytes,
        worst_case: false,
    }
}

/// Requests for which a filter, an index and, for texts, a filter that removes and a join are planned.
fn wishes() -> Vec<Wish> {
    use MetricName::*;
    let mut all = vec![
        wish(Jaccard, 0.8, Some(0.5), 1_000_000),
        wish(WeightedJaccard, 0.7, Some(0.3), 10_000),
        wish(Hamming, 20.0, Some(80.0), 100_000),
        wish(Symbols, 2.0, Some(12.0), 1_000),
        wish(Cosine, 0.95, Some(0.3), 2_000),
        wish(L1, 1.0, Some(20.0), 1_000),
        wish(L2, 1.0, Some(20.0), 1_000),
    ];
    for near in [0.2, 0.3, 0.45, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99] {
        all.push(wish(Jaccard, near, None, 5_000));
        all.push(Wish { missed: Some(0.02), accepted: Some(0.1), ..wish(Jaccard, near, None, 7) });
    }
    let usual = wish(Jaccard, 0.8, Some(0.6), 20_000);
    let texts = Wish { far: None, ..usual };
    let window = WhenFull::Forget { generations: 4 };
    for change in [usual, texts] {
        all.push(Wish { when_full: WhenFull::Refuse, ..change });
        all.push(Wish { when_full: window, ..change });
        all.push(Wish { missed: Some(0.1), ..change });
        all.push(Wish { accepted: Some(0.01), ..change });
    }
    all.push(Wish { minimise: Minimise::Time, ..usual });
    all.push(Wish { worst_case: true, far: Some(0.1), capacity: 500, ..usual });
    all.push(Wish { missed: Some(0.0), ..wish(Hamming, 4.0, Some(80.0), 10_000) });
    all
}

/// FNV-1a, so that a line pins every byte.
fn sum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, &byte| (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

fn described(described: Result<Description, String>) -> String {
    match described {
        Err(_) => "none".to_owned(),
        Ok(described) => {
            let shape = described.spec().near().map_or("exact".to_owned(), |spec| {
                format!("{} x {}, {} bits", spec.rule.bands(), spec.rows, spec.bits_per_band())
            });
            format!("{shape}, {} bytes, {:016x}", described.bytes(), sum(&described.encode()))
        }
    }
}

impl Wish {
    fn goal(&self) -> Option<Goal> {
        let metric = self.metric.with(Shape { length: self.length, shingling: None }).unwrap();
        let mut goal = Goal::new(metric, metric.distance(self.near).unwrap(), metric.distance(self.far?).unwrap(), self.capacity);
        goal.max_false_negative = self.missed.unwrap_or(goal.max_false_negative);
        goal.max_false_positive = self.accepted.unwrap_or(goal.max_false_positive);
        goal.minimise = self.minimise;
        goal.seed = Seed::new(7);
        if self.worst_case {
            goal.far_model = FarModel::WorstCase;
        }
        Some(goal)
    }

    fn dedup(&self) -> TextDedup {
        let usual = TextDedup::new(self.near);
        TextDedup {
            far: self.far.unwrap_or(usual.far),
            max_false_negative: self.missed.unwrap_or(usual.max_false_negative),
            max_false_positive: self.accepted.unwrap_or(usual.max_false_positive),
            seed: Seed::new(7),
            ..usual
        }
    }

    fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut line = |what: &str, found: String| {
            let Wish { metric, near, far, missed, accepted, capacity, when_full, minimise, worst_case, .. } = self;
            lines.push(format!("{what}\t{metric} {near} {far:?} {missed:?} {accepted:?} {capacity} {when_full:?} {minimise:?} {worst_case}\t{found}"));
        };
        let texts = self.metric == MetricName::Jaccard;
        let dedup = || Description::of_texts(&self.dedup(), self.capacity, self.when_full).map_err(|e| e.to_string());
        let filter = match self.goal() {
            None => dedup(),
            Some(goal) => Generations::plan(&goal, self.when_full)
                .map_err(|error| error.to_string())
                .and_then(|plan| Description::new(plan.spec, Some(Terms::of(&goal, self.when_full))).map_err(|e| e.to_string())),
        };
        line("filter", described(filter));
        if texts {
            line("dedup", described(dedup()));
            let usual = TextJoin::new(self.near);
            let join = TextJoin { max_false_negative: self.missed.unwrap_or(usual.max_false_negative), ..usual };
            line("join", join.layout().map_or("none".to_owned(), |layout| format!("{} x {}", layout.bands, layout.rows)));
        }
        if let Some(goal) = self.goal() {
            line("index", plan_index(&goal).map_or("none".to_owned(), |plan| {
                let spec = plan.spec;
                let width = if let Family::PStable(family) = spec.family { family.width } else { 0.0 };
                format!("{} x {}, {} probes, width {width}, {}", spec.layout.bands, spec.layout.rows, spec.probes, spec.seed)
            }));
        }
        lines
    }
}

#[test]
fn requests_are_planned_as_they_always_were() {
    let found: String = wishes().iter().flat_map(Wish::lines).map(|line| line + "\n").collect();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/plan/requests.tsv");
    if std::env::var_os("WRITE_REQUESTS").is_some() {
        std::fs::write(path, &found).unwrap();
    }
    let pinned = std::fs::read_to_string(path).unwrap();
    for (found, pinned) in found.lines().zip(pinned.lines()) {
        assert_eq!(found, pinned);
    }
    assert_eq!(found.lines().count(), pinned.lines().count());
}
