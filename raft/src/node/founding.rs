//! Founding of a cluster: exactly once, in any order of starts, and never over an existing cluster.
//!
//! The first of the initial members by name founds, once every other one has reported that its disk is empty
//! and that it has the same list. The others wait until a member calls them by the id of their disk.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use tokio::time::sleep;

use super::error::Failure;
use super::founders::Founders;
use super::inner::Inner;
use super::starting;
use crate::transport::{Hello, Standing, hello_at};

/// Bounds of the pause between two rounds of calls to the other initial members.
const ASK_PAUSE_MIN: Duration = Duration::from_millis(50);
const ASK_PAUSE_MAX: Duration = Duration::from_secs(1);

/// Response to a hello request, or the reason for its absence.
type Heard = Result<Hello, String>;

/// The decision that follows from the answers.
#[derive(Debug, PartialEq)]
enum Decision {
    Found(Founders),
    /// Wait for this event, in words.
    Wait(String),
}

/// Calls the others until this member founds a cluster or has been admitted to one.
pub(super) async fn run(inner: Arc<Inner>) {
    let mut pause = ASK_PAUSE_MIN;
    let mut running = inner.lifecycle.running.subscribe();
    loop {
        let heard = ask_all(&inner).await;
        match decide(&inner.hello(), &heard) {
            Decision::Wait(what) => inner.lifecycle.wait_for(what),
            Decision::Found(founders) => {
                inner.lifecycle.wait_for("its own first steps".to_owned());
                if let Err(error) = starting::found(&inner, founders).await {
                    inner.lifecycle.fail(Failure::Other(format!("the cluster can't be founded: {error}")));
                    return;
                }
            }
        }
        tokio::select! {
            // A member of the cluster has called, or this member has founded the cluster.
            _ = running.wait_for(Option::is_some) => return,
            () = sleep(pause) => pause = (pause * 2).min(ASK_PAUSE_MAX),
        }
    }
}

async fn ask_all(inner: &Inner) -> BTreeMap<String, Heard> {
    let asked = inner.profile.addresses.iter().map(|(name, address)| async move {
        let heard = hello_at(name, address, &inner.profile.peer_proof)
            .await
            .map_err(|why| format!("{address}: {why}"));
        (name.clone(), heard)
    });
    join_all(asked).await.into_iter().collect()
}

/// Decides from this member's own hello and the responses of the other initial members.
fn decide(me: &Hello, heard: &BTreeMap<String, Heard>) -> Decision {
    let Some(initial_members) = me.standing.initial_members() else {
        return Decision::Wait("the first word of a member of its cluster".to_owned());
    };
    let mut missing = Vec::new();
    let mut founders = vec![me];
    for (name, heard) in heard {
        match heard {
            Err(why) => missing.push(format!("{name} ({why})")),
            Ok(hello) => match objection(me, initial_members, name, hello) {
                Some(objection) => return Decision::Wait(objection),
                None => founders.push(hello),
            },
        }
    }
    if !missing.is_empty() {
        return Decision::Wait(format!("an answer of {}", missing.join(", ")));
    }
    founders.sort_by(|a, b| a.member.name.cmp(&b.member.name));
    let first = match with_state(&founders) {
        Ok(first) => first.or(founders.first().copied()),
        Err(objection) => return Decision::Wait(objection),
    };
    match first {
        Some(first) if first.member.name != me.member.name => {
            Decision::Wait(format!("{} to found the cluster", first.member.name))
        }
        _ => Decision::Found((1..).zip(founders.into_iter().map(|hello| hello.member.clone())).collect()),
    }
}

/// Founder that has a state to begin with, if any: it founds, and the others get the state from it.
///
/// # Errors
/// If there are several states.
fn with_state<'a>(founders: &[&'a Hello]) -> Result<Option<&'a Hello>, String> {
    let state = |hello: &'a Hello| match &hello.standing {
        Standing::Restored { state, .. } => Some((hello, state)),
        _ => None,
    };
    let mut restored = founders.iter().copied().filter_map(state);
    let Some((first, begin)) = restored.next() else { return Ok(None) };
    match restored.find(|(_, other)| *other != begin) {
        None => Ok(Some(first)),
        Some((other, end)) => Err(format!(
            "one state to begin with: {} was restored from {begin}, and {} from {end}; empty the data directory of \
             all but one of them",
            first.member.name, other.member.name
        )),
    }
}

/// Returns the reason against founding a cluster together with this member, if any.
fn objection(me: &Hello, initial_members: &[String], name: &str, hello: &Hello) -> Option<String> {
    if hello.member.name != name {
        return Some(format!(
            "the right addresses: {} answers where {name} should, so its peer address is wrong",
            hello.member.name
        ));
    }
    match &hello.standing {
        Standing::Pristine { initial_members: theirs }
        | Standing::Restored { initial_members: theirs, .. }
            if theirs == initial_members =>
        {
            None
        }
        Standing::Pristine { initial_members: theirs }
        | Standing::Restored { initial_members: theirs, .. } => Some(format!(
            "one and the same list of initial members everywhere: {name} has {}, and this member has {}",
            theirs.join(", "),
            initial_members.join(", ")
        )),
        Standing::Founding { cluster_id } => {
            Some(format!("a call of {name}, which is founding the cluster {cluster_id}"))
        }
        Standing::Member { cluster_id, knows, .. } => {
            Some(match knows.iter().find(|(_, known, _)| *known == me.member.name) {
                Some((id, _, disk_id)) if *disk_id != me.member.disk_id => format!(
                    "an operator's decision: the cluster {cluster_id} knows member {id}, {}, with another disk, so its \
                     data directory was replaced; put the old one back, or remove the member (`ipamctl cluster \
                     remove {}`) and let it join anew, with `[cluster] join` and a token",
                    me.member.name, me.member.name
                ),
                Some(_) => format!("the leader of the cluster {cluster_id} to call"),
                None => format!(
                    "being added to the cluster {cluster_id}, which {name} belongs to and which doesn't know \
                     {}",
                    me.member.name
                ),
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Member;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn pristine(name: &str) -> Hello {
        let member = Member {
            name: name.to_owned(),
            disk_id: format!("disk of {name}"),
            peer_address: format!("{name}:7441"),
            client_url: format!("http://{name}:7440"),
        };
        Hello { member, standing: Standing::Pristine { initial_members: names(&["n1", "n2", "n3"]) } }
    }

    fn heard(hellos: Vec<Hello>) -> BTreeMap<String, Heard> {
        hellos.into_iter().map(|hello| (hello.member.name.clone(), Ok(hello))).collect()
    }

    fn waits_for(decision: Decision) -> String {
        match decision {
            Decision::Wait(what) => what,
            Decision::Found(founders) => panic!("it founded {founders:?}"),
        }
    }

    #[test]
    fn the_first_name_founds_with_all_others() {
        let decision = decide(&pristine("n1"), &heard(vec![pristine("n3"), pristine("n2")]));
        let Decision::Found(founders) = decision else { panic!("{decision:?}") };
        let names: Vec<_> = founders.iter().map(|(id, member)| (*id, member.name.as_str())).collect();
        assert_eq!(names, [(1, "n1"), (2, "n2"), (3, "n3")]);
        assert_eq!(founders[&2].disk_id, "disk of n2");
    }

    #[test]
    fn the_others_wait_for_it() {
        let what = waits_for(decide(&pristine("n2"), &heard(vec![pristine("n1"), pristine("n3")])));
        assert_eq!(what, "n1 to found the cluster");
    }

    #[test]
    fn nothing_is_founded_while_a_member_is_silent() {
        let mut others = heard(vec![pristine("n2")]);
        others.insert("n3".to_owned(), Err("n3:7441: connection refused".to_owned()));
        let what = waits_for(decide(&pristine("n1"), &others));
        assert_eq!(what, "an answer of n3 (n3:7441: connection refused)");
    }

    #[test]
    fn a_wiped_member_reports_it() {
        let knows = vec![(1, "n1".to_owned(), "the old disk".to_owned())];
        let standing = Standing::Member { cluster_id: "c".to_owned(), member_id: 3, knows };
        let others = heard(vec![pristine("n2"), Hello { standing, ..pristine("n3") }]);
        let what = waits_for(decide(&pristine("n1"), &others));
        assert!(what.contains("data directory was replaced"), "{what}");
    }

    #[test]
    fn another_list_or_another_name_is_found_out() {
        let standing = Standing::Pristine { initial_members: names(&["n1", "n3"]) };
        let others = heard(vec![pristine("n2"), Hello { standing, ..pristine("n3") }]);
        assert!(waits_for(decide(&pristine("n1"), &others)).contains("same list"));
        let mut others = heard(vec![pristine("n2")]);
        others.insert("n3".to_owned(), Ok(pristine("n2")));
        assert!(waits_for(decide(&pristine("n1"), &others)).contains("n2 answers where n3 should"));
    }

    fn restored(name: &str, state: &str) -> Hello {
        let initial_members = names(&["n1", "n2", "n3"]);
        Hello { standing: Standing::Restored { initial_members, state: state.to_owned() }, ..pristine(name) }
    }

    #[test]
    fn the_member_with_the_only_state_founds() {
        let others = heard(vec![pristine("n1"), pristine("n3")]);
        let decision = decide(&restored("n2", "x"), &others);
        let Decision::Found(founders) = decision else { panic!("{decision:?}") };
        assert_eq!(founders[&2].name, "n2");
        let others = heard(vec![restored("n2", "x"), pristine("n3")]);
        assert_eq!(waits_for(decide(&pristine("n1"), &others)), "n2 to found the cluster");
        // The same state on several disks is one state.
        let others = heard(vec![restored("n3", "x"), pristine("n1")]);
        assert!(matches!(decide(&restored("n2", "x"), &others), Decision::Found(_)));
        let others = heard(vec![restored("n3", "y"), pristine("n1")]);
        assert!(waits_for(decide(&restored("n2", "x"), &others)).contains("one state to begin with"));
        assert!(
            waits_for(decide(&pristine("n1"), &heard(vec![restored("n3", "y"), restored("n2", "x")])))
                .contains("one state to begin with")
        );
    }

    #[test]
    fn a_single_member_founds_at_once() {
        let standing = Standing::Pristine { initial_members: names(&["n1"]) };
        let me = Hello { standing, ..pristine("n1") };
        assert!(matches!(decide(&me, &BTreeMap::new()), Decision::Found(founders) if founders.len() == 1));
    }
}
