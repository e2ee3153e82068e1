//! The plans for a grid of requests, pinned: `testdata/plan/requests.tsv` is added to, and edited only where a request comes to mean something else,
//! which the changelog then tells.

use nearset::{
    Family, MetricName, Seed, Shape,
    plan::{FarModel, Minimise, Plan, PlanError, Request},
    spec::WhenFull,
};

/// What is wanted, in the metric's own unit; `None` takes the default of what is planned.
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
        MetricName::Jaccard | MetricName::WeightedJaccard | MetricName::Dice => None,
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

/// Returns requests for which a filter, an index and, for texts, a filter that removes and a join are planned.
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
    all.push(wish(Dice, 0.9, Some(0.6), 10_000));
    all
}

/// Computes FNV-1a, so that a line pins every byte.
fn sum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, &byte| (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

fn planned(plan: Result<Plan, PlanError>) -> String {
    let Ok(Plan { spec, .. }) = plan else { return "none".to_owned() };
    let shape = spec.near().map_or("exact".to_owned(), |spec| {
        format!("{} x {}, {} bits", spec.rule.bands(), spec.rows, spec.bits_per_band())
    });
    format!("{shape}, {} bytes, {:016x}", spec.bytes(), sum(&spec.encode()))
}

impl Wish {
    fn request(&self) -> Request {
        let metric = self.metric.with(Shape { length: self.length, shingling: None }).unwrap();
        let mut request = Request::new(metric, self.near).capacity(self.capacity).seed(Seed::new(7));
        (request.far, request.when_full, request.minimise) = (self.far, self.when_full, self.minimise);
        (request.max_false_negative, request.max_false_positive) = (self.missed, self.accepted);
        request.far_model = self.worst_case.then_some(FarModel::WorstCase);
        request
    }

    fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut line = |what: &str, found: String| {
            let Wish { metric, near, far, missed, accepted, capacity, when_full, minimise, worst_case, .. } = self;
            lines.push(format!(
                "{what}\t{metric} {near} {far:?} {missed:?} {accepted:?} {capacity} {when_full:?} {minimise:?} \
                 {worst_case}\t{found}"
            ));
        };
        let request = self.request();
        line("filter", planned(request.plan_filter()));
        if self.metric == MetricName::Jaccard {
            line("dedup", planned(request.plan_dedup()));
            let join = request.plan_join();
            line("join", join.map_or("none".into(), |spec| format!("{} keys", spec.keys())));
        }
        if self.far.is_some() {
            let index = request.plan_index().map(|plan| plan.spec);
            line(
                "index",
                index.map_or("none".to_owned(), |spec| {
                    let width = if let Family::PStable(family) = spec.family { family.width } else { 0.0 };
                    let layout = spec.layout;
                    format!("{} x {}, {} probes, width {width}, {}", layout.bands, layout.rows, spec.probes, spec.seed)
                }),
            );
        }
        lines
    }
}

#[test]
fn requests_are_planned_as_they_always_were() {
    let found: String = wishes().iter().flat_map(Wish::lines).map(|line| line + "\n").collect();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/plan/requests.tsv");
    let pinned = std::fs::read_to_string(path).unwrap();
    for (found, pinned) in found.lines().zip(pinned.lines()) {
        assert_eq!(found, pinned);
    }
    let missing: Vec<&str> = found.lines().skip(pinned.lines().count()).collect();
    assert!(missing.is_empty(), "to be added:\n{}", missing.join("\n"));
}
