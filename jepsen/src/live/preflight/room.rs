//! Room: CPUs, memory, open files and the temporary directory.

use std::fs;

use anyhow::{Context as _, Result, bail};
use rustix::fs::statvfs;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::scratch::Scratch;

/// Memory for five members with their disks, which are in memory, and the load.
const MEMORY_MIB: u64 = 3 << 10;
/// Room for histories and logs.
const DISK_MIB: u64 = 2 << 10;
/// Connections, devices and files of a run.
const FILES: u64 = 4096;
/// Number of CPUs, since members and the load work at the same time.
const CPUS: usize = 2;

pub(super) fn cpus(_scratch: &Scratch) -> Result<String> {
    let count = std::thread::available_parallelism().context("the number of CPUs is unknown")?.get();
    enough(count, CPUS, "CPUs")
}

pub(super) fn memory(_scratch: &Scratch) -> Result<String> {
    let text = fs::read_to_string("/proc/meminfo").context("/proc/meminfo")?;
    let available =
        text.lines().find_map(|line| line.strip_prefix("MemAvailable:")?.trim().strip_suffix(" kB"));
    let kib: u64 = available.context("no MemAvailable in /proc/meminfo")?.parse()?;
    enough(kib / 1024, MEMORY_MIB, "MiB available")
}

/// Raises the soft limit of open files of this process to the hard limit.
pub(super) fn files(_scratch: &Scratch) -> Result<String> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_some_and(|current| current < FILES) {
        setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })
            .context("the limit of open files")?;
    }
    enough(getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX), FILES, "open files")
}

pub(super) fn disk(scratch: &Scratch) -> Result<String> {
    let disk = statvfs(scratch.path()).context("the temporary directory")?;
    enough(disk.f_bavail.saturating_mul(disk.f_frsize) >> 20, DISK_MIB, "MiB free")
}

fn enough<N: PartialOrd + std::fmt::Display>(is: N, least: N, unit: &str) -> Result<String> {
    if is < least {
        bail!("{is} {unit}, and runs need {least}");
    }
    Ok(format!("{is} {unit}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_little_is_an_error_with_both_numbers() {
        assert_eq!(enough(2, 2, "CPUs").unwrap(), "2 CPUs");
        assert_eq!(enough(1, 2, "CPUs").unwrap_err().to_string(), "1 CPUs, and runs need 2");
    }
}
