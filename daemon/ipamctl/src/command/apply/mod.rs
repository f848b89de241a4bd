//! `ipamctl apply` and `ipamctl diff`: what files say, in one step, all or none.

mod documents;
mod kind;
mod plan;
mod run;
mod spiderpool;
#[cfg(test)]
mod tests;
mod view;

pub(crate) use run::{ApplyArguments, DiffArguments, diff, run};
