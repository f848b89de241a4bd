//! Roll-out of host policies: one policy of kubernetes-nmstate (NNCP) for each node.
//!
//! Pure: the objects for the nodes, what they show, and which one is written next.

mod digest;
mod object;
mod policy;
mod rollout;
mod shown;
mod status;
mod view;

pub(crate) use self::object::{Content, digest_of, object, object_name};
pub(crate) use self::policy::Policy;
pub(crate) use self::rollout::{Action, Host, plan};
pub(crate) use self::shown::NncpFacts;
pub(crate) use self::status::{Blocked, Rollout, rollout};
pub(crate) use self::view::{HostPolicyView, PLURAL, kind};
