//! Checks that need no state: at the door, and again in `apply`.

mod agent;
mod bulk;
mod check;
mod claim;
mod gateway;
mod host_policy;
mod terms;
mod token;

pub(crate) use self::check::{check_boot_id, check_host_bits, inside, one_family, text, within};
use self::claim::{check_adoption, check_take_over, check_wait};
pub(crate) use self::gateway::{check_gateway, check_routes};
