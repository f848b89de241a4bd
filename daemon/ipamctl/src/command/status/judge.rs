//! Diagnosis of the cluster from the answers of the servers.

use ipam_api::cluster::{Cluster, Member};

use super::ask::{Observed, Report, plain};

/// State of the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Health {
    /// There is a leader, every member answers, and no disk is full.
    Ok,
    /// There is a leader, but a member doesn't answer or serve, or a disk is full.
    Degraded,
    /// Members that have applied the same log entries have different states.
    Diverged,
    /// The specified servers belong to different clusters.
    Mixed,
    /// There is no leader, so changes are impossible.
    NoLeader,
}

/// Diagnosis of the whole cluster.
#[derive(Debug)]
pub(super) struct Diagnosis<'a> {
    pub(super) health: Health,
    /// Answer to show: the leader's, or without a leader the most recent one.
    pub(super) best: &'a Report,
    /// Members according to this answer, each with its own answer.
    pub(super) members: Vec<Seen<'a>>,
    /// Specified servers that don't answer and whose address is not that of a member.
    pub(super) strangers: Vec<(&'a str, &'a str)>,
    /// Servers that belong to another cluster than the one shown.
    pub(super) others: Vec<(&'a str, &'a str)>,
    /// Pairs of members whose states differ.
    pub(super) diverged: Vec<(&'a str, &'a str)>,
}

/// A member, and its own answer.
#[derive(Debug)]
pub(super) struct Seen<'a> {
    pub(super) member: &'a Member,
    /// Answer of the member itself, or the reason for its absence.
    pub(super) answer: Result<&'a Cluster, &'a str>,
    /// True if the member answers the leader but not this caller.
    pub(super) answers_leader: bool,
    /// Version of the member, if reported.
    pub(super) version: Option<&'a str>,
}

impl<'a> Diagnosis<'a> {
    /// Diagnoses the answers, and the members as the leader sees them; none without any answer.
    pub(super) fn of(observed: &'a [Observed], by_leader: &[Member]) -> Option<Self> {
        let report: Vec<(&str, &Report)> = observed
            .iter()
            .filter_map(|one| one.answer.as_ref().ok().map(|report| (one.server.as_str(), report)))
            .collect();
        let (_, best) = report.iter().max_by_key(|(_, report)| rank(&report.cluster))?;
        let cluster = &best.cluster;
        let members: Vec<Seen<'a>> = cluster
            .members
            .iter()
            .map(|member| {
                let (answer, version) = match answer_of(member, observed, cluster) {
                    Ok(report) => (Ok(&report.cluster), report.version.as_deref()),
                    Err(why) => (Err(why), None),
                };
                let is_member = |other: &&Member| other.id == member.id;
                let by_leader = by_leader.iter().find(is_member).and_then(|member| member.answers);
                let answers_leader = answer.is_err() && by_leader == Some(true);
                Seen { member, answer, answers_leader, version }
            })
            .collect();
        let strangers = observed
            .iter()
            .filter_map(|one| one.answer.as_ref().err().map(|why| (one.server.as_str(), why.as_str())))
            .filter(|(server, _)| !cluster.members.iter().any(|member| plain(&member.client_url) == *server))
            .collect();
        let others: Vec<(&str, &str)> = report
            .iter()
            // A new member that has not been added yet reports no cluster id.
            .filter(|(_, report)| !report.cluster.id.is_empty() && report.cluster.id != cluster.id)
            .map(|(server, report)| (*server, report.cluster.id.as_str()))
            .collect();
        let diverged = diverged(&members);
        let health = if !others.is_empty() {
            Health::Mixed
        } else if !diverged.is_empty() {
            Health::Diverged
        } else if !leads(cluster) {
            Health::NoLeader
        } else if !members.iter().all(Seen::is_well) {
            Health::Degraded
        } else {
            Health::Ok
        };
        Some(Self { health, best, members, strangers, others, diverged })
    }

    /// True if the cluster is healthy.
    pub(super) fn is_well(&self) -> bool {
        self.health == Health::Ok
    }

    /// True if the cluster is healthy and every member follows the leader that is shown.
    pub(super) fn is_settled(&self) -> bool {
        let leader = &self.best.cluster.leader;
        let follows = |report: &Cluster| leads(report) && report.leader == *leader;
        let is_settled = |seen: &Seen<'_>| seen.answers_leader || seen.answer.is_ok_and(follows);
        self.is_well() && self.members.iter().all(is_settled)
    }

    /// Number of voters, and the names of those that answer.
    pub(super) fn voters(&self) -> (usize, Vec<&str>) {
        let voters = self.members.iter().filter(|seen| seen.member.role != "learner");
        let answering = voters.clone().filter(|seen| seen.answers_leader || seen.answer.is_ok());
        let answering = answering.map(|seen| seen.member.name.as_str()).collect();
        (voters.count(), answering)
    }
}

impl Seen<'_> {
    /// True if the member answers, serves, and has space on its disk.
    fn is_well(&self) -> bool {
        let is_well = self.answer.map_or(self.answers_leader, |own| !has_no_room(own));
        is_well && self.member.quarantined.is_none()
    }
}

/// True if this member has a leader and is in contact with it.
pub(super) fn leads(cluster: &Cluster) -> bool {
    cluster.leader.is_some() && cluster.stale_ms == 0
}

/// True if a member's disk is running full.
fn has_no_room(cluster: &Cluster) -> bool {
    cluster.disk_room.as_deref().is_some_and(|room| room != "enough")
}

/// Rank of an answer by its reliability. Members with a leader precede the others. Newer terms follow, since
/// a deposed leader believes in its leadership for a while. Then comes the leader itself, since only the
/// leader knows the lag of the others; then the member with the newest contact to a leader, and the one that
/// has applied the most entries.
fn rank(cluster: &Cluster) -> (bool, u64, bool, std::cmp::Reverse<u64>, u64) {
    let itself = cluster.leader.as_ref() == Some(&cluster.answered_by);
    (leads(cluster), cluster.term, itself, std::cmp::Reverse(cluster.stale_ms), cluster.applied)
}

/// Answer of a member itself, found by the member's name. A server may have been queried by an address other
/// than the client URL of the member.
fn answer_of<'a>(member: &Member, observed: &'a [Observed], of: &Cluster) -> Result<&'a Report, &'a str> {
    let mut report = observed.iter().filter_map(|one| one.answer.as_ref().ok());
    let is_own = |cluster: &Cluster| cluster.id == of.id && cluster.answered_by == member.name;
    if let Some(own) = report.find(|report| is_own(&report.cluster)) {
        return Ok(own);
    }
    let failed = observed.iter().find(|one| one.server == plain(&member.client_url));
    Err(match failed.map(|one| &one.answer) {
        Some(Err(why)) => why,
        Some(Ok(_)) => "another member answers at its address",
        None => "not queried: it has no client URL",
    })
}

/// Members that have applied the same entries and don't have the same state.
fn diverged<'a>(members: &[Seen<'a>]) -> Vec<(&'a str, &'a str)> {
    let own: Vec<&Cluster> = members.iter().filter_map(|seen| seen.answer.ok()).collect();
    let mut pairs = Vec::new();
    for (index, one) in own.iter().enumerate() {
        for other in own.iter().skip(index + 1) {
            if one.applied == other.applied && one.digest != other.digest {
                pairs.push((one.answered_by.as_str(), other.answered_by.as_str()));
            }
        }
    }
    pairs
}
