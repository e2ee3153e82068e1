//! The file format under damage, and for ever.
//!
//! Claim: whatever happens to a file, opening it gives the filter that was written or a typed error, never a panic; and what
//! version 1 wrote is read by every later build. No file takes longer than its spec states, which has a limit.

mod any;
mod damage;
mod drive;
mod fields;
mod frozen;
mod mutation;
mod samples;
