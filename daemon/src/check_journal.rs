//! `ipamd check-journal`: verification of a member's history while the member is down.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use ipam_api::brand::DATA_DIR;
use ipam_api::problem::exit;
use ipam_raft::{JournalReport, check_journal};

use crate::screen;

/// Arguments of `ipamd check-journal`: the directory of a stopped member.
#[derive(Debug, Args)]
#[command(
    after_help = "Read-only. Exits with 7 if a file is damaged, and names the file.\n\nExamples:\n  ipamd check-journal\n  ipamd check-journal --data-dir /var/lib/ipamd"
)]
pub struct Arguments {
    /// Data directory of the member, which must be stopped.
    #[arg(long, value_name = "DIR", default_value = DATA_DIR)]
    data_dir: PathBuf,
}

/// Runs the command.
#[must_use]
pub fn main(arguments: &Arguments) -> ExitCode {
    match check_journal(&arguments.data_dir) {
        Ok(report) => {
            screen::out(&text(&arguments.data_dir, &report));
            if report.damaged.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(exit::FOUND) }
        }
        Err(error) => {
            screen::err(&format!("ipamd: {error}\n"));
            ExitCode::FAILURE
        }
    }
}

/// Human-readable report, the most important line last.
fn text(dir: &Path, report: &JournalReport) -> String {
    let mut text = format!(
        "journal of {}: {} sealed segments that are whole, with {} events",
        dir.display(),
        report.sealed,
        report.sealed_events
    );
    // Writing to a string doesn't fail.
    if let Some((oldest, newest)) = report.span {
        let _ = write!(text, " ({oldest} to {newest})");
    }
    let _ = writeln!(text, "; {} frames in the open one", report.open_frames);
    if report.torn {
        text.push_str("the open segment ends within a frame, as after a crash; the log brings it again\n");
    }
    for damaged in &report.damaged {
        let _ = writeln!(text, "damaged: {}: {}", damaged.path.display(), damaged.what);
    }
    text.push_str(if report.damaged.is_empty() {
        "The journal is as it was written.\n"
    } else {
        "Move the files that are named away, keep them, and start the member while the others are up: it \
         fetches sealed segments from them, and the open one from its log.\n"
    });
    text
}
