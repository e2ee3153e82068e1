//! Numbers, metrics and plans in words for people.

use nearset::Metric;
use nearset::family::Form;
use nearset::plan::Plan;
use nearset::spec::Construction;

use crate::run::{CurvePoint, Loss, Promise};

/// `1,234,567`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats bytes with a unit, as disks and memory are sold: `3.4 MB`.
pub fn bytes(number: u64) -> String {
    let units = ["B", "kB", "MB", "GB", "TB", "PB", "EB"];
    let (mut value, mut unit) = (number as f64, 0);
    // 999.95 would be shown as 1000.0.
    while value >= if unit == 0 { 1000.0 } else { 999.95 } && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    if unit == 0 { format!("{number} B") } else { format!("{value:.1} {}", units[unit]) }
}

/// Returns a probability: `97.9 %`, or with an exponent where it is tiny.
pub fn percent(rate: f64) -> String {
    let value = 100.0 * rate;
    match value {
        _ if rate.is_nan() => "unknown".to_owned(),
        0.0 => "0 %".to_owned(),
        value if value >= 10.0 => format!("{value:.1} %"),
        value if value >= 0.01 => format!("{value:.2} %"),
        value => format!("{value:.0e} %"),
    }
}

/// Returns a similarity without the dust of binary fractions: `0.85`.
pub fn similarity(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Returns what is caught: `49.7 % at similarity 0.8 (promised: at least 45.0 %), 96.8 % at 0.85, 100.0 % at 0.9`.
pub fn caught(promise: &Promise) -> String {
    let at = |point: &CurvePoint| (percent(point.caught), similarity(point.similarity));
    let ((caught, near), least) = (at(&promise.near), percent(promise.least_near));
    let above = promise.above.iter().map(at).map(|(caught, similarity)| format!(", {caught} at {similarity}"));
    format!("{caught} at similarity {near} (promised: at least {least}){}", above.collect::<String>())
}

/// Returns what is lost though it is not near: `1.71 % at similarity 0.7 (promised: at most 2.00 %), 0.02 % of what is unrelated`.
pub fn lost(promise: &Promise) -> String {
    let Some(Loss { far, most_far, unrelated }) = promise.lost else {
        return format!("none below similarity {}", similarity(promise.near.similarity));
    };
    let (lost, at, most) = (percent(far.caught), similarity(far.similarity), percent(most_far));
    format!("{lost} at similarity {at} (promised: at most {most}), {} of what is unrelated", percent(unrelated))
}

/// Returns a time in units that fit it: `2 h 3 min`, `4 min 5 s`, `1.2 s`, `3.2 ms`, `65 µs`, `20 ns`.
pub fn seconds(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match seconds {
        seconds if seconds < 0.9995e-6 => format!("{} ns", number(1e9 * seconds)),
        seconds if seconds < 0.9995e-3 => format!("{} µs", number(1e6 * seconds)),
        seconds if seconds < 0.9995 => format!("{} ms", number(1e3 * seconds)),
        seconds if seconds < 59.95 => format!("{seconds:.1} s"),
        _ if whole < 3600 => format!("{} min {} s", whole / 60, whole % 60),
        _ => format!("{} h {} min", whole / 3600, whole % 3600 / 60),
    }
}

/// Three significant digits, thousands apart, no exponent.
pub fn number(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return value.abs().to_string();
    }
    if value >= 1000.0 {
        return count(value.round() as u64);
    }
    let digits = (2 - value.abs().log10().floor() as i32).clamp(0, 12) as usize;
    let text = format!("{value:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// Returns a probability in three digits: `none`, `0.1 %`, `1 in 10,000,000`.
pub fn rate(rate: f64) -> String {
    match rate {
        0.0 => "none".into(),
        rate if rate >= 1e-5 => format!("{} %", number(100.0 * rate)),
        rate => format!("1 in {}", count((1.0 / rate).round() as u64)),
    }
}

/// Returns the metric by its everyday name.
pub fn metric(metric: Metric) -> String {
    let title = metric.name().title();
    match metric.form() {
        Form::Bits(bits) => format!("{title} of {bits}-bit hashes"),
        Form::Symbols(length) => format!("{title} of {length}"),
        Form::Set(shingling) | Form::Weighted(shingling) => format!("{title} of {shingling} shingles"),
        Form::Vector(dimension) => format!("{title} of {dimension} components"),
        _ => metric.to_string(),
    }
}

/// Returns what a curve is drawn over.
pub fn axis(metric: Metric) -> String {
    let (title, noun) = (metric.name().title(), metric.form().noun(false));
    match (metric.is_whole(), metric.larger_is_nearer()) {
        (true, _) => format!("differing {} between the query and its nearest stored {noun}", metric.unit()),
        (false, true) => format!("{title} of the query and its nearest stored {noun}"),
        (false, false) => format!("{title} of the query to its nearest stored {noun}"),
    }
}

/// Returns a plan's bands or blocks, and how many of them decide.
pub fn shape(plan: &Plan) -> String {
    if let Some(spec) = plan.spec.exact() {
        return match spec.construction {
            Construction::Pigeonhole { blocks, .. } => {
                format!("{blocks} blocks of some {} bits, any is enough", spec.bits.div_ceil(blocks))
            }
            Construction::Covering { .. } => format!("{} masks, any is enough", count((2 << spec.radius) - 1)),
            Construction::SampledScan { width, within } => {
                format!("{width} sampled bits of every item are compared, {within} may differ")
            }
            _ => plan.structure.meaning().to_owned(),
        };
    }
    let Some(layout) = plan.spec.near().map(|spec| spec.layout()) else { return plan.structure.meaning().to_owned() };
    let (rows, bands) = (layout.rows, layout.bands);
    let must = match plan.threshold() {
        Some(1) => ", any is enough".to_owned(),
        Some(threshold) if threshold == bands => ", all must hit".to_owned(),
        Some(threshold) if plan.spec.near().is_some_and(|spec| spec.rule.follows_fill()) => {
            format!(", {threshold} must hit when full, fewer before")
        }
        Some(threshold) => format!(", {threshold} must hit"),
        None => String::new(),
    };
    let (number, each) = (count(bands.into()), if rows == 1 { "row" } else { "rows" });
    format!("{number} {} of {rows} {each}{must}", if bands == 1 { "band" } else { "bands" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(count(0), "0");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(bytes(999), "999 B");
        assert_eq!([1_000, 3_400_000, 999_960, 172_000_000].map(bytes), ["1.0 kB", "3.4 MB", "1.0 MB", "172.0 MB"]);
        assert_eq!(percent(0.979), "97.9 %");
        assert_eq!(percent(0.0123), "1.23 %");
        assert_eq!(percent(3e-9), "3e-7 %");
        assert_eq!(
            [7384.0, 245.0, 59.97, 1.24, 0.9996, 3.2e-3, 6.5e-5, 2e-8].map(seconds),
            ["2 h 3 min", "4 min 5 s", "1 min 0 s", "1.2 s", "1.0 s", "3.2 ms", "65 µs", "20 ns"]
        );
        assert_eq!(
            [0.8, 0.0, 1714.2, 274.31, 0.012345, -0.25].map(number),
            ["0.8", "0", "1,714", "274", "0.0123", "-0.25"]
        );
        assert_eq!([0.0, 0.001, 0.02, 1e-7].map(rate), ["none", "0.1 %", "2 %", "1 in 10,000,000"]);
    }
}
