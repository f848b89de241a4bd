//! Leader task that adapts the Raft membership to the member rows, one step at a time. Any leader can
//! continue a change that another one began.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use ipam_api::name::Name;
use openraft::ChangeMembers;
use openraft::async_runtime::watch::WatchReceiver;
use tokio::time::{Instant, sleep, timeout};

use super::error::Failure;
use super::inner::Inner;
use super::running::Running;
use super::transfer::hand_over;
use crate::transport::{Purpose, Request};
use crate::types::{Member, MemberInfo, Role};
use ipam_machine::command::{KnownMember, Text};
use ipam_machine::model::{self, MemberStanding};

/// Interval between two checks for a necessary change.
const LOOK: Duration = Duration::from_millis(50);
/// Interval at which a member without a leader contacts the others, to announce its address and to learn of
/// its removal.
const CALL: Duration = Duration::from_millis(500);
/// Time limit of one step, after which the state is evaluated again.
const STEP_PATIENCE: Duration = Duration::from_secs(5);
/// Log entries that a learner may lack when it gets a vote: it can't acknowledge new entries before.
pub const VOTE_MISSING_ENTRIES_MAX: u64 = 1_000;

/// The present membership of the log.
#[derive(Debug, Default)]
struct Present {
    nodes: BTreeMap<u64, Member>,
    voters: BTreeSet<u64>,
    /// True in the middle of a change of voters (joint consensus).
    joint: bool,
}

/// One step towards the desired membership.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    Nothing,
    /// Add these members as learners, or update their addresses.
    Set(BTreeMap<u64, Member>),
    /// Make exactly these members the voters.
    Vote(BTreeSet<u64>),
    /// Hand leadership over, since this leader is to be removed. The next leader continues.
    HandOver,
    /// Remove these learners.
    Drop(BTreeSet<u64>),
}

/// Follows the rows while this member leads, and finds out when it was removed.
pub(super) async fn run(inner: Arc<Inner>, running: Arc<Running>) {
    let mut removed = running.peers.removed();
    let mut called = Instant::now();
    loop {
        tokio::select! {
            () = sleep(LOOK) => {}
            told = removed.wait_for(Option::is_some) => {
                if let Ok(why) = told {
                    inner.lifecycle.fail(Failure::Removed(why.clone().unwrap_or_default()));
                }
                return;
            }
        }
        let present = present(&running);
        let me = running.me.member_id;
        let expelled = expelled(&inner, &running);
        inner.callers.expelled.send_if_modified(|known| {
            let news = *known != expelled;
            known.clone_from(&expelled);
            news
        });
        if expelled.contains(&me) {
            let cluster = &running.cluster_id;
            inner.lifecycle.fail(Failure::Removed(format!(
                "member {me}, {}, was removed from the cluster {cluster}",
                running.me.name
            )));
            return;
        }
        if inner.leadership.leads.borrow().is_some() {
            step(&inner, &running, &present).await;
        } else if inner.stale_ms() > 0 && called.elapsed() >= CALL {
            called = Instant::now();
            call_all(&running, &present);
        }
    }
}

fn present(running: &Running) -> Present {
    let metrics = running.raft.server_metrics();
    let metrics = metrics.borrow_watched();
    let membership = metrics.membership_config.membership();
    Present {
        nodes: membership.nodes().map(|(id, member)| (*id, member.clone())).collect(),
        voters: membership.voter_ids().collect(),
        joint: membership.get_joint_config().len() > 1,
    }
}

/// Members that were removed and have left the membership. As long as the membership has them, their votes
/// may be needed.
pub(super) fn expelled(inner: &Inner, running: &Running) -> BTreeSet<u64> {
    let rows = inner.state.with(|state| state.members.clone());
    let removed = rows.iter().filter(|(_, row)| row.standing == MemberStanding::Removed).map(|(id, _)| id);
    let members = running.members();
    removed.filter(|id| members.iter().all(|(known, _)| known != id)).collect()
}

/// Returns the members in the form that commands use.
pub(super) fn known(running: &Running) -> Vec<KnownMember> {
    let present = present(running);
    let known = present.nodes.into_iter().filter_map(|(id, member)| {
        Some(KnownMember {
            id,
            name: Name::new(&member.name).ok()?,
            disk_id: Text::given(member.disk_id),
            peer_address: Text::given(member.peer_address),
            client_url: Text::given(member.client_url),
            votes: present.voters.contains(&id),
        })
    });
    known.collect()
}

fn call_all(running: &Running, present: &Present) {
    for (id, member) in present.nodes.iter().filter(|(id, _)| **id != running.me.member_id) {
        // The answer doesn't matter here.
        let _ = running.peers.channel(*id, member, Purpose::Control).submit(Request::Ping);
    }
}

async fn step(inner: &Inner, running: &Running, present: &Present) {
    let rows = inner.state.with(|state| state.members.clone());
    let seen = inner.status().members;
    let next =
        decide(rows.iter(), present, &whereabouts(inner, running, present), &seen, running.me.member_id);
    let raft = &running.raft;
    let change = match next {
        Next::Nothing => return,
        Next::HandOver => {
            let stays = |id: u64| rows.get(id).is_some_and(|row| row.standing == MemberStanding::Voter);
            return hand_over(running, inner.profile.timing, Instant::now() + STEP_PATIENCE, stays).await;
        }
        Next::Set(nodes) => ChangeMembers::SetNodes(nodes),
        Next::Vote(voters) => ChangeMembers::ReplaceAllVoters(voters),
        Next::Drop(ids) => ChangeMembers::RemoveNodes(ids),
    };
    tracing::info!(%change, "changing the members");
    // Removed voters are dropped at once.
    match timeout(STEP_PATIENCE, raft.change_membership(change, false)).await {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => tracing::warn!(%error, "the members aren't changed yet"),
        Err(_) => tracing::warn!("the members aren't changed yet: too few of them answer"),
    }
}

/// Members that report another address than the membership has.
fn whereabouts(inner: &Inner, running: &Running, present: &Present) -> BTreeMap<u64, Member> {
    let mut moved = BTreeMap::new();
    for (id, member) in &present.nodes {
        let now = if *id == running.me.member_id {
            (Some(inner.profile.peer_address.clone()), Some(inner.profile.client_url.clone()))
        } else {
            (running.peers.told(*id), inner.callers.client_url(*id))
        };
        let now = Member {
            peer_address: now.0.unwrap_or_else(|| member.peer_address.clone()),
            client_url: now.1.unwrap_or_else(|| member.client_url.clone()),
            ..member.clone()
        };
        if now != *member {
            moved.insert(*id, now);
        }
    }
    moved
}

/// Next step. Without member rows the founders are the desired members.
fn decide<'a>(
    rows: impl Iterator<Item = (u64, &'a model::Member)>,
    present: &Present,
    moved: &BTreeMap<u64, Member>,
    seen: &[MemberInfo],
    me: u64,
) -> Next {
    let rows: BTreeMap<u64, &model::Member> = rows.collect();
    let with = |standing: MemberStanding| {
        rows.iter().filter(move |(_, row)| row.standing == standing).map(|(id, _)| *id)
    };
    let voters: BTreeSet<u64> =
        if rows.is_empty() { present.voters.clone() } else { with(MemberStanding::Voter).collect() };
    let living = with(MemberStanding::Learner).chain(with(MemberStanding::Voter));
    let new: BTreeMap<u64, Member> = living
        .filter(|id| !present.nodes.contains_key(id))
        .filter_map(|id| Some((id, member(rows.get(&id)?))))
        .collect();
    if !new.is_empty() && !present.joint {
        return Next::Set(new);
    }
    let fit = |id: &u64| {
        let seen = seen.iter().find(|member| member.id == *id);
        seen.is_some_and(|member| {
            member.answers == Some(true) && member.behind.is_some_and(|b| b <= VOTE_MISSING_ENTRIES_MAX)
        })
    };
    if present.joint || voters != present.voters {
        let unfit = voters.difference(&present.voters).any(|id| !fit(id));
        if voters.is_empty() || (unfit && !present.joint) {
            return Next::Nothing;
        }
        let heir = seen.iter().any(|member| {
            member.id != me && voters.contains(&member.id) && member.votes() && member.answers == Some(true)
        });
        let leads = seen.iter().any(|member| member.id == me && member.role == Role::Leader);
        if leads && !voters.contains(&me) && heir && !present.joint {
            return Next::HandOver;
        }
        return Next::Vote(voters);
    }
    let gone: BTreeSet<u64> =
        with(MemberStanding::Removed).filter(|id| present.nodes.contains_key(id)).collect();
    if !gone.is_empty() {
        return Next::Drop(gone);
    }
    if moved.is_empty() { Next::Nothing } else { Next::Set(moved.clone()) }
}

fn member(row: &model::Member) -> Member {
    Member {
        name: row.name.to_string(),
        disk_id: row.disk_id.to_string(),
        peer_address: row.peer_address.to_string(),
        client_url: row.client_url.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: u64, standing: MemberStanding) -> (u64, model::Member) {
        let row = model::Member {
            name: format!("n{id}").parse().unwrap(),
            disk_id: Text::given(format!("disk-{id}")),
            peer_address: Text::given(format!("n{id}:7441")),
            client_url: Text::given(format!("http://n{id}:7440")),
            standing,
            joined: 7,
        };
        (id, row)
    }

    /// `voters` and the learner 4; member 1 leads, and all others answer and are complete.
    fn present(voters: &[u64]) -> (Present, Vec<MemberInfo>) {
        let voters: BTreeSet<u64> = voters.iter().copied().collect();
        let ids: BTreeSet<u64> = voters.iter().copied().chain([4]).collect();
        let nodes = ids.iter().map(|id| (*id, member(&row(*id, MemberStanding::Voter).1))).collect();
        let seen = ids.iter().map(|id| MemberInfo {
            id: *id,
            name: format!("n{id}"),
            role: match id {
                1 => Role::Leader,
                id if voters.contains(id) => Role::Follower,
                _ => Role::Learner,
            },
            peer_address: String::new(),
            client_url: String::new(),
            behind: Some(0),
            silent_ms: Some(0),
            answers: Some(true),
            quarantined: None,
            version: None,
            level: None,
        });
        let seen = seen.collect();
        (Present { nodes, voters, joint: false }, seen)
    }

    fn next(rows: &[(u64, model::Member)], present: &Present, seen: &[MemberInfo]) -> Next {
        decide(rows.iter().map(|(id, row)| (*id, row)), present, &BTreeMap::new(), seen, 1)
    }

    const FOUNDERS: [u64; 3] = [1, 2, 3];

    fn rows(four: MemberStanding, removed: &[u64]) -> Vec<(u64, model::Member)> {
        let standing = |id: u64| match id {
            id if removed.contains(&id) => MemberStanding::Removed,
            4 => four,
            _ => MemberStanding::Voter,
        };
        (1..=4).map(|id| row(id, standing(id))).collect()
    }

    #[test]
    fn founders_among_themselves_and_what_is_so_need_nothing() {
        let (present, seen) = present(&FOUNDERS);
        assert_eq!(next(&[], &present, &seen), Next::Nothing);
        assert_eq!(next(&rows(MemberStanding::Learner, &[]), &present, &seen), Next::Nothing);
    }

    #[test]
    fn a_new_member_is_added_as_a_learner() {
        let (mut present, seen) = present(&FOUNDERS);
        present.nodes.remove(&4);
        let Next::Set(new) = next(&rows(MemberStanding::Learner, &[]), &present, &seen) else {
            panic!("not taken in")
        };
        assert_eq!(new.keys().collect::<Vec<_>>(), [&4]);
    }

    #[test]
    fn a_replacement_is_one_step_and_waits_for_who_comes() {
        let (present, mut seen) = present(&FOUNDERS);
        let rows = rows(MemberStanding::Voter, &[3]);
        assert_eq!(next(&rows, &present, &seen), Next::Vote([1, 2, 4].into()));
        seen[3].behind = Some(VOTE_MISSING_ENTRIES_MAX + 1);
        assert_eq!(next(&rows, &present, &seen), Next::Nothing);
        seen[3].behind = Some(0);
        seen[3].answers = Some(false);
        assert_eq!(next(&rows, &present, &seen), Next::Nothing);
    }

    #[test]
    fn a_leader_that_ends_hands_over_if_another_voter_answers() {
        let (present, mut seen) = present(&FOUNDERS);
        let rows = rows(MemberStanding::Learner, &[1]);
        assert_eq!(next(&rows, &present, &seen), Next::HandOver);
        for member in &mut seen {
            member.answers = Some(member.id == 1);
        }
        assert_eq!(next(&rows, &present, &seen), Next::Vote([2, 3].into()));
    }

    #[test]
    fn an_unfinished_change_is_completed() {
        let (mut present, seen) = present(&FOUNDERS);
        present.joint = true;
        assert_eq!(next(&rows(MemberStanding::Learner, &[3]), &present, &seen), Next::Vote([1, 2].into()));
    }

    #[test]
    fn learners_that_were_removed_are_forgotten() {
        let (present, seen) = present(&FOUNDERS);
        assert_eq!(next(&rows(MemberStanding::Learner, &[4]), &present, &seen), Next::Drop([4].into()));
    }

    #[test]
    fn a_new_address_is_recorded() {
        let (present, seen) = present(&FOUNDERS);
        let moved = Member { peer_address: "elsewhere:7441".to_owned(), ..present.nodes[&2].clone() };
        let moved = BTreeMap::from([(2, moved)]);
        let next = decide(std::iter::empty(), &present, &moved, &seen, 1);
        assert_eq!(next, Next::Set(moved));
    }
}
