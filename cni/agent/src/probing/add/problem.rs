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
    /// Interface of this host that received the station's answer.
    pub(super) interface: String,
}

/// Reason why an ADD fails after the cluster has allocated its addresses.
#[derive(Debug)]
pub(super) enum Failure {
    /// The addresses must not be used: the attachment is released.
    Unusable(Problem),
    /// A repetition can continue: the attachment is kept, for the repetition or a DEL.
    Unfinished(Problem),
}

impl Conflict {
    fn problem(&self, consequence: &str) -> Problem {
        let Self { address, mac, interface } = self;
        let detail = format!("{address} on {interface} is used by {mac}; {consequence}");
        Problem::new(Code::AddressConflict, detail)
    }

    /// Failure if the cluster may lack a record of the conflict.
    pub(super) fn unreported(&self, problem: &Problem) -> Failure {
        unusable(self.problem(&format!("the cluster has not recorded the conflict: {problem}")))
    }

    /// Failure if the cluster does not accept the conflict, since this node has reported too many.
    pub(super) fn refused(&self) -> Failure {
        let problem = self.problem(
            "the cluster has not recorded the conflict, since this node has reported too many that no other \
             node has confirmed",
        );
        unusable(problem.help("Find the host with this MAC address, or exclude its address from the pool."))
    }

    /// Failure if all replacements were in conflict, too.
    pub(super) fn last(&self) -> Failure {
        unusable(self.problem(&format!(
            "this is conflict {CONFLICTS_PER_ADD_MAX} of the ADD, the last that is tolerated"
        )))
    }

    /// Failure if the ADD requests this very address.
    pub(super) fn requested(&self) -> Failure {
        unusable(self.problem("the ADD requests this address, so no other one replaces it"))
    }

    /// Failure if the cluster has no replacement.
    pub(super) fn without_replacement(&self, problem: &Problem) -> Failure {
        unusable(self.problem(&format!("the cluster did not replace it: {problem}")))
    }

    /// Failure if the cluster returned fewer addresses than before the replacement.
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
    // The release ends the ADD of this process, so the plugin must not repeat it. The runtime starts a new
    // one.
    problem.retry = Retry::After;
    Failure::Unusable(problem)
}
