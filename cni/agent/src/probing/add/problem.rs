//! Problems of an ADD whose addresses must not be used.

use std::net::IpAddr;

use ipam_api::limits::{CONFLICTS_PER_ADD_MAX, PROBE_ANSWER_MS};
use ipam_api::mac::MacAddress;
use ipam_api::name::InterfaceName;
use ipam_api::problem::{Code, Problem, Retry};

use crate::probe::ProbeError;

/// Address of an ADD that another station uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Conflict {
    pub(super) address: IpAddr,
    pub(super) mac: MacAddress,
    /// Interface of this host that heard the station.
    pub(super) interface: String,
}

/// Reason why an ADD fails after the cluster has allocated its addresses.
#[derive(Debug)]
pub(super) enum Failure {
    /// The addresses must not be used: the attachment is released.
    Unusable(Problem),
    /// A repetition may go on: the attachment stays, for a repetition or a DEL.
    Unfinished(Problem),
}

impl Conflict {
    fn problem(&self, consequence: &str) -> Problem {
        let Self { address, mac, interface } = self;
        let detail = format!("{address} on {interface} is used by {mac}; {consequence}");
        Problem::new(Code::AddressConflict, detail)
    }

    /// The cluster may not know of the conflict.
    pub(super) fn unreported(&self, problem: &Problem) -> Failure {
        unusable(self.problem(&format!("the cluster has not recorded the conflict: {problem}")))
    }

    /// The cluster doesn't believe this node.
    pub(super) fn refused(&self) -> Failure {
        let problem = self.problem(
            "the cluster has not recorded the conflict, since this node has reported too many that no other \
             node has confirmed",
        );
        unusable(problem.help("Find the host with this MAC address, or exclude its address from the pool."))
    }

    /// All replacements were in conflict, too.
    pub(super) fn last(&self) -> Failure {
        unusable(self.problem(&format!(
            "this is conflict {CONFLICTS_PER_ADD_MAX} of the ADD, the last that is tolerated"
        )))
    }

    /// The ADD requests this very address.
    pub(super) fn requested(&self) -> Failure {
        unusable(self.problem("the ADD requests this address, so no other one replaces it"))
    }

    /// The cluster has no replacement.
    pub(super) fn without_replacement(&self, problem: &Problem) -> Failure {
        unusable(self.problem(&format!("the cluster did not replace it: {problem}")))
    }

    /// The cluster has replaced less than it took.
    pub(super) fn incomplete(&self, interface: &InterfaceName, family: &str) -> Failure {
        unusable(self.problem(&format!("without it, {interface} has too few {family} addresses")))
    }
}

/// Failure of an ADD whose gateway doesn't answer.
pub(super) fn unreachable(gateway: IpAddr, interface: &str) -> Failure {
    let detail = format!("the gateway {gateway} does not answer on {interface} within {PROBE_ANSWER_MS} ms");
    unusable(Problem::new(Code::GatewayUnreachable, detail))
}

/// Failure of an ADD whose addresses can't be probed.
pub(super) fn unsent(error: &ProbeError) -> Failure {
    let problem = Problem::new(Code::Internal, format!("the addresses can't be probed: {error}"));
    unusable(problem.help("See ipam-agent doctor; probes = false in agent.toml switches probes off."))
}

/// Failure of an ADD without the time for its probes.
pub(super) fn out_of_time() -> Failure {
    let detail = "no time is left for the probes of the addresses";
    Failure::Unfinished(Problem::new(Code::DeadlineExceeded, detail).maybe_applied())
}

fn unusable(mut problem: Problem) -> Failure {
    // The release buries this process's ADD, so the plugin must not repeat it. The runtime starts another.
    problem.retry = Retry::After;
    Failure::Unusable(problem)
}
