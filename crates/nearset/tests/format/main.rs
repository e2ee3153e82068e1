//! The file format under damage, and for ever.
//!
//! Claim: whatever happens to a file, opening it gives the filter that was written or a typed error, never a panic; and what
//! version 1 wrote is read by every later build.

mod any;
mod damage;
mod frozen;
mod mutation;
mod samples;
