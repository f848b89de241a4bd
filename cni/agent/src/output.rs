//! Output formats of the commands.

use clap::ValueEnum;

/// Output format.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Output {
    /// Text for people.
    Table,
    /// One document.
    Json,
}
