//! Causes: the reason of each refusal and wait, as a code with typed values.

#[macro_use]
mod declare;
mod parts;
#[cfg(test)]
mod tests;
mod words;

mod catalogue;

pub use self::catalogue::*;
pub use parts::{
    Claimed, Closed, Constant, Counted, Example, HeldBy, KeyedField, NamedController, NamedPrefix,
    NeverGiven, RejectReason, Rule, SpecialUse, TextField, Unserved, UsedBy, Verdict,
};
