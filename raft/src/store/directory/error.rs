//! Errors of a data directory, and their remedies.

use std::io;
use std::path::{Path, PathBuf};

use ipam_machine::Broken;
use ipam_machine::level::UnknownLevel;

/// Unusable data directory.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another process has locked the directory.
    #[error(
        "another ipamd (pid {pid}) uses {}: stop it, or give this one a data directory of its own",
        dir.display()
    )]
    Locked {
        /// The directory.
        dir: PathBuf,
        /// Pid from the lock file of the process that holds the directory; `?` if the file has none.
        pid: String,
    },
    /// The directory belongs to another member.
    #[error(
        "{} belongs to the member {found:?}, but this one is called {wanted:?}: correct the name in the \
         configuration, or point it at another data directory",
        dir.display()
    )]
    OtherName {
        /// The directory.
        dir: PathBuf,
        /// Its owner.
        found: String,
        /// Name of the requesting member.
        wanted: String,
    },
    /// The state in the directory breaks an invariant of the machine.
    #[error("the state in the data directory can't be right, and isn't served: {0}")]
    Broken(#[from] Broken),
    /// The contents are damaged, and no other file of the directory can replace them.
    #[error(
        "{} is damaged: {what}. This member can no longer vouch for what it acknowledged, so it doesn't start. \
         If a majority of the others is healthy, move this data directory away (keep it until all is well), let a \
         new member join and take this one's place: ipamctl cluster replace; if none is, restore a backup",
        path.display()
    )]
    Damaged {
        /// The file or directory.
        path: PathBuf,
        /// The sign of the damage.
        what: String,
    },
    /// A file was written by a newer version.
    #[error(
        "{} has version {version}, this ipamd reads up to {newest}: start the newer ipamd again",
        path.display()
    )]
    TooNew {
        /// The file.
        path: PathBuf,
        version: u32,
        /// The newest version known here.
        newest: u32,
    },
    /// The state has a level that this program doesn't know.
    #[error("{}: {source}", dir.display())]
    Level {
        /// The directory.
        dir: PathBuf,
        /// The level, and the remedy.
        source: UnknownLevel,
    },
    /// The operating system refused.
    #[error(
        "{}: {source}; check the disk, its free space and the rights of the data directory, then start again",
        path.display()
    )]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// A thread of the store has ended.
    #[error("the store has stopped: {0}; look at the log lines before this one, then start again")]
    Stopped(String),
}

impl StoreError {
    /// Returns a function for `map_err` that adds the path to an error of the operating system.
    pub(in crate::store) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        move |source| Self::Io { path: path.to_owned(), source }
    }

    /// Converts the error of a thread that can't be started; for `map_err`.
    pub(crate) fn thread(error: io::Error) -> Self {
        Self::Stopped(format!("a thread can't be started: {error}"))
    }

    pub(in crate::store) fn damaged(path: &Path, what: impl Into<String>) -> Self {
        Self::Damaged { path: path.to_owned(), what: what.into() }
    }
}
