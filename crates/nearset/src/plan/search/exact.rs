//! Structures for Hamming distance that lose nothing within the radius.

use super::{Attempt, Objective};
use crate::plan::Goal;

pub(super) fn attempts(_goal: &Goal, _bits: u32, _objective: &Objective) -> Vec<Attempt> {
    Vec::new()
}
