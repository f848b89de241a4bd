//! `ipamctl apply` and `ipamctl diff`: resources in files, applied in one transaction.

mod create;
mod documents;
mod kind;
mod nmstate;
mod plan;
mod run;
mod spiderpool;
#[cfg(test)]
mod tests;
mod view;

pub(crate) use create::{CreateArguments, create};
pub(crate) use documents::load;
pub(crate) use run::{ApplyArguments, DiffArguments, diff, run};
