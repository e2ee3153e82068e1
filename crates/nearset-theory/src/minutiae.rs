//! Fingerprints: hash functions that look only at prints with minutiae in chosen grid squares (course notes).
//!
//! Claim: a function holds `squares` squares of a grid and hashes only prints that occupy all of them. A square holds a
//! minutia with probability `occupancy`, and with probability `agreement` given that another print of the same finger
//! has one there. Both prints occupy all squares with probability `(occupancy agreement)^squares` if they come from one
//! finger, and `occupancy^(2 squares)` if from two.
//! Many such functions are joined by OR, and groups of them by AND ([`super::amplify::Cascade`]).

/// How minutiae are distributed, and how many squares a function looks at.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Minutiae {
    /// Probability that a square holds a minutia.
    pub occupancy: f64,
    /// The same, given that another print of the same finger has one there.
    pub agreement: f64,
    /// Squares that a function looks at.
    pub squares: u32,
}

impl Minutiae {
    /// The notes' example: occupancy .2, agreement .8, three squares.
    pub const NOTES: Self = Self { occupancy: 0.2, agreement: 0.8, squares: 3 };

    /// Returns the probability that a function hashes two prints of the same finger together.
    pub fn same_finger(&self) -> f64 {
        libm::pow(self.occupancy * self.agreement, f64::from(self.squares))
    }

    /// Returns the probability that a function hashes prints of two different fingers together.
    pub fn different_fingers(&self) -> f64 {
        libm::pow(self.occupancy, 2.0 * f64::from(self.squares))
    }

    /// Returns the probability that a function hashes a print at all, which is how much of a table one print fills.
    pub fn hashed(&self) -> f64 {
        libm::pow(self.occupancy, f64::from(self.squares))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        amplify::{Cascade, Step::*},
        assert_close, assert_printed,
    };

    #[test]
    fn three_squares_are_as_printed() {
        assert_close(Minutiae::NOTES.same_finger(), 0.004_096, 1e-12);
        assert_close(Minutiae::NOTES.different_fingers(), 0.000_064, 1e-12);
        assert_close(Minutiae::NOTES.hashed(), 0.008, 1e-12);
    }

    #[test]
    fn an_or_of_1024_is_as_printed_and_an_and_after_it_is_the_power() {
        let (same, different) = (Minutiae::NOTES.same_finger(), Minutiae::NOTES.different_fingers());
        let or = Cascade::new([Or(1024)]);
        assert_printed(or.probability(same), 0.985, 3);
        assert_printed(or.probability(different), 0.063, 3);
        let two_groups = Cascade::new([Or(1024), And(2)]);
        assert_close(two_groups.probability(same), libm::pow(or.probability(same), 2.0), 1e-12);
        // Requiring two groups costs 1.5 % of true matches and removes 94 % of the false ones.
        assert_printed(two_groups.probability(same), 0.970, 3);
        assert_printed(two_groups.probability(different), 0.0040, 4);
    }
}
