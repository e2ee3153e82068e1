//! What makes a planned filter: a command line, Python and Rust.
//!
//! Claim: each asks the planner for the same request.

use nearset::plan::{FarModel, Minimise, Request};
use nearset::{Metric, Seed};

/// What makes a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snippets {
    /// For a shell.
    pub command: String,
    /// For Python.
    pub python: String,
    /// For Rust.
    pub rust: String,
}

/// Returns what makes the plan of a request.
pub fn snippets(request: &Request) -> Snippets {
    let (metric, shape) = (request.metric, request.metric.shape());
    let mut command = format!("nearset plan --metric {} --near {}", metric.name(), request.near);
    let mut python = format!("nearset.plan(\"{}\", near={}", metric.name(), request.near);
    let mut rust = format!("Request::new({}, {:?})", metric_in_rust(metric), request.near);
    if let Some(far) = request.far {
        command += &format!(" --far {far}");
        python += &format!(", far={far}");
        rust += &format!(".far({far:?})");
    }
    command += &format!(" --capacity {}", request.capacity);
    python += &format!(", capacity={}", request.capacity);
    rust += &format!(".capacity({})", request.capacity);
    if let (Some(length), Some(option)) = (shape.length, metric.form().length_option()) {
        command += &format!(" --{option} {length}");
        python += &format!(", length={length}");
    }
    if let Some(shingling) = shape.shingling {
        command += &format!(" --shingle {shingling}");
        python += &format!(", shingling=\"{shingling}\"");
    }
    let mut fields = String::new();
    for (flag, name, rate) in [
        ("max-fn", "max_false_negative", request.max_false_negative),
        ("max-fp", "max_false_positive", request.max_false_positive),
    ] {
        if let Some(rate) = rate {
            command += &format!(" --{flag} {rate}");
            python += &format!(", {name}={rate}");
            fields += &format!("request.{name} = Some({rate:?});\n");
        }
    }
    if request.minimise == Minimise::Time {
        command += " --minimise time";
        python += ", minimise=\"time\"";
        fields += "request.minimise = Minimise::Time;\n";
    }
    if request.far_model == Some(FarModel::WorstCase) {
        command += " --worst-case";
        python += ", worst_case=True";
        fields += "request.far_model = Some(FarModel::WorstCase);\n";
    }
    if request.seed != Seed::default() {
        command += &format!(" --seed {}", request.seed);
        python += &format!(", seed=\"{}\"", request.seed);
        rust += &format!(".seed(\"{}\".parse()?)", request.seed);
    }
    let rust = match fields.is_empty() {
        true => format!("let filter = Filter::new(&{rust}.plan_filter()?.spec)?;"),
        false => {
            format!("let mut request = {rust};\n{fields}let filter = Filter::new(&request.plan_filter()?.spec)?;")
        }
    };
    Snippets { command, python: format!("filter = {python}).filter()"), rust }
}

fn metric_in_rust(metric: Metric) -> String {
    let shape = metric.shape();
    let length = shape.length.map_or("None".to_owned(), |length| format!("Some({length})"));
    let shingling = shape.shingling.map_or("None".to_owned(), |shingling| format!("Some(\"{shingling}\".parse()?)"));
    format!("\"{}\".parse::<MetricName>()?.with(Shape {{ length: {length}, shingling: {shingling} }})?", metric.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_said_is_said() {
        let said =
            snippets(&Request::new(Metric::Hamming { bits: 64 }, 4.0).far(20.0).capacity(1000).errors(0.01, 0.001));
        assert_eq!(
            said.command,
            "nearset plan --metric hamming --near 4 --far 20 --capacity 1000 --bits 64 --max-fn 0.01 --max-fp 0.001"
        );
        assert!(said.python.starts_with("filter = nearset.plan(\"hamming\", near=4, far=20, capacity=1000, length=64"));
        assert!(said.rust.contains("request.max_false_negative = Some(0.01);"));
        let texts = snippets(&Request::default().capacity(10));
        assert!(texts.command.ends_with("--capacity 10 --shingle words:5"), "{}", texts.command);
        assert!(texts.rust.starts_with("let filter = Filter::new(&Request::new("), "{}", texts.rust);
    }
}
