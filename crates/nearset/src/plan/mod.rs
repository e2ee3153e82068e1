//! What a filter will do, worked out before it is built.
//!
//! Claim: an error rate stated here is the exact value of its model, not a bound, unless its name says bound.
//! Invariant: [`curve`] holds pure formulas over plain numbers and knows no hash family, item or filter.
//! Not here: drawing hash functions (`family`), holding bits (`filter`).

pub mod curve;
