//! Programs of the system that the bench calls, and a small C program that the bench compiles.

use std::ffi::OsStr;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

use crate::nemesis::Cut;

/// C program with system calls that safe Rust lacks, by file name.
const OUTSIDE: [(&str, &str); 3] = [
    ("outside.h", include_str!("outside.h")),
    ("outside.c", include_str!("outside.c")),
    ("supervise.c", include_str!("supervise.c")),
];

/// The tools, ready to be used.
#[derive(Debug)]
pub(crate) struct Tools {
    /// Path of the compiled C program.
    pub(crate) outside: PathBuf,
}

impl Tools {
    /// Compiles the C program into `dir`.
    pub(crate) fn make(dir: &Path) -> Result<Self> {
        let outside = dir.join("outside");
        let sources = dir.join("outside-sources");
        std::fs::create_dir_all(&sources)?;
        for (name, text) in OUTSIDE {
            std::fs::write(sources.join(name), text)?;
        }
        let compiled = Command::new("cc")
            .args(["-O1", "-Wall", "-Werror", "-pthread", "-o"])
            .arg(&outside)
            .args(["outside.c", "supervise.c"])
            .current_dir(&sources)
            .stdin(Stdio::null())
            .status()
            .context("can't start cc; install gcc or another C compiler")?;
        if !compiled.success() {
            bail!("outside.c can't be compiled; what the compiler misses stands above");
        }
        Ok(Self { outside })
    }

    /// C program that runs another program with faults.
    pub(crate) fn outside(&self) -> &Path {
        &self.outside
    }

    /// Cuts the power of the file systems at `places`, nearly at once, and kills the processes just before.
    pub(crate) fn cut(&self, how: Cut, places: &[&Path], processes: &[u32]) -> Result<()> {
        let mut words = vec![OsStr::new("cut").to_owned(), flag(how).to_string().into()];
        words.extend(places.iter().map(|place| place.as_os_str().to_owned()));
        words.push("--".into());
        words.extend(processes.iter().map(|process| process.to_string().into()));
        call(&self.outside, words)
    }
}

/// Number of ext4's ioctl for a mode.
fn flag(cut: Cut) -> u8 {
    match cut {
        Cut::Flushed => 0,
        Cut::Journal => 1,
        Cut::Hard => 2,
    }
}

/// Runs a program to its end; returns its output in the error of a failure.
pub(crate) fn call<S: AsRef<OsStr>>(
    program: impl AsRef<OsStr>,
    words: impl IntoIterator<Item = S>,
) -> Result<()> {
    let program = program.as_ref();
    let shown = program.display();
    let mut command = Command::new(program);
    // Ctrl-C must reach this process only, whose cleanup needs the program.
    command.args(words).stdin(Stdio::null()).process_group(0);
    let output = command.output().with_context(|| {
        format!("can't start {shown}; the packages e2fsprogs, mount and util-linux have it")
    })?;
    if !output.status.success() {
        bail!("{shown} failed ({}): {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}
