//! List of capabilities, and the order in which they are tried.

use anyhow::Result;
use serde::Serialize;

use super::scratch::Scratch;
use super::{disks, network, processes, room};

/// Capability of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Capability {
    /// Name.
    pub name: &'static str,
    /// True if the machine has it.
    pub ok: bool,
    /// Result of the attempt, or its error.
    pub detail: String,
    /// Means to get it.
    pub remedy: &'static str,
}

/// One capability and its attempt, which returns a detail.
struct Attempt(&'static str, fn(&Scratch) -> Result<String>, &'static str);

/// All attempts. Later ones fail if an earlier one of the same kind does.
const ATTEMPTS: &[Attempt] = &[
    Attempt("root", processes::root, "run this as root"),
    Attempt("programs", processes::programs, "install iproute2, util-linux, mount, e2fsprogs, coreutils"),
    Attempt("C compiler", processes::compiler, "install gcc and libc6-dev"),
    Attempt("network namespaces", network::namespaces, "use a kernel with CONFIG_NET_NS, and CAP_SYS_ADMIN"),
    Attempt(
        "TAP devices",
        network::devices,
        "use a kernel with CONFIG_TUN, and pass /dev/net/tun to a container",
    ),
    Attempt("IPv6", network::ipv6, "start the kernel without ipv6.disable=1"),
    Attempt("macvlan", network::macvlan, "use a kernel with CONFIG_MACVLAN"),
    Attempt(
        "ext4 on loop devices",
        disks::loops,
        "use a kernel with ext4 and loop devices, and CAP_SYS_ADMIN",
    ),
    Attempt("power cut", disks::power_cut, "use a kernel with EXT4_IOC_SHUTDOWN (4.10 or later)"),
    Attempt("stalled disk", disks::freeze, "install util-linux with fsfreeze"),
    Attempt("full disk", disks::full, "make room for files of 64 MiB in the temporary directory"),
    Attempt("fsync faults", processes::fsync, "use a kernel with seccomp user notification (5.5 or later)"),
    Attempt(
        "clock faults",
        processes::clock,
        "use a kernel with seccomp user notification, and CAP_SYS_PTRACE",
    ),
    Attempt("boot id", processes::boot_id, "allow bind mounts on /proc/sys/kernel/random/boot_id"),
    Attempt("CPU limit", processes::cpu, "mount the cpu controller of cgroups, writable"),
    Attempt("CPUs", room::cpus, "use a machine with two CPUs"),
    Attempt("memory", room::memory, "make 3 GiB of memory available"),
    Attempt("open files", room::files, "raise the hard limit: ulimit -Hn 16384"),
    Attempt("temporary directory", room::disk, "make 2 GiB of room there, or set TMPDIR"),
];

/// Tries all capabilities, in about three seconds. Only a raised limit of open files remains.
#[must_use]
pub fn check() -> Vec<Capability> {
    let scratch = Scratch::make();
    let attempt = |Attempt(name, attempt, remedy): &Attempt| {
        let done = match &scratch {
            Ok(scratch) => attempt(scratch),
            Err(error) => Err(anyhow::anyhow!("no temporary directory: {error:#}")),
        };
        let (ok, detail) = match done {
            Ok(detail) => (true, detail),
            Err(error) => (false, format!("{error:#}")),
        };
        Capability { name, ok, detail, remedy }
    };
    ATTEMPTS.iter().map(attempt).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_for_tests_has_all_capabilities() {
        let capabilities = check();
        let missing: Vec<_> = capabilities.iter().filter(|one| !one.ok).collect();
        assert!(missing.is_empty(), "{missing:#?}");
        assert_eq!(capabilities.len(), ATTEMPTS.len());
        assert!(capabilities.iter().all(|one| !one.detail.is_empty()), "{capabilities:#?}");
    }
}
