//! The file format under damage, and over time.
//!
//! Claim: whatever happens to a file, opening it gives the filter that was written or a typed error, never a panic; and
//! every later build reads what version 1 wrote. No operation on a file takes longer than its spec states, which has a
//! limit.

mod any;
mod damage;
mod drive;
mod fields;
mod frozen;
mod mutation;
mod samples;
