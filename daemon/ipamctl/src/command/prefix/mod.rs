//! `ipamctl prefix`: blocks of addresses whose owners divide them further.

mod set;
mod verbs;
mod view;

pub(crate) use verbs::{EXAMPLES, Verb, run};
pub(crate) use view::block;
