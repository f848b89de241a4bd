//! Network namespace that a file descriptor of this process keeps.
//!
//! It has no name in the file system and ends with the process, also after `kill -9`.

use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use anyhow::{Context as _, Result, anyhow, bail};
use nix::sched::{CloneFlags, unshare};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// Namespace with an `lo` of its own and nothing else.
#[derive(Debug, Clone)]
pub(crate) struct Namespace {
    file: Arc<File>,
    path: PathBuf,
}

impl Namespace {
    /// Creates a namespace.
    pub(crate) fn make() -> Result<Self> {
        let file = on_thread(|| {
            unshare(CloneFlags::CLONE_NEWNET).context("only root can make a network namespace")?;
            File::open("/proc/thread-self/ns/net").context("/proc/thread-self/ns/net")
        })?;
        let path = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()).into();
        Ok(Self { file: Arc::new(file), path })
    }

    /// Path for `nsenter` and `setns`, valid as long as this process keeps the namespace.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Moves the calling thread into the namespace.
    pub(crate) fn enter(&self) -> Result<()> {
        move_into_link_name_space(self.file.as_fd(), Some(LinkNameSpaceType::Network))
            .context("can't enter a network namespace; run this as root")
    }

    /// Runs work inside, on a thread of its own.
    pub(crate) fn within<T: Send>(&self, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
        on_thread(|| {
            self.enter()?;
            work()
        })
    }

    /// Runs a program inside, with input, to its end; returns its output.
    pub(crate) fn call(&self, program: &str, words: &[&str], input: &str) -> Result<String> {
        self.within(|| {
            let mut child = Command::new(program)
                .args(words)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .with_context(|| format!("can't start {program}"))?;
            if let Some(mut pipe) = child.stdin.take() {
                pipe.write_all(input.as_bytes())?;
            }
            let output = child.wait_with_output()?;
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
            if !output.status.success() {
                bail!("{program} failed ({}): {}", output.status, text(&output.stderr));
            }
            Ok(text(&output.stdout))
        })
    }
}

/// Runs work on a thread of its own, because namespaces belong to threads.
fn on_thread<T: Send>(work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    std::thread::scope(|scope| {
        scope.spawn(work).join().map_err(|_panic| anyhow!("a thread in a namespace panicked"))?
    })
}
