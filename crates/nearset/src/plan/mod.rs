//! What a filter will do, worked out before it is built.
//!
//! Claim: an error rate stated here is the exact value of its model, not a bound, unless its name says bound.
//! Invariant: the search over specs stands on top of `filter`, which in turn knows nothing of goals.
//! Not here: the formulas (the `nearset-theory` crate), drawing hash functions (`family`), holding bits (`filter`).

mod advice;
mod calibrate;
mod goal;
mod metric;
mod outcome;
mod search;
mod text_dedup;
mod text_join;

pub use advice::{Advice, advise};
pub use calibrate::{CalibrateError, Calibration, calibrate, recalibrate};
pub use goal::{Background, FarModel, Goal, GoalError, Interval, Minimise};
pub use metric::{Metric, MetricError, MetricName, Shape};
pub use outcome::{CurvePoint, GreyZone, Plan, PlanError, PlannedSpec, RunnerUp, Structure, Work};
pub use search::{IndexPlan, NotesIndex, plan, plan_index};
#[cfg(test)]
pub(crate) use text_dedup::MAX_UNRELATED;
pub use text_dedup::{TextDedup, TextDedupError};
pub use text_join::TextJoin;
