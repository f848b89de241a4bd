//! Conclusions from the answers of the servers.

use ipam_api::cluster::{Cluster, Member};

use super::ask::{Observed, Report, plain};

/// State of the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Health {
    /// A leader, every member answers, and no disk is full.
    Ok,
    /// A leader, but a member doesn't answer or serve, or a disk is full.
    Degraded,
    /// Members have different states at the same place of the log. Nothing is worse.
    Diverged,
    /// The servers that were named belong to different clusters.
    Mixed,
    /// No leader: nothing can be changed.
    NoLeader,
}

/// The whole picture.
#[derive(Debug)]
pub(super) struct Diagnosis<'a> {
    pub(super) health: Health,
    /// The answer that is shown: the leader's, or without a leader the most recent one.
    pub(super) best: &'a Report,
    /// Its members, with their own answers.
    pub(super) members: Vec<Seen<'a>>,
    /// Servers that were named, don't answer and have the address of no member.
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
    /// Its own answer, or the reason for having none.
    pub(super) answer: Result<&'a Cluster, &'a str>,
    /// True if it answers the leader and not this caller, who sees the cluster through the leader.
    pub(super) answers_leader: bool,
    /// The version of its program, if it reports one.
    pub(super) version: Option<&'a str>,
}

impl<'a> Diagnosis<'a> {
    /// Judges the answers, beside the members that the leader sees; none if there is no answer.
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
            // A member that is new and hasn't been let in yet knows of no cluster.
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

    /// True if there is nothing to do.
    pub(super) fn is_well(&self) -> bool {
        self.health == Health::Ok
    }

    /// True if all is well and every member follows the leader that is shown.
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

/// True if this member knows of a leader that works now.
pub(super) fn leads(cluster: &Cluster) -> bool {
    cluster.leader.is_some() && cluster.stale_ms == 0
}

/// True if a member's disk is running full.
fn has_no_room(cluster: &Cluster) -> bool {
    cluster.disk_room.as_deref().is_some_and(|room| room != "enough")
}

/// Order of trust. Members that see a leader come before those that don't; the newer term before the older
/// (a leader that was cut off goes on believing in itself for a while); the leader itself, since only it
/// knows how far the others are; then the member that heard of a leader last, then the one that has applied
/// most.
fn rank(cluster: &Cluster) -> (bool, u64, bool, std::cmp::Reverse<u64>, u64) {
    let itself = cluster.leader.as_ref() == Some(&cluster.answered_by);
    (leads(cluster), cluster.term, itself, std::cmp::Reverse(cluster.stale_ms), cluster.applied)
}

/// A member's own answer. It is known by its name: the address under which it was asked may be
/// another one than the one it gives.
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
