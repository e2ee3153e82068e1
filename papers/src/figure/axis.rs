//! Axes: from values to positions, and the numbers beside them.

use nearset_view::plot;

use crate::format;

/// An axis with its label and unit.
#[derive(Debug, Clone, Default)]
pub struct Axis {
    label: String,
    scale: Scale,
    ends: Option<(f64, f64)>,
}

#[derive(Debug, Clone, Default, PartialEq)]
enum Scale {
    #[default]
    Even,
    /// Log scale.
    Powers,
    /// Names instead of numbers, at 0, 1, 2 and so on.
    Names(Vec<String>),
}

impl Axis {
    /// Creates an axis with a linear scale.
    pub fn even(label: impl Into<String>) -> Self {
        Self { label: label.into(), ..Self::default() }
    }

    /// Creates an axis with a log scale.
    pub fn powers(label: impl Into<String>) -> Self {
        Self { label: label.into(), scale: Scale::Powers, ends: None }
    }

    /// Creates an axis of names, at 0, 1, 2 and so on.
    pub fn names<N: Into<String>>(label: impl Into<String>, names: impl IntoIterator<Item = N>) -> Self {
        let names: Vec<String> = names.into_iter().map(Into::into).collect();
        let ends = Some((-0.5, names.len() as f64 - 0.5));
        Self { label: label.into(), scale: Scale::Names(names), ends }
    }

    /// Sets the ends of the axis, which otherwise follow the values.
    pub fn within(mut self, from: f64, to: f64) -> Self {
        self.ends = Some((from, to));
        self
    }

    pub(super) fn label(&self) -> &str {
        &self.label
    }

    /// Returns the axis with its ends, which include all values unless they were set.
    pub(super) fn around(&self, values: impl Iterator<Item = f64>) -> Laid {
        let logarithmic = self.scale == Scale::Powers;
        let (low, high) = self.ends.unwrap_or_else(|| {
            let usable = values.filter(|value| value.is_finite() && (!logarithmic || *value > 0.0));
            let (low, high) =
                usable.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
            match (low <= high, logarithmic) {
                (false, _) => (if logarithmic { 0.1 } else { 0.0 }, 1.0),
                (true, true) => (low / 1.25, high * 1.25),
                (true, false) => {
                    let room = 0.04 * if high > low { high - low } else { high.abs().max(1.0) };
                    // An axis that would start close to 0 starts at 0.
                    (if low >= 0.0 && low < 0.3 * high { 0.0 } else { low - room }, high + room)
                }
            }
        });
        Laid { scale: self.scale.clone(), low, high }
    }
}

/// An axis whose ends are known.
pub(super) struct Laid {
    scale: Scale,
    low: f64,
    high: f64,
}

impl Laid {
    /// Returns the position from 0 at the low end to 1 at the high one; values without a logarithm lie just outside.
    pub fn part(&self, value: f64) -> f64 {
        match self.scale {
            Scale::Powers if value <= 0.0 => -0.05,
            Scale::Powers => (value / self.low).ln() / (self.high / self.low).ln(),
            _ => (value - self.low) / (self.high - self.low),
        }
    }

    /// Returns whether the axis has no place for 0.
    pub fn is_logarithmic(&self) -> bool {
        self.scale == Scale::Powers
    }

    /// Returns numbers or names at their positions, and grid lines without a number.
    pub fn ticks(&self, about: u32) -> (Vec<(f64, String)>, Vec<f64>) {
        match &self.scale {
            Scale::Names(names) => {
                (names.iter().enumerate().map(|(i, name)| (i as f64, name.clone())).collect(), vec![])
            }
            Scale::Even => {
                let ticks = plot::ticks(self.low, self.high, about);
                let name = |tick: f64| if tick.abs() >= 1e3 { format::count(tick) } else { plot::number(tick) };
                (ticks.into_iter().map(|tick| (tick, name(tick))).collect(), vec![])
            }
            Scale::Powers => self.powers(about),
        }
    }

    fn powers(&self, about: u32) -> (Vec<(f64, String)>, Vec<f64>) {
        let inside = |value: &f64| *value >= self.low * (1.0 - 1e-9) && *value <= self.high * (1.0 + 1e-9);
        let (first, last) = (self.low.log10().floor() as i32, self.high.log10().ceil() as i32);
        let decades = (self.high / self.low).log10();
        let at = |factor: f64| (first..=last).map(move |power| (power, factor * 10f64.powi(power)));
        // Where there are few powers, numbers between them are labelled too; where there are many, not all of them are.
        let named: &[f64] = if decades <= 1.3 {
            &[1.0, 2.0, 3.0, 5.0, 7.0]
        } else if decades <= 2.5 {
            &[1.0, 2.0, 5.0]
        } else {
            &[1.0]
        };
        let step = (decades / f64::from(about)).ceil().max(1.0) as i32;
        let ticks =
            named.iter().flat_map(|&factor| at(factor)).filter(|(power, value)| power % step == 0 && inside(value));
        let lines = (2..10).flat_map(|factor| at(f64::from(factor))).map(|(_, value)| value).filter(inside);
        (
            ticks.map(|(_, value)| (value, power_name(value))).collect(),
            if decades <= 3.0 { lines.collect() } else { vec![] },
        )
    }
}

/// Formats a power as `0.01`, `1,000`, or `10⁻⁶` where that would be long.
fn power_name(value: f64) -> String {
    let power = value.log10().round() as i32;
    let is_power = (value / 10f64.powi(power) - 1.0).abs() < 1e-6;
    if is_power && !(-4..=5).contains(&power) {
        return format!("10{}", plot::superscript(power));
    }
    if value >= 1.0 { format::count(value) } else { plot::number(value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_are_named_and_placed() {
        let axis = Axis::powers("rate").within(1e-6, 1.0).around(std::iter::empty());
        let (ticks, _) = axis.ticks(8);
        let names: Vec<&str> = ticks.iter().map(|(_, name)| name.as_str()).collect();
        assert_eq!(names, ["10⁻⁶", "10⁻⁵", "0.0001", "0.001", "0.01", "0.1", "1"]);
        assert!((axis.part(1e-3) - 0.5).abs() < 1e-12);
        assert!(axis.part(0.0) < 0.0);
    }

    #[test]
    fn ends_include_all_values() {
        let axis = Axis::even("k").around([1.0, 25.0].into_iter());
        assert!(axis.part(1.0) >= 0.0 && axis.part(25.0) <= 1.0);
        assert_eq!(axis.part(0.0), 0.0);
        let names = Axis::names("", ["a", "b"]).around(std::iter::empty());
        assert_eq!((names.part(0.0), names.part(1.0)), (0.25, 0.75));
    }
}
