//! The forest data: UCI CoverType, 581,012 places.
//!
//! The paper says "11 chosen attributes" but not which. We take the ten quantitative ones and the label, in raw units;
//! the other 44 of the file are flags.

use std::process::Command;

use anyhow::Context as _;
use nearset::{Rng, Seed};

use super::points::Point;

/// The number of attributes used.
pub const ATTRIBUTES: usize = 11;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/data/covtype/covtype.data.xz");

/// The path of the file as shown to a user.
pub const SHOWN: &str = "../shared/data/covtype/covtype.data.xz";

/// Reads every `step`-th place in random order, since the file goes through the forest. Returns `None` if the file or
/// `xz` is missing.
pub fn places(step: usize, seed: Seed) -> anyhow::Result<Option<Vec<Point<ATTRIBUTES>>>> {
    let decoded = Command::new("xz").args(["-dc", FILE]).output().ok().filter(|output| output.status.success());
    let Some(output) = decoded else { return Ok(None) };
    let text = str::from_utf8(&output.stdout).context("CoverType is not text")?;
    let mut places = Vec::new();
    for (i, line) in text.lines().enumerate().step_by(step) {
        places.push(place(line).with_context(|| format!("line {} of CoverType", i + 1))?);
    }
    crate::strings::shuffle(&mut places, &mut Rng::new(seed));
    Ok(Some(places))
}

/// Parses the ten quantitative attributes and the label of one line.
fn place(line: &str) -> anyhow::Result<Point<ATTRIBUTES>> {
    let mut fields = line.split(',');
    let mut point = [0.0; ATTRIBUTES];
    for value in &mut point[..ATTRIBUTES - 1] {
        let field = fields.next().context("ten numbers and a label are needed")?;
        *value = field.parse().with_context(|| format!("{field:?} is no number"))?;
    }
    let label = fields.next_back().context("the label is missing")?;
    point[ATTRIBUTES - 1] = label.parse().with_context(|| format!("{label:?} is no label"))?;
    Ok(point)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_ten_numbers_flags_and_a_label() {
        let point = place("2596,51,3,258,0,510,221,232,148,6279,1,0,0,5").unwrap();
        assert_eq!(point, [2596.0, 51.0, 3.0, 258.0, 0.0, 510.0, 221.0, 232.0, 148.0, 6279.0, 5.0]);
        assert!(place("1,2,3").unwrap_err().to_string().contains("ten numbers"));
        assert!(place("1,2,3,4,x,6,7,8,9,10,0,1").unwrap_err().to_string().contains("\"x\""));
    }
}
