//! Target class of a fault: the part of the cluster that suffers.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::majority::{Damage, quorum};
use crate::nemesis::{Change, Fault, Kind};

/// Part of the cluster that a fault hits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Target {
    /// The leader alone, or with others of a minority.
    Leader,
    /// Fewer members than a majority, without the leader.
    Minority,
    /// So many members that no majority is left, but not all.
    Majority,
    /// All members at once.
    All,
    /// All members, one after another.
    Rolling,
    /// Hosts of clients, or nothing in particular.
    Other,
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Leader => "leader",
            Self::Minority => "minority",
            Self::Majority => "majority",
            Self::All => "all",
            Self::Rolling => "rolling",
            Self::Other => "other",
        })
    }
}

impl Target {
    /// Class of a fault in a cluster of `members` members with this leader.
    #[must_use]
    pub fn of(fault: &Fault, members: usize, leader: Option<&str>) -> Self {
        match &fault.kind {
            Kind::Restart { .. } | Kind::Upgrade { .. } => Self::Rolling,
            Kind::Restore => Self::All,
            Kind::TransferLeader { .. } => Self::Leader,
            Kind::Membership { change: Change::Remove { member } | Change::Replace { member } } => {
                Self::of_members(std::slice::from_ref(member), members, leader)
            }
            Kind::Partition { .. } => Self::of_partition(fault, members, leader),
            kind => Self::of_members(hit(kind), members, leader),
        }
    }

    fn of_members(hit: &[String], members: usize, leader: Option<&str>) -> Self {
        let count = hit.iter().filter(|host| host.starts_with('n')).count();
        if count == 0 {
            Self::Other
        } else if count >= members {
            Self::All
        } else if members - count < quorum(members) {
            Self::Majority
        } else if leader.is_some_and(|leader| hit.iter().any(|member| member == leader)) {
            Self::Leader
        } else {
            Self::Minority
        }
    }

    fn of_partition(fault: &Fault, members: usize, leader: Option<&str>) -> Self {
        let damage = Damage::of(std::iter::once(fault));
        if damage.links.is_empty() {
            return Self::Other;
        }
        let Some(group) = damage.connected_majority(members) else { return Self::Majority };
        match leader {
            Some(leader) if !group.iter().any(|member| member == leader) => Self::Leader,
            _ => Self::Minority,
        }
    }
}

/// Members and hosts that a fault names.
pub(super) fn hit(kind: &Kind) -> &[String] {
    match kind {
        Kind::Packets { hosts, .. }
        | Kind::Agents { hosts }
        | Kind::Nodes { hosts }
        | Kind::BlindProbes { hosts } => hosts,
        other => other.members().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nemesis::Link;

    fn of(kind: Kind, leader: &str) -> Target {
        let fault = Fault { nemesis: String::new(), lasts_ms: 1, kind };
        Target::of(&fault, 3, Some(leader))
    }

    fn kill(members: &[&str]) -> Kind {
        Kind::Kill { members: members.iter().map(|name| (*name).to_owned()).collect() }
    }

    #[test]
    fn members_are_counted_and_the_leader_stands_out() {
        assert_eq!(of(kill(&["n1"]), "n1"), Target::Leader);
        assert_eq!(of(kill(&["n1"]), "n2"), Target::Minority);
        assert_eq!(of(kill(&["n1", "n2"]), "n1"), Target::Majority);
        assert_eq!(of(kill(&["n1", "n2", "n3"]), "n1"), Target::All);
        assert_eq!(of(Kind::Agents { hosts: vec!["c1".to_owned()] }, "n1"), Target::Other);
    }

    #[test]
    fn partitions_are_classified_by_what_stays_connected() {
        let link = |from: &str, to: &str| Link { from: from.to_owned(), to: to.to_owned() };
        let alone = vec![link("n1", "n2"), link("n2", "n1"), link("n1", "n3"), link("n3", "n1")];
        assert_eq!(of(Kind::Partition { links: alone.clone() }, "n1"), Target::Leader);
        assert_eq!(of(Kind::Partition { links: alone.clone() }, "n2"), Target::Minority);
        let all = alone.into_iter().chain([link("n2", "n3")]).collect();
        assert_eq!(of(Kind::Partition { links: all }, "n1"), Target::Majority);
        assert_eq!(of(Kind::Partition { links: vec![link("x1", "n1")] }, "n1"), Target::Other);
    }
}
