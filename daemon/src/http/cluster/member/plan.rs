//! Plan of a membership change, computed before it is proposed. Pure: it depends only on the leader's view.

use std::cmp::Reverse;

use ipam_api::cluster::{Danger, MemberChange};
use ipam_api::name::Name;
use ipam_api::{Code, Problem, strict};
use ipam_raft::node::{MemberInfo, Role, VOTE_MISSING_ENTRIES_MAX};

/// Membership change with the ids of the promoted and removed members.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) promote: Vec<u64>,
    pub(super) remove: Vec<u64>,
    pub(super) change: MemberChange,
}

impl Plan {
    fn nothing(voters: &[&MemberInfo]) -> Self {
        let change = change(voters, voters, Vec::new(), Danger::Mild);
        Self { promote: Vec::new(), remove: Vec::new(), change }
    }
}

/// Majority of a number of voters.
pub(super) fn needed(voters: usize) -> u64 {
    voters as u64 / 2 + 1
}

/// Number of answering voters that may fail before the cluster loses its majority.
pub(super) fn can_lose(voters: &[&MemberInfo]) -> u64 {
    let answering = voters.iter().filter(|member| member.answers != Some(false)).count() as u64;
    answering.saturating_sub(needed(voters.len()))
}

/// Transfers leadership to `to`, or to the best voter; returns its id, too.
pub(super) fn transfer(all: &[MemberInfo], to: Option<&Name>) -> Result<(u64, MemberChange), Problem> {
    let leader = all.iter().find(|member| member.role == Role::Leader);
    let heir = match to {
        Some(name) => find(all, name)?,
        None => {
            heir(all).ok_or_else(|| unfit("no other voter answers, so no member could lead".to_owned()))?
        }
    };
    let voters = voters(all);
    if leader.is_some_and(|leader| leader.id == heir.id) {
        return Ok((heir.id, change(&voters, &voters, Vec::new(), Danger::Mild)));
    }
    fit_to_lead(heir)?;
    let from = leader.map_or("no member", |leader| leader.name.as_str());
    let step = format!("leadership goes from {from} to {}", heir.name);
    Ok((heir.id, change(&voters, &voters, vec![step], Danger::Mild)))
}

/// Gives a learner a vote.
pub(super) fn promote(all: &[MemberInfo], name: &Name) -> Result<Plan, Problem> {
    let member = find(all, name)?;
    let before = voters(all);
    if member.votes() {
        return Ok(Plan::nothing(&before));
    }
    fit_to_vote(member)?;
    let mut after = before.clone();
    after.push(member);
    let step = format!("{} (member {}) gets a vote", member.name, member.id);
    Ok(Plan {
        promote: vec![member.id],
        remove: Vec::new(),
        change: change(&before, &after, vec![step], Danger::Mild),
    })
}

/// Removes a member.
pub(super) fn remove(all: &[MemberInfo], name: &Name, was_removed: bool) -> Result<Plan, Problem> {
    let before = voters(all);
    let member = match find(all, name) {
        Err(_) if was_removed => return Ok(Plan::nothing(&before)),
        found => found?,
    };
    let after: Vec<&MemberInfo> = before.iter().copied().filter(|voter| voter.id != member.id).collect();
    let mut steps = leadership(all, &after, member);
    steps.push(format!("{} (member {}) leaves; its id never comes back", member.name, member.id));
    let change = change(&before, &after, steps, Danger::Moderate);
    check_quorum(&after, &change)?;
    Ok(Plan { promote: Vec::new(), remove: vec![member.id], change })
}

/// Promotes a learner and removes a member, in one step.
pub(super) fn replace(
    all: &[MemberInfo],
    old: &Name,
    new: &Name,
    was_removed: bool,
) -> Result<Plan, Problem> {
    let before = voters(all);
    let successor = find(all, new)?;
    let member = match find(all, old) {
        Err(_) if was_removed && successor.votes() => return Ok(Plan::nothing(&before)),
        found => found?,
    };
    if member.id == successor.id {
        return Err(unfit(format!("{old} can't take its own place")).help(
            "A member whose data directory was lost joins anew under another name: see \
             deploy/docs/membership.md.",
        ));
    }
    let mut after: Vec<&MemberInfo> = before.iter().copied().filter(|voter| voter.id != member.id).collect();
    let mut steps = Vec::new();
    let mut promote = Vec::new();
    if !successor.votes() {
        fit_to_vote(successor)?;
        after.push(successor);
        promote.push(successor.id);
        steps.push(format!("{} (member {}) gets a vote", successor.name, successor.id));
    }
    steps.extend(leadership(all, &after, member));
    steps.push(format!(
        "{} (member {}) leaves in the same step; its id never comes back",
        member.name, member.id
    ));
    let change = change(&before, &after, steps, Danger::Moderate);
    check_quorum(&after, &change)?;
    Ok(Plan { promote, remove: vec![member.id], change })
}

/// Effect of a member's removal on leadership.
fn leadership(all: &[MemberInfo], after: &[&MemberInfo], member: &MemberInfo) -> Vec<String> {
    if member.role != Role::Leader {
        return Vec::new();
    }
    let heir = heir(all).filter(|heir| after.iter().any(|voter| voter.id == heir.id));
    let to = heir.map_or("another voter", |heir| heir.name.as_str());
    vec![format!("leadership goes from {} to {to}", member.name)]
}

/// Refuses a change after which too few voters would answer.
fn check_quorum(after: &[&MemberInfo], change: &MemberChange) -> Result<(), Problem> {
    let answering = after.iter().filter(|member| member.answers != Some(false)).count() as u64;
    if after.is_empty() {
        return Err(Problem::new(Code::QuorumAtRisk, "the last voter can't be removed"));
    }
    if answering < needed(after.len()) {
        let detail = format!(
            "of the voters {} only {answering} would answer, and {} must agree: nothing could be changed any \
             more",
            change.voters_after.join(" "),
            needed(after.len())
        );
        return Err(Problem::new(Code::QuorumAtRisk, detail));
    }
    Ok(())
}

/// Refuses a learner that does not answer or lacks too many log entries.
fn fit_to_vote(member: &MemberInfo) -> Result<(), Problem> {
    if member.answers != Some(true) {
        return Err(unfit(format!("{} doesn't answer", member.name)));
    }
    match member.behind {
        Some(behind) if behind <= VOTE_MISSING_ENTRIES_MAX => Ok(()),
        Some(behind) => Err(unfit(format!("{} still lacks {behind} log entries", member.name))
            .help("Wait until it has caught up: ipamctl cluster members.")),
        None => Err(unfit(format!("the progress of {} is not known yet", member.name))),
    }
}

/// Refuses a member that can't take over leadership.
fn fit_to_lead(heir: &MemberInfo) -> Result<(), Problem> {
    if !heir.votes() {
        return Err(unfit(format!("{} is a learner and has no vote", heir.name))
            .help(format!("Give it one first: ipamctl cluster promote {}.", heir.name)));
    }
    if heir.answers == Some(false) {
        return Err(unfit(format!("{} doesn't answer", heir.name)));
    }
    Ok(())
}

/// Returns the most up-to-date voter that answers and does not lead.
fn heir(all: &[MemberInfo]) -> Option<&MemberInfo> {
    let fit = all.iter().filter(|member| member.role != Role::Leader && fit_to_lead(member).is_ok());
    fit.max_by_key(|member| (Reverse(member.behind.unwrap_or(u64::MAX)), Reverse(member.id)))
}

fn find<'a>(all: &'a [MemberInfo], name: &Name) -> Result<&'a MemberInfo, Problem> {
    all.iter().find(|member| member.name == name.as_str()).ok_or_else(|| {
        let near = strict::nearest(name.as_str(), all.iter().map(|member| member.name.as_str()));
        let meant = near.map(|near| format!("; did you mean {near}?")).unwrap_or_default();
        Problem::new(Code::NotFound, format!("there is no member {name}{meant}"))
            .help("See who there is: ipamctl cluster members.")
    })
}

fn unfit(why: String) -> Problem {
    Problem::new(Code::MemberUnfit, why)
}

fn voters(all: &[MemberInfo]) -> Vec<&MemberInfo> {
    all.iter().filter(|member| member.votes()).collect()
}

/// Builds the description of a change. Without steps nothing changes.
fn change(before: &[&MemberInfo], after: &[&MemberInfo], steps: Vec<String>, danger: Danger) -> MemberChange {
    let names = |voters: &[&MemberInfo]| voters.iter().map(|member| member.name.clone()).collect();
    let (can_lose_before, can_lose_after) = (can_lose(before), can_lose(after));
    // A change that tolerates fewer failures than before, or none, needs an explicit flag.
    let thin = danger == Danger::Moderate && before.len() != after.len() && can_lose_after == 0;
    let danger = if thin || can_lose_after < can_lose_before { Danger::Severe } else { danger };
    MemberChange {
        changes: !steps.is_empty(),
        done: steps.is_empty(),
        steps,
        voters_before: names(before),
        voters_after: names(after),
        can_lose_before,
        can_lose_after,
        danger,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `n1` leads, the others follow; members in `silent` don't answer.
    fn three(silent: &[&str]) -> Vec<MemberInfo> {
        let member = |id: u64| {
            let name = format!("n{id}");
            let answers = Some(!silent.contains(&name.as_str()));
            let role = if id == 1 { Role::Leader } else { Role::Follower };
            let (peer_address, client_url) = (format!("{name}:7441"), format!("http://{name}:7440"));
            MemberInfo {
                id,
                name,
                role,
                peer_address,
                client_url,
                behind: Some(id),
                silent_ms: Some(0),
                answers,
                quarantined: None,
                version: None,
                level: None,
            }
        };
        (1..=3).map(member).collect()
    }

    fn name(name: &str) -> Name {
        name.parse().unwrap()
    }

    #[test]
    fn leadership_goes_to_whom_it_is_said_or_to_who_lacks_least() {
        let (heir, change) = transfer(&three(&[]), Some(&name("n3"))).unwrap();
        assert_eq!((heir, change.steps), (3, vec!["leadership goes from n1 to n3".to_owned()]));
        assert_eq!(transfer(&three(&[]), None).unwrap().0, 2);
        assert_eq!(transfer(&three(&["n2"]), None).unwrap().0, 3);
        assert_eq!(transfer(&three(&["n2", "n3"]), None).unwrap_err().code, Code::MemberUnfit);
    }

    #[test]
    fn a_transfer_to_the_leader_changes_nothing() {
        let (_, change) = transfer(&three(&[]), Some(&name("n1"))).unwrap();
        assert!(!change.changes);
        assert_eq!((change.can_lose_before, change.can_lose_after), (1, 1));
    }

    #[test]
    fn a_silent_or_unknown_member_cannot_lead() {
        assert_eq!(transfer(&three(&["n2"]), Some(&name("n2"))).unwrap_err().code, Code::MemberUnfit);
        let problem = transfer(&three(&[]), Some(&name("n33"))).unwrap_err();
        assert_eq!(problem.code, Code::NotFound);
        assert!(problem.detail.contains("did you mean n3?"), "{problem}");
    }

    /// Members of [`three`], and the learner `n4`.
    fn four(silent: &[&str]) -> Vec<MemberInfo> {
        let mut all = three(silent);
        let mut learner = all[1].clone();
        (learner.id, learner.name, learner.role) = (4, "n4".to_owned(), Role::Learner);
        learner.answers = Some(!silent.contains(&"n4"));
        all.push(learner);
        all
    }

    #[test]
    fn a_learner_gets_a_vote_once_it_has_caught_up() {
        let Plan { promote: ids, change, .. } = promote(&four(&[]), &name("n4")).unwrap();
        assert_eq!((ids, change.danger, change.voters_after.len()), (vec![4], Danger::Mild, 4));
        assert!(!promote(&four(&[]), &name("n2")).unwrap().change.changes, "it has one");
        assert_eq!(promote(&four(&["n4"]), &name("n4")).unwrap_err().code, Code::MemberUnfit);
        let mut behind = four(&[]);
        behind[3].behind = Some(VOTE_MISSING_ENTRIES_MAX + 1);
        assert_eq!(promote(&behind, &name("n4")).unwrap_err().code, Code::MemberUnfit);
    }

    #[test]
    fn removing_is_refused_where_too_few_would_be_left() {
        let change = remove(&three(&["n3"]), &name("n3"), false).unwrap().change;
        assert_eq!((change.can_lose_before, change.can_lose_after, change.danger), (0, 0, Danger::Severe));
        let refused = remove(&three(&["n3"]), &name("n2"), false).unwrap_err();
        assert_eq!(refused.code, Code::QuorumAtRisk);
        // The removal of a learner removes no vote.
        let change = remove(&four(&[]), &name("n4"), false).unwrap().change;
        assert_eq!((change.voters_after.len(), change.danger), (3, Danger::Moderate));
        let steps = remove(&three(&[]), &name("n1"), false).unwrap().change.steps;
        assert_eq!(steps[0], "leadership goes from n1 to n2");
        assert!(!remove(&three(&[]), &name("n9"), true).unwrap().change.changes, "it is gone already");
        assert_eq!(remove(&three(&[]), &name("n9"), false).unwrap_err().code, Code::NotFound);
    }

    #[test]
    fn a_replacement_keeps_the_number_of_voters() {
        let plan = replace(&four(&["n3"]), &name("n3"), &name("n4"), false).unwrap();
        assert_eq!((plan.promote, plan.remove), (vec![4], vec![3]));
        assert_eq!(plan.change.voters_after, ["n1", "n2", "n4"]);
        assert_eq!((plan.change.can_lose_after, plan.change.danger), (1, Danger::Moderate));
        assert_eq!(
            replace(&four(&["n4"]), &name("n3"), &name("n4"), false).unwrap_err().code,
            Code::MemberUnfit
        );
        assert_eq!(replace(&four(&[]), &name("n3"), &name("n3"), false).unwrap_err().code, Code::MemberUnfit);
        assert!(!replace(&three(&[]), &name("n9"), &name("n2"), true).unwrap().change.changes);
    }
}
