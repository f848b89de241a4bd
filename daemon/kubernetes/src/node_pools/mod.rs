//! Pools of host addresses (`NodeIPPool`): the subnet and the pool of each object, and its status.

mod facts;
mod octets;
mod plan;
mod range;
mod status;
mod view;

pub(crate) use self::facts::PoolFacts;
pub(crate) use self::plan::{Known, Own, Step, SubnetRow, plan};
pub(crate) use self::range::NodeRange;
pub(crate) use self::status::{Held, Shown, status};
pub(crate) use self::view::{NodePoolView, PLURAL, kind};
