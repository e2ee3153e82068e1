//! A plan as one JSON object. Numbers are in the metric's own unit, as on the command line.

use nearset::plan::{Advice, FarModel, Minimise, Plan, PlanError, Request, RunnerUp};
use nearset::spec::{Construction, Terms};
use nearset_jobs::background::Sampled;
use serde_json::{Map, Value, json};

pub fn answer(request: &Request, outcome: &Result<Plan, PlanError>, sampled: Option<&Sampled>) -> Value {
    let terms = match outcome {
        Ok(plan) => Some(plan.terms()),
        Err(PlanError::LargerThanItems { plan, .. }) => Some(plan.terms()),
        Err(PlanError::Impossible { terms, .. }) => Some(&**terms),
        Err(_) => None,
    };
    let mut answer = request_fields(request, terms);
    let more = match outcome {
        Ok(plan) => {
            let mut fields = plan_fields(plan, sampled);
            fields.insert("smaller_than_items".into(), json!(true));
            fields.insert("without_a_filter".into(), advice(&request.advise()));
            fields
        }
        Err(PlanError::LargerThanItems { plan, advice: better, .. }) => {
            let mut fields = plan_fields(plan, sampled);
            fields.insert("smaller_than_items".into(), json!(false));
            fields.insert("without_a_filter".into(), advice(better));
            fields
        }
        Err(error) => error_fields(error),
    };
    answer.extend(more);
    Value::Object(answer)
}

/// Returns a map, from what `json!` made of braces.
fn fields(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

/// Without the dust that conversions between distance and similarity leave.
fn tidy(value: f64) -> f64 {
    const DIGITS: f64 = 1e12;
    if value.abs() < 1e3 { (value * DIGITS).round() / DIGITS } else { value }
}

fn request_fields(request: &Request, terms: Option<&Terms>) -> Map<String, Value> {
    let metric = request.metric;
    let own = |distance| tidy(metric.own_unit(distance));
    let shape = metric.shape();
    let far_model = match &request.far_model {
        None if metric.farthest().is_none() => json!({"kind": "worst-case"}),
        Some(FarModel::WorstCase) => json!({"kind": "worst-case"}),
        None | Some(FarModel::Random) => json!({"kind": "random"}),
        Some(FarModel::Background(at)) => json!({"kind": "background", "at": at}),
        Some(FarModel::Measured(background)) => json!({
            "kind": "measured",
            "pairs": background.pairs(),
            "nearest_percent_at": own(background.quantile(0.01)),
            "median_at": own(background.quantile(0.5)),
        }),
        _ => Value::Null,
    };
    fields(json!({
        "metric": metric.name().as_str(),
        "unit": metric.unit(),
        "length": shape.length,
        "shingle": shape.shingling.map(|shingling| shingling.to_string()),
        "near": request.near,
        "far": request.far.or(terms.map(|terms| own(terms.far))),
        "capacity": request.capacity,
        "max_false_negative": request.max_false_negative.or(terms.map(|terms| terms.max_false_negative)),
        "max_false_positive": request.max_false_positive.or(terms.map(|terms| terms.max_false_positive)),
        "minimise": match request.minimise { Minimise::Bytes => "bytes", Minimise::Time => "time" },
        "far_model": far_model,
        "seed": request.seed.to_string(),
    }))
}

fn plan_fields(plan: &Plan, sampled: Option<&Sampled>) -> Map<String, Value> {
    let own = |distance| tidy(plan.request.metric.own_unit(distance));
    let layout = plan.spec.near().map(|spec| spec.layout());
    // Blocks and masks are bands of which any is enough, each of as many bits as there are.
    let (rows, bands, threshold) = match plan.spec.exact() {
        Some(spec) => match spec.construction {
            Construction::Pigeonhole { blocks, .. } => (Some(spec.bits.div_ceil(blocks)), Some(blocks), Some(1)),
            Construction::Covering { .. } => (None, Some((2 << spec.radius) - 1), Some(1)),
            _ => (None, None, None),
        },
        None => (layout.map(|layout| layout.rows), layout.map(|layout| layout.bands), plan.threshold()),
    };
    let point = |point: &nearset::plan::CurvePoint| json!({"at": own(point.distance), "empty": point.empty, "full": point.full});
    let mut all = fields(json!({
        "structure": plan.structure.to_string(),
        "meaning": plan.structure.meaning(),
        "family": plan.family,
        "rows": rows,
        "bands": bands,
        "threshold": threshold,
        "follows_fill": plan.spec.near().is_some_and(|spec| spec.rule.follows_fill()),
        "bits_per_item": plan.bits_per_item,
        "bytes": plan.bytes,
        "false_negative": plan.false_negative,
        "false_positive": plan.false_positive,
        "chance_hit": plan.chance_hit,
        "cache_lines": plan.work.cache_lines,
        "hash_evaluations": plan.work.hash_evaluations,
        "grey_zone": {"from": own(plan.grey_zone.start), "to": own(plan.grey_zone.end)},
        "curve": plan.curve.iter().map(point).collect::<Vec<_>>(),
        "runners_up": plan.runners_up.iter().map(runner_up).collect::<Vec<_>>(),
    }));
    if let (Some(sampled), Some(spec)) = (sampled, plan.spec.near()) {
        let (mean, within) = sampled.background.agreement(&spec.family, spec.rows, plan.terms().far);
        let sample = json!({
            "records": sampled.records,
            "items": sampled.items,
            "pairs": sampled.background.pairs(),
            "band_agreement": {"mean": mean, "low": within.start(), "high": within.end()},
            "confidence": 0.95,
        });
        all.insert("sample".into(), sample);
    }
    all
}

fn runner_up(runner: &RunnerUp) -> Value {
    json!({
        "structure": runner.structure.to_string(),
        "family": runner.family,
        "bits_per_item": runner.bits_per_item,
        "why": runner.why,
    })
}

fn advice(advice: &[Advice]) -> Value {
    let each = |advice: &Advice| {
        json!({
            "structure": advice.structure.to_string(),
            "bits_per_item": advice.bits_per_item,
            "seconds_per_query": advice.seconds_per_query,
            "parameter": advice.parameter,
        })
    };
    advice.iter().map(each).collect()
}

fn error_fields(error: &PlanError) -> Map<String, Value> {
    let mut all = fields(json!({"error": error.to_string()}));
    if let PlanError::Impossible { terms, tried, nearest, advice: better } = error {
        all.insert("tried".into(), tried.iter().map(runner_up).collect());
        all.insert(
            "nearest".into(),
            nearest.iter().map(|request| Value::Object(request_fields(request, Some(terms)))).collect(),
        );
        all.insert("without_a_filter".into(), advice(better));
    }
    all
}
