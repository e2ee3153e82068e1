//! Plans, filters and runs for people.
//!
//! - [`words`]: numbers, metrics and promises.
//! - [`plan`]: a plan as a page of text.
//! - [`curves`], [`peers`], [`plot`]: plans and filters as charts, beside what others would choose, and charts as SVG.
//! - [`snippets`]: the commands and programs that make a plan.
//! - [`terminal`]: a curve of block characters.
//! - [`page`], [`run`]: what a run did, as one page of HTML, and the plain data that it is made from.
//!
//! Claim: every front end shows the same plan, filter or run in the same words and pictures.
//! Invariant: no I/O. Everything here is a function of its arguments.

pub mod curves;
pub mod page;
pub mod peers;
pub mod plan;
pub mod plot;
pub mod run;
pub mod snippets;
pub mod terminal;
pub mod words;
