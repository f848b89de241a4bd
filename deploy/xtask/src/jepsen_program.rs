//! The program of measurements, power cuts and fault injection, which several tasks run.

use std::ffi::OsString;

/// Name of its package and of its binary.
pub(crate) const BENCH: &str = "ipam-jepsen";

/// Arguments of one of its tasks, after those that name the programs.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Arguments {
    /// Arguments of the bench; --help lists them.
    #[arg(value_name = "ARGUMENTS", trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) words: Vec<OsString>,
}
