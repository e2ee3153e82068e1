//! Numbers with a meaning: how far apart, how alike.

use super::ItemError;

/// How far apart two items are, in the metric's own unit: differing positions (Hamming), `1 - J` (Jaccard), radians
/// (angle), the norm of the difference (L1, L2). The default is that of equal items.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct Distance(f64);

impl Distance {
    /// The distance of equal items.
    pub(crate) const ZERO: Distance = Distance(0.0);

    /// Creates a distance from a number.
    ///
    /// # Errors
    /// If the number is negative, infinite or NaN.
    pub fn new(value: f64) -> Result<Self, ItemError> {
        if value >= 0.0 && value.is_finite() { Ok(Self(value)) } else { Err(ItemError::NotADistance { value }) }
    }

    /// Creates a distance from a number of differing positions.
    pub fn from_count(count: u32) -> Self {
        Self(f64::from(count))
    }

    /// Returns the number.
    pub const fn value(self) -> f64 {
        self.0
    }
}

/// How alike two items are: 1 means equal, and 0, the default, that they have nothing in common.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct Similarity(f64);

impl Similarity {
    /// The similarity of items with nothing in common.
    pub(crate) const NONE: Similarity = Similarity(0.0);

    /// Creates a Jaccard similarity or containment, from 0 to 1.
    ///
    /// # Errors
    /// If the number lies outside that range.
    pub fn jaccard(value: f64) -> Result<Self, ItemError> {
        if (0.0..=1.0).contains(&value) {
            Ok(Self(value))
        } else {
            Err(ItemError::NotASimilarity { value, least: 0.0 })
        }
    }

    /// Returns the angle, in radians, of a cosine from -1 to 1.
    pub(crate) fn angle_of_cosine(cosine: f64) -> Result<Distance, ItemError> {
        match (-1.0..=1.0).contains(&cosine) {
            true => Ok(Distance(libm::acos(cosine))),
            false => Err(ItemError::NotASimilarity { value: cosine, least: -1.0 }),
        }
    }

    /// Returns the number.
    pub const fn value(self) -> f64 {
        self.0
    }

    /// Returns the Jaccard distance `1 - J`.
    pub(crate) fn jaccard_distance(self) -> Distance {
        Distance((1.0 - self.0).clamp(0.0, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sensible_numbers_pass() {
        for bad in [-0.1, f64::NAN, f64::INFINITY] {
            assert!(Distance::new(bad).is_err());
            assert!(Similarity::jaccard(bad).is_err());
        }
        assert!(Similarity::jaccard(1.01).is_err());
    }
}
