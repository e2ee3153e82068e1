//! What a filter, an index or a join will do, worked out before it is built.
//!
//! Claim: an error rate stated here is the exact value of its model, not a bound, unless its name says bound.
//! Invariant: the planner chooses among specs, and knows nothing of what holds bits or items.
//! Not here: the formulas (the `nearset-theory` crate), drawing hash functions (`family`), holding bits (`filter`).

mod advice;
mod dedup;
mod join;
mod outcome;
mod request;
pub(crate) mod search;

pub use advice::Advice;
#[cfg(test)]
pub(crate) use dedup::MAX_UNRELATED;
pub use outcome::{CurvePoint, Plan, PlanError, RunnerUp, Structure, Work};
pub(crate) use request::Goal;
pub use request::{Background, FarModel, Minimise, Request, RequestError};
pub use search::IndexPlan;
