//! Findings, as JSON and as text.

use std::fmt::Write as _;
use std::net::IpAddr;

use ipam_api::Name;
use ipam_api::access::NodeKey;
use ipam_api::mac::MacAddress;
use ipam_api::resource::EndpointKey;
use ipam_api::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::output::text;

/// Report of one comparison.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Report {
    pub(super) items: Vec<Finding>,
    pub(super) checked: Checked,
    /// Revision of the newest read.
    pub(super) revision: u64,
}

/// Extent of a comparison.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Checked {
    pub(super) allocations: u64,
    pub(super) nodes: u64,
    pub(super) quarantines: u64,
}

/// Difference between the store, the agents and the wire.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Finding {
    pub(super) class: Class,
    pub(super) kind: Kind,
    pub(super) network: Option<Name>,
    pub(super) address: Option<IpAddr>,
    pub(super) node: Option<NodeKey>,
    pub(super) endpoint: Option<EndpointKey>,
    pub(super) allocation: Option<u64>,
    /// Stations that answer for the address, the endpoint's first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) macs: Vec<MacAddress>,
    pub(super) detail: String,
    /// Commands that correct or examine the finding; NAME stands for a name to choose.
    pub(super) commands: Vec<String>,
    pub(super) action: Action,
}

/// Class of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Class {
    /// The address is allocated, but proved to be unused.
    Reclaimable,
    /// The address is allocated, but perhaps unused.
    Suspect,
    /// The address is used on the wire, but not allocated.
    Unknown,
    /// Store, agent and wire contradict each other.
    Mismatched,
}

impl Class {
    pub(super) const ALL: [Self; 4] = [Self::Reclaimable, Self::Suspect, Self::Unknown, Self::Mismatched];

    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Reclaimable => "reclaimable",
            Self::Suspect => "suspect",
            Self::Unknown => "unknown",
            Self::Mismatched => "mismatched",
        }
    }

    fn meaning(self) -> &'static str {
        match self {
            Self::Reclaimable => "allocated, silent node, silent on the wire",
            Self::Suspect => "allocated, silent node, not proved to be unused",
            Self::Unknown => "used on the wire, not allocated",
            Self::Mismatched => "store, agent and wire contradict each other",
        }
    }
}

/// Kind of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Kind {
    /// The node of an allocation is silent.
    SilentNode,
    /// A foreign host uses an address of a pool.
    ForeignHost,
    /// A foreign host used an address, and no agent has probed it lately.
    UnverifiedQuarantine,
    /// Two stations answer for an allocated address.
    Collision,
    /// The agent of a node reports that it isn't ready.
    AgentNotReady,
    /// The inventory of a node's agent differs from the store.
    Inventory,
    /// A node has attachments, but no report of its agent was ever received.
    NoAgent,
}

/// Correction that a program can execute, with the observed state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub(super) enum Action {
    /// An operator has to decide.
    None,
    /// Reclaims an allocation of a silent node.
    Reclaim { node: NodeKey, network: Name, address: IpAddr, allocation: u64 },
    /// Releases an allocation whose address an unknown host uses, too. Needs an explicit request, since the
    /// wire doesn't show which of both hosts is legitimate.
    ReleaseColliding { network: Name, address: IpAddr, allocation: u64, mac: MacAddress },
    /// Ends the quarantine of an address, if it is still the observed one.
    EndQuarantine { network: Name, address: IpAddr, mac: MacAddress, since: Timestamp },
}

impl Action {
    /// Returns true for an action that takes the newer side of a contradiction, and so needs a request.
    pub(super) fn takes_newer(&self) -> bool {
        matches!(self, Self::ReleaseColliding { .. })
    }
}

impl Finding {
    /// A finding without a subject, for an operator to decide.
    pub(super) fn of(class: Class, kind: Kind, detail: String, commands: Vec<String>) -> Self {
        Self {
            class,
            kind,
            network: None,
            address: None,
            node: None,
            endpoint: None,
            allocation: None,
            macs: Vec::new(),
            detail,
            commands,
            action: Action::None,
        }
    }

    /// Subject of the finding: its address, or else its node.
    pub(super) fn subject(&self) -> String {
        match (&self.address, &self.node) {
            (Some(address), _) => address.to_string(),
            (None, Some(node)) => format!("node {node}"),
            (None, None) => "-".to_owned(),
        }
    }
}

/// The text of a report, class by class.
pub(super) fn shown(report: &Report) -> String {
    let Checked { allocations, nodes, quarantines } = &report.checked;
    let mut shown = format!(
        "checked      {} · {} · {}\n",
        text::plural(*allocations, "allocation", "allocations"),
        text::plural(*nodes, "node", "nodes"),
        text::plural(*quarantines, "quarantine", "quarantines"),
    );
    for class in Class::ALL {
        let found: Vec<&Finding> = report.items.iter().filter(|one| one.class == class).collect();
        if found.is_empty() {
            continue;
        }
        let _ = write!(shown, "\n{} ({})   {}\n", class.word(), found.len(), class.meaning());
        for finding in found {
            let _ = writeln!(shown, "  {}   {}", finding.subject(), finding.detail);
            for command in &finding.commands {
                let _ = writeln!(shown, "      {command}");
            }
        }
    }
    shown
}

/// Number of findings of each class, such as `1 reclaimable · 2 unknown`.
pub(super) fn sums(report: &Report) -> String {
    let number = |class: Class| report.items.iter().filter(|one| one.class == class).count();
    let sums = Class::ALL.into_iter().map(|class| (number(class), class.word()));
    let sums = sums.filter(|(number, _)| *number > 0).map(|(number, word)| format!("{number} {word}"));
    sums.collect::<Vec<_>>().join(" · ")
}
