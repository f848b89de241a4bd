//! What a change of the members would do, said before it is done. Pure: it knows only what the leader saw.

use std::cmp::Reverse;

use ipam_api::cluster::{Danger, MemberChange};
use ipam_api::name::Name;
use ipam_api::{Code, Problem, strict};
use ipam_raft::node::{MemberInfo, Role};

/// How many of so many voters must agree.
pub(super) fn needed(voters: usize) -> u64 {
    voters as u64 / 2 + 1
}

/// How many of those that answer may fail before nothing can be changed any more.
pub(super) fn can_lose(voters: &[&MemberInfo]) -> u64 {
    let answering = voters.iter().filter(|member| member.answers != Some(false)).count() as u64;
    answering.saturating_sub(needed(voters.len()))
}

/// Leadership goes to `to`, or to the best voter there is; also who that is.
pub(super) fn transfer(all: &[MemberInfo], to: Option<&Name>) -> Result<(u64, MemberChange), Problem> {
    let leader = all.iter().find(|member| member.role == Role::Leader);
    let heir = match to {
        Some(name) => find(all, name)?,
        None => heir(all).ok_or_else(|| unfit("no other voter answers, so nobody could lead".to_owned()))?,
    };
    let voters = voters(all);
    if leader.is_some_and(|leader| leader.id == heir.id) {
        return Ok((heir.id, change(&voters, &voters, Vec::new(), Danger::Mild)));
    }
    fit_to_lead(heir)?;
    let from = leader.map_or("nobody", |leader| leader.name.as_str());
    let step = format!("leadership goes from {from} to {}", heir.name);
    Ok((heir.id, change(&voters, &voters, vec![step], Danger::Mild)))
}

/// Refuses whoever couldn't take over.
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

/// The voter that lacks least, of those that answer and don't lead.
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

/// A change without steps is none.
fn change(before: &[&MemberInfo], after: &[&MemberInfo], steps: Vec<String>, danger: Danger) -> MemberChange {
    let names = |voters: &[&MemberInfo]| voters.iter().map(|member| member.name.clone()).collect();
    MemberChange {
        changes: !steps.is_empty(),
        steps,
        voters_before: names(before),
        voters_after: names(after),
        can_lose_before: can_lose(before),
        can_lose_after: can_lose(after),
        danger,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `n1` leads, the others follow; those in `silent` don't answer.
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
                in_doubt: None,
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
    fn who_leads_already_has_nothing_to_do() {
        let (_, change) = transfer(&three(&[]), Some(&name("n1"))).unwrap();
        assert!(!change.changes);
        assert_eq!((change.can_lose_before, change.can_lose_after), (1, 1));
    }

    #[test]
    fn nobody_leads_who_is_silent_or_unknown() {
        assert_eq!(transfer(&three(&["n2"]), Some(&name("n2"))).unwrap_err().code, Code::MemberUnfit);
        let problem = transfer(&three(&[]), Some(&name("n33"))).unwrap_err();
        assert_eq!(problem.code, Code::NotFound);
        assert!(problem.detail.contains("did you mean n3?"), "{problem}");
    }
}
