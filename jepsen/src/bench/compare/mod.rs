//! Comparison: measurements of all systems in turn, ratios of their medians, and bars of the ratios.

mod chart;
mod measure;
mod measurement;
mod plan;
mod results;
mod rounds;
mod rows;
mod table;

pub(super) use self::chart::write as write_charts;
pub(super) use self::measurement::Measurement;
pub(super) use self::plan::Plan;
pub(super) use self::rounds::compare;
pub(super) use self::table::{Judgement, judge, shown};
