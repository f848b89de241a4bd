//! Reaper: a process that outlives the suite for a moment and cleans up after it.
//!
//! Its standard input is a pipe of the suite. The pipe ends with the suite, also after a kill. Then the
//! reaper thaws the disks, kills all processes with the mark of the suite in their environment, removes their
//! control groups, and removes the work directory.

use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::OnceLock;

use std::os::unix::process::CommandExt as _;

use anyhow::{Context as _, Result};

/// Environment variable of all processes of one suite.
const MARK: &str = "IPAM_JEPSEN_SUITE";

/// Arguments: the marked variable, the work directory, the prefix of the control groups.
const SCRIPT: &str = r#"cat >/dev/null
for round in 1 2 3 4 5 6 7 8 9 10; do
  for disk in "$2"/*.disk; do fsfreeze -u "$disk" 2>/dev/null; done
  left=$(grep -lzxF "$1" /proc/[0-9]*/environ 2>/dev/null | cut -d/ -f3)
  [ -z "$left" ] && break
  kill -9 $left 2>/dev/null
  sleep 0.1
done
for group in "$3"*; do [ -d "$group" ] && rmdir "$group"; done
umount -l "$2"/*.disk 2>/dev/null
umount -l "$2" 2>/dev/null
rmdir "$2" 2>/dev/null
exit 0
"#;

/// Mark of this process and its children.
fn value() -> &'static str {
    static VALUE: OnceLock<String> = OnceLock::new();
    VALUE.get_or_init(|| uuid::Uuid::new_v4().to_string())
}

/// Marks a command as part of the suite: its process ends with the suite, whatever happens.
pub(crate) fn mark(command: &mut Command) {
    command.env(MARK, value());
}

/// Running reaper. Dropping the value starts the cleanup and waits for its end.
#[derive(Debug)]
pub(super) struct Reaper {
    process: Child,
    suite: Option<ChildStdin>,
}

impl Reaper {
    /// Starts the reaper.
    pub(super) fn start(work_dir: &Path, groups: &Path) -> Result<Self> {
        let mut command = Command::new("sh");
        command.args(["-c", SCRIPT, "sh", &format!("{MARK}={}", value())]).arg(work_dir).arg(groups);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        // Signals to the suite's process group must not reach the reaper.
        let mut process = command.process_group(0).spawn().context("can't start sh")?;
        let suite = process.stdin.take();
        Ok(Self { process, suite })
    }
}

impl Drop for Reaper {
    fn drop(&mut self) {
        drop(self.suite.take());
        if let Err(error) = self.process.wait() {
            eprintln!("the reaper doesn't end: {error}");
        }
    }
}
