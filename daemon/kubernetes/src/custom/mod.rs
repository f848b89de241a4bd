//! Custom resources that are applied to the servers: their kinds, the next step for each, and its status.

mod facts;
mod host_policy;
mod kind;
mod pool;
mod reservation;
mod status;
mod step;
mod subnet;
mod views;

pub(crate) use self::facts::{CustomFacts, CustomObject, length};
pub(crate) use self::host_policy::HostPolicies;
pub(crate) use self::kind::CustomKind;
pub(crate) use self::pool::Pools;
pub(crate) use self::reservation::Reservations;
pub(crate) use self::status::{Decision, changes, condition, message, status};
pub(crate) use self::step::{Step, Stored, foreign, step};
pub(crate) use self::subnet::Subnets;
pub(crate) use self::views::CustomViews;
