//! Command line as a whole: help, words, and requests to a fake server.

mod changes;
mod cluster;
mod collection;
mod commands;
mod configuration;
mod exits;
mod flags;
mod golden;
mod grammar;
mod offsets;
mod places;
mod support;
pub(crate) mod world;

use ipam_api::{Code, Problem};
use serde_json::{Value, json};
pub(crate) use support::{Answers, code, meta, parse, pool, pretend, run, run_within};
use support::{allocation, split};

use crate::grammar::arguments::Arguments;
use crate::output::error::Failure;
use crate::settings::environment::Environment;
