//! Capabilities of the agent's process (capabilities(7)). The process needs CAP_NET_RAW for probes,
//! CAP_NET_ADMIN to configure the interfaces of its host, and no others.

use ipam_api::agent::DoctorCheck;

use super::{failed, ok, warning};

/// The kernel's record of this process.
const STATUS: &str = "/proc/self/status";
/// Capabilities that cause no warning. CAP_NET_RAW sends and receives frames; it reaches no file and no
/// process.
const PERMITTED: u64 = 1 << 13;
/// Capability that changes links, addresses and routes.
const NET_ADMIN: u64 = 1 << 12;
/// Names by number, without `CAP_`.
const NAMES: [&str; 41] = [
    "CHOWN",
    "DAC_OVERRIDE",
    "DAC_READ_SEARCH",
    "FOWNER",
    "FSETID",
    "KILL",
    "SETGID",
    "SETUID",
    "SETPCAP",
    "LINUX_IMMUTABLE",
    "NET_BIND_SERVICE",
    "NET_BROADCAST",
    "NET_ADMIN",
    "NET_RAW",
    "IPC_LOCK",
    "IPC_OWNER",
    "SYS_MODULE",
    "SYS_RAWIO",
    "SYS_CHROOT",
    "SYS_PTRACE",
    "SYS_PACCT",
    "SYS_ADMIN",
    "SYS_BOOT",
    "SYS_NICE",
    "SYS_RESOURCE",
    "SYS_TIME",
    "SYS_TTY_CONFIG",
    "MKNOD",
    "LEASE",
    "AUDIT_WRITE",
    "AUDIT_CONTROL",
    "SETFCAP",
    "MAC_OVERRIDE",
    "MAC_ADMIN",
    "SYSLOG",
    "WAKE_ALARM",
    "BLOCK_SUSPEND",
    "AUDIT_READ",
    "PERFMON",
    "BPF",
    "CHECKPOINT_RESTORE",
];

/// Checks the effective capabilities of this process.
pub(super) fn check(configures_host: bool) -> DoctorCheck {
    let status = std::fs::read_to_string(STATUS).unwrap_or_default();
    match effective(&status) {
        Some(set) => of(set, configures_host),
        None => warning("capabilities", format!("{STATUS} has no CapEff"), "Mount /proc for the agent."),
    }
}

fn of(set: u64, configures_host: bool) -> DoctorCheck {
    let name = "capabilities";
    if configures_host && set & NET_ADMIN == 0 {
        return failed(
            name,
            "the agent configures interfaces of this host, and has no CAP_NET_ADMIN".to_owned(),
            "Add it to CapabilityBoundingSet= in a drop-in of the unit, as ipam-agent.service describes.",
        );
    }
    let permitted = if configures_host { PERMITTED | NET_ADMIN } else { PERMITTED };
    match (set, set & !permitted) {
        (0, _) => ok(name, "the agent has none".to_owned()),
        (_, 0) => ok(name, format!("the agent has {}", names(set))),
        (_, surplus) => warning(
            name,
            format!("the agent needs {} at most, and has {}", names(permitted), names(surplus)),
            "Remove them: CapabilityBoundingSet=CAP_NET_RAW in the unit, as in ipam-agent.service.",
        ),
    }
}

/// Effective set in the kernel's record of a process.
fn effective(status: &str) -> Option<u64> {
    let set = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(set.trim(), 16).ok()
}

fn names(set: u64) -> String {
    let numbers = (0..u64::BITS as usize).filter(|number| set >> number & 1 == 1);
    let name = |number| match NAMES.get(number) {
        Some(name) => format!("CAP_{name}"),
        // A capability of a newer kernel.
        None => format!("capability {number}"),
    };
    numbers.map(name).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use ipam_api::agent::Verdict;

    use super::*;

    #[test]
    fn only_surplus_capabilities_are_a_warning() {
        for (set, verdict, detail) in [
            (0, Verdict::Ok, "the agent has none"),
            (1 << 13, Verdict::Ok, "the agent has CAP_NET_RAW"),
            (
                1 << 13 | 1 << 21,
                Verdict::Warning,
                "the agent needs CAP_NET_RAW at most, and has CAP_SYS_ADMIN",
            ),
            (1 << 40 | 1 << 41, Verdict::Warning, "and has CAP_CHECKPOINT_RESTORE, capability 41"),
        ] {
            let found = of(set, false);
            assert_eq!(found.verdict, verdict, "{found:?}");
            assert!(found.detail.ends_with(detail), "{found:?}");
        }
    }

    #[test]
    fn an_agent_that_configures_interfaces_needs_one_more() {
        for (set, verdict) in [
            (1 << 13, Verdict::Failed),
            (1 << 12 | 1 << 13, Verdict::Ok),
            (1 << 12 | 1 << 21, Verdict::Warning),
        ] {
            assert_eq!(of(set, true).verdict, verdict, "{set:x}");
        }
        assert_eq!(of(1 << 12, false).verdict, Verdict::Warning);
    }

    #[test]
    fn the_effective_set_is_read_from_the_record() {
        let status = "Name:\tCapEff:\nCapPrm:\t0000000000000001\nCapEff:\t000001ffffffffff\nCapBnd:\t0\n";
        assert_eq!(effective(status), Some((1 << 41) - 1));
        for status in ["", "CapEff:", "CapEff:\tx", "CapPrm:\t0"] {
            assert_eq!(effective(status), None, "{status}");
        }
        assert!(effective(&std::fs::read_to_string(STATUS).unwrap()).is_some());
    }
}
