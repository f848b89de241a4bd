//! Tests of the renderers: golden files, refusals, and what any value renders to.

mod golden;
mod property;
mod refusals;
mod support;
