//! A run of `ipamd dev`, from its flags to the removal of its files and processes.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use tokio::signal::unix::{SignalKind, signal};

use super::console::{DevError, say};
use super::{cluster, demo};

/// Flags of `ipamd dev`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  ipamd dev                 runs until Ctrl-C, and removes all data\n  ipamd dev --keep ./data   keeps the data of the members for the next run\n  ipamd dev --check         verifies the cluster, stops, and exits with 0, or with 1 and the reason"
)]
pub struct Arguments {
    /// Verify the cluster, stop, and exit with 0, or with 1 and the reason.
    #[arg(long)]
    check: bool,
    /// Data directory to keep [default: a temporary one].
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
}

/// Runs `ipamd dev`.
#[must_use]
pub fn main(arguments: &Arguments) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let ended = match runtime {
        Ok(runtime) => runtime.block_on(run(arguments)),
        Err(error) => Err(DevError::new("the runtime can't be started", error)),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("ipamd dev: {error}"));
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: &Arguments) -> Result<(), DevError> {
    // The handlers exist before the directory, which no signal may leave behind.
    let handled = |kind| signal(kind).map_err(|error| DevError::new("a signal can't be handled", error));
    let mut interrupt = handled(SignalKind::interrupt())?;
    let mut terminate = handled(SignalKind::terminate())?;
    let interrupted = async {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    };
    let place = Place::make(arguments.keep.as_deref())?;
    let mut members = cluster::Members::default();
    let mut lab = None;
    let outcome = {
        let show = demo::show(&place.dir, arguments.check, &mut members, &mut lab);
        // An interrupt also ends a member that is being started, which is no failure.
        tokio::select! {
            biased;
            () = interrupted => match arguments.check {
                true => Err(DevError("interrupted before everything was verified".to_owned())),
                false => Ok(()),
            },
            outcome = show => outcome,
        }
    };
    let stopped = demo::clear(&mut members, lab).await;
    // Cleanup also runs after a failure.
    let removed = place.remove();
    outcome.and(stopped).and(removed)?;
    if arguments.check {
        say("check passed: everything was verified and nothing is left behind");
    }
    Ok(())
}

/// Directory of the members' data.
struct Place {
    dir: PathBuf,
    temporary: bool,
}

impl Place {
    fn make(keep: Option<&Path>) -> Result<Self, DevError> {
        let (dir, temporary) = match keep {
            Some(dir) => (dir.to_owned(), false),
            None => (std::env::temp_dir().join(format!("ipamd-dev-{}", uuid::Uuid::now_v7().simple())), true),
        };
        std::fs::create_dir_all(&dir)
            .and_then(|()| dir.canonicalize())
            .map(|dir| Self { dir: dir.clone(), temporary })
            .map_err(|error| DevError::new(format!("{} can't be made", dir.display()), error))
    }

    fn remove(self) -> Result<(), DevError> {
        if !self.temporary {
            say(&format!("data kept in {}", self.dir.display()));
            return Ok(());
        }
        std::fs::remove_dir_all(&self.dir)
            .map_err(|error| DevError::new(format!("{} can't be removed", self.dir.display()), error))
    }
}
