//! Table of the seeded bugs, each with a run that detects it.

/// Program that has the bug.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Process {
    /// `ipamd`, on all members.
    Member,
    /// `ipam-agent`, on all nodes.
    Agent,
}

/// Seeded bug with a run that detects it.
#[derive(Debug, Clone, Copy)]
pub struct Bug {
    /// Name of the option.
    pub option: &'static str,
    /// Program that has the bug.
    pub process: Process,
    /// Defect in one sentence.
    pub defect: &'static str,
    /// Workloads of the run, with commas between them.
    pub workloads: &'static str,
    /// Nemeses of the run, with commas between them.
    pub nemeses: &'static str,
    /// Time of the run under faults, in seconds.
    pub time_s: u64,
    /// Checkers: one of them must report the bug. The first names the broken promise.
    pub checkers: &'static [&'static str],
    /// Commit that fixed the same defect, if the defect once existed.
    pub fixed_by: Option<&'static str>,
    /// Text of a stored case, whose seed alone changes in simulated runs.
    pub case: Option<&'static str>,
    /// Reason for which no short live run detects it. Such a live run is made only if the bug is named.
    pub gap: Option<&'static str>,
}

const fn member(option: &'static str, defect: &'static str) -> Bug {
    Bug {
        option,
        process: Process::Member,
        defect,
        workloads: "alloc-any",
        nemeses: "none",
        time_s: 15,
        checkers: &[],
        fixed_by: None,
        case: None,
        gap: None,
    }
}

/// All seeded bugs.
pub const ALL: &[Bug] = &[
    Bug {
        workloads: "alloc-any,alloc-specific,reads",
        nemeses: "kill",
        time_s: 25,
        checkers: &["I3", "I1", "I2", "I6", "I10"],
        ..member("bug-early-ack", "the leader answers a write before its entry is committed")
    },
    Bug {
        workloads: "alloc-any,churn",
        nemeses: "power",
        time_s: 25,
        checkers: &["I13", "I3", "I1", "I2", "I6", "I10"],
        fixed_by: Some("4ad47a4f"),
        ..member("bug-skipped-fsync", "the log confirms entries and votes without an fsync")
    },
    Bug {
        workloads: "reads,alloc-specific",
        nemeses: "partition",
        time_s: 25,
        checkers: &["I10", "I2"],
        ..member("bug-local-read", "a linearizable read is answered from the member's own state")
    },
    Bug {
        workloads: "reads,alloc-specific",
        nemeses: "partition,pause",
        time_s: 25,
        checkers: &["I10", "I2"],
        ..member("bug-unconfirmed-read", "the leader answers a read index without asking a majority")
    },
    Bug {
        workloads: "churn",
        nemeses: "kill,pause",
        time_s: 30,
        checkers: &["I6", "I9", "I4", "I3", "I2"],
        gap: Some("a connection between members must be lost in the middle of a write without an identity"),
        ..member("bug-repeated-forward", "a forwarded write with unknown outcome is sent once more")
    },
    Bug {
        workloads: "leases",
        nemeses: "clock",
        time_s: 25,
        checkers: &["I7"],
        fixed_by: Some("b6ad78c2"),
        ..member("bug-wall-clock", "log time follows the wall clock of the leader")
    },
    Bug {
        workloads: "idempotence",
        nemeses: "transfer",
        time_s: 25,
        checkers: &["I5"],
        ..member("bug-forgotten-keys", "answers for repetitions are forgotten when a leadership begins")
    },
    Bug {
        workloads: "cni",
        time_s: 20,
        checkers: &["I9", "I15", "I4"],
        fixed_by: Some("768f238b"),
        ..member("bug-late-grant", "an ADD that began before the DEL of its attachment is granted")
    },
    Bug {
        workloads: "cni",
        time_s: 20,
        checkers: &["I9", "I15", "I3", "I1"],
        fixed_by: Some("042812dd"),
        ..member("bug-late-release", "a DEL releases an attachment that is newer than itself")
    },
    Bug {
        workloads: "transactions",
        checkers: &["I6", "I12", "I2"],
        ..member("bug-partial-transaction", "a refused transaction keeps the effect of its first steps")
    },
    Bug {
        workloads: "prefixes",
        checkers: &["I12", "I1", "I13"],
        ..member("bug-overlapping-prefix", "the last address of a delegated prefix remains free in its pool")
    },
    Bug {
        workloads: "prefixes",
        checkers: &["I12", "I13"],
        ..member("bug-miscounted-prefix", "a returned prefix remains in the count of allocated addresses")
    },
    Bug {
        workloads: "leases",
        checkers: &["I7"],
        ..member("bug-damped-renewal", "a renewal of a lease with more than one second left has no effect")
    },
    Bug {
        workloads: "leases",
        checkers: &["I2", "I1", "I3", "I16"],
        ..member("bug-missing-event", "the end of a lease has no event")
    },
    Bug {
        workloads: "exhaustion",
        checkers: &["I8", "I2"],
        ..member("bug-forgotten-claim", "waiting claims are not served when addresses become free")
    },
    Bug {
        workloads: "leases",
        checkers: &["I11", "I13"],
        ..member("bug-local-lease", "the end of a lease depends on the process that applies it")
    },
    Bug {
        // The revisions that clients of `alloc-any` see tell when a reclaim took place.
        workloads: "gc-probe,alloc-any",
        nemeses: "agents",
        time_s: 40,
        checkers: &["I7"],
        case: Some(include_str!("../../cases/silent-node.json")),
        gap: Some("the shortest grace of silent nodes is 30 s, and no fault of an agent lasts that long"),
        ..member("bug-hasty-reclaim", "a silent node loses its addresses without a witness of the silence")
    },
    Bug {
        workloads: "reads,alloc-any,churn",
        checkers: &["I16"],
        ..member(
            "bug-skipped-event",
            "an event stream goes on after the revision of the state, not of its page",
        )
    },
    Bug {
        workloads: "reads",
        checkers: &["I10", "I2"],
        ..member("bug-skipped-item", "a page of a list lacks the first item after the cursor")
    },
    Bug {
        process: Process::Agent,
        workloads: "cni",
        nemeses: "isolate-client",
        time_s: 30,
        checkers: &["I8", "I15"],
        gap: Some("I8 allows 15 s for the delivery of a DEL after the last fault, and live runs end before"),
        ..member("bug-lost-del", "the agent forgets a DEL that the servers have not answered")
    },
    Bug {
        process: Process::Agent,
        workloads: "cni",
        time_s: 20,
        checkers: &["I9", "I15", "I4", "I3"],
        ..member("bug-restamped-request", "the agent stamps a request with its arrival, not with its start")
    },
];

/// Options of a run that apply to one program. Options other than bugs apply to members.
#[must_use]
pub fn options_of(process: Process, options: &[String]) -> Vec<String> {
    let is_of = |option: &&String| {
        let known = ALL.iter().find(|bug| bug.option == option.as_str());
        known.map_or(Process::Member, |bug| bug.process) == process
    };
    options.iter().filter(is_of).cloned().collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Names of options in a source file, between quotation marks.
    fn options_in(source: &str) -> BTreeSet<&str> {
        source.split('"').filter(|part| part.starts_with("bug-") && !part.contains(' ')).collect()
    }

    #[test]
    fn the_table_has_each_option_of_each_program() {
        let members = include_str!("../../../raft/machine/src/seeded.rs");
        // The part before the tests: those name one option.
        let members = members.split("#[cfg(test)]").next().unwrap();
        let agents = include_str!("../../../cni/agent/src/seeded.rs");
        for (process, source) in [(Process::Member, members), (Process::Agent, agents)] {
            let known: BTreeSet<&str> =
                ALL.iter().filter(|bug| bug.process == process).map(|bug| bug.option).collect();
            assert_eq!(known, options_in(source));
        }
    }

    #[test]
    fn each_run_is_short_and_names_what_detects_it() {
        for bug in ALL {
            assert!(!bug.checkers.is_empty(), "{}", bug.option);
            assert!(bug.time_s <= 40, "{}", bug.option);
        }
    }

    #[test]
    fn options_go_to_their_program() {
        let options = ["next-level", "bug-lost-del", "bug-early-ack"].map(str::to_owned);
        assert_eq!(options_of(Process::Agent, &options), ["bug-lost-del"]);
        assert_eq!(options_of(Process::Member, &options), ["next-level", "bug-early-ack"]);
    }
}
