//! Tests of the renderers: golden files, refusals, and properties of the output for any value.

mod golden;
mod property;
mod refusals;
mod support;
