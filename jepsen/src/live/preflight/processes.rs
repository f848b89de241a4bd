//! Attempts with processes: rights, programs, and the faults of a supervised process.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use super::scratch::Scratch;

/// Programs that live runs call, with an argument that has no effect.
const PROGRAMS: [(&str, &str); 11] = [
    ("ip", "-Version"),
    ("nsenter", "--version"),
    ("unshare", "--version"),
    ("fsfreeze", "--version"),
    ("fallocate", "--version"),
    ("mount", "--version"),
    ("umount", "--version"),
    ("mkfs.ext4", "-V"),
    ("truncate", "--version"),
    ("sync", "--version"),
    ("awk", "BEGIN { }"),
];
/// Error number of `EIO`.
const EIO: &str = "5";
/// Shift of the clock in the attempt: one day.
const SHIFT_MS: u64 = 86_400_000;

pub(super) fn root(_scratch: &Scratch) -> Result<String> {
    let user = rustix::process::geteuid();
    if !user.is_root() {
        bail!("the user is {}", user.as_raw());
    }
    Ok("effective user 0".into())
}

pub(super) fn programs(scratch: &Scratch) -> Result<String> {
    let mut missing = Vec::new();
    for (program, argument) in PROGRAMS {
        if let Err(error) = scratch.output(Command::new(program).arg(argument)) {
            missing.push(format!("{error:#}"));
        }
    }
    if !missing.is_empty() {
        bail!("{}", missing.join("; "));
    }
    Ok(PROGRAMS.map(|(program, _)| program).join(" "))
}

pub(super) fn compiler(scratch: &Scratch) -> Result<String> {
    scratch.outside().map(|_program| "compiles outside.c".into())
}

pub(super) fn fsync(scratch: &Scratch) -> Result<String> {
    let script = format!(
        "export LC_ALL=C
         echo x > synced; sync=$(command -v sync)
         : > control; \"$1\" supervise control \"$sync\" synced
         echo 'fsync-errno {EIO}' > control
         if \"$1\" supervise control \"$sync\" synced 2> said; then echo 'fsync works' >&2; exit 1; fi
         grep -o 'Input/output error' said || {{ cat said >&2; exit 1; }}"
    );
    scratch.mounts(&script)
}

pub(super) fn clock(scratch: &Scratch) -> Result<String> {
    let shift_s = SHIFT_MS / 1000;
    let script = format!(
        "echo 'clock-shift-ms {SHIFT_MS}' > control; date=$(command -v date)
         there=$(\"$1\" supervise control \"$date\" +%s) here=$(date +%s)
         echo \"a clock {shift_s} s ahead is $((there - here)) s ahead\" > said
         if [ $((there - here)) -lt {} ] || [ $((there - here)) -gt {} ]; then cat said >&2; exit 1; fi
         cat said",
        shift_s - 10,
        shift_s + 10
    );
    scratch.mounts(&script)
}

pub(super) fn boot_id(scratch: &Scratch) -> Result<String> {
    let script = "id=/proc/sys/kernel/random/boot_id
         echo other > id; mount --bind id $id
         [ \"$(cat $id)\" = other ]; echo 'a bind mount replaces it'";
    scratch.mounts(script)
}

pub(super) fn cpu(scratch: &Scratch) -> Result<String> {
    let group = Group::make()?;
    let script = "echo $$ > \"$1/cgroup.procs\"; timeout 0.3 sh -c 'while :; do :; done' || true";
    scratch.output(Command::new("sh").args(["-ec", script, "sh"]).arg(&group.path))?;
    let statistics = fs::read_to_string(group.path.join("cpu.stat")).context("cpu.stat")?;
    let throttled = statistics.lines().find_map(|line| line.strip_prefix("nr_throttled "));
    let throttled = throttled.context("the group counts no throttling")?;
    if throttled == "0" {
        bail!("a process with 10 % of a CPU was never throttled");
    }
    Ok(format!("10 % of a CPU throttles a loop: {throttled} periods in 0.3 s"))
}

/// Control group with 10 % of a CPU.
struct Group {
    path: PathBuf,
}

impl Group {
    fn make() -> Result<Self> {
        let (v1, v2) = (Path::new("/sys/fs/cgroup/cpu"), Path::new("/sys/fs/cgroup"));
        let is_v1 = v1.join("cpu.cfs_quota_us").exists();
        let parent = if is_v1 { v1 } else { v2 };
        let path = parent.join(format!("ipam-jepsen-preflight-{}", uuid::Uuid::new_v4()));
        fs::create_dir(&path).with_context(|| path.display().to_string())?;
        let group = Self { path };
        if is_v1 {
            group.write("cpu.cfs_period_us", "100000")?;
            group.write("cpu.cfs_quota_us", "10000")?;
        } else {
            // The write has no effect if the controller is already enabled.
            fs::write(v2.join("cgroup.subtree_control"), "+cpu").context("the controller cpu")?;
            group.write("cpu.max", "10000 100000")?;
        }
        Ok(group)
    }

    fn write(&self, file: &str, value: &str) -> Result<()> {
        let path = self.path.join(file);
        fs::write(&path, value).with_context(|| path.display().to_string())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir(&self.path) {
            eprintln!("{}: {error}", self.path.display());
        }
    }
}
