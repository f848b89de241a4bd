//! placeholder
use std::process::ExitCode;
/// Flags of `ipamd dev`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Verify, stop, and exit 0 or 1.
    #[arg(long)]
    pub check: bool,
    /// Keep data.
    #[arg(long)]
    pub keep: Option<std::path::PathBuf>,
}
/// `ipamd dev`
pub fn main(_: &Arguments) -> ExitCode {
    ExitCode::FAILURE
}
