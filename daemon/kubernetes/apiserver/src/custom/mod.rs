//! Custom resources: their definitions, and structural schemas.

mod cause;
mod defaults;
mod definition;
mod deprecation;
mod prune;
mod rules;
mod validate;
mod version;

pub(crate) use self::cause::{Cause, Reason};
pub(crate) use self::definition::{CLEANUP, accept};
pub(crate) use self::version::{Custom, versions};
