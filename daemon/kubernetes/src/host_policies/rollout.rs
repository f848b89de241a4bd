//! Next objects of one host policy.
//!
//! A written object counts as unavailable until kubernetes-nmstate reports that its node is configured. A
//! failed node stops all changes of configured nodes. It also stops new nodes, until a node has succeeded
//! with the same template. Otherwise a failed node only counts as unavailable.

use ipam_api::name::ObjectName;

use super::policy::Policy;
use super::shown::{NncpFacts, NncpState};

/// Node that a policy applies to.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) name: ObjectName,
    /// Object with the name for the node, possibly of another owner.
    pub(crate) object: Option<NncpFacts>,
    /// True if an object was written that the watch has not shown yet.
    pub(crate) is_written: bool,
    /// True if the servers would render the node differently.
    pub(crate) is_stale: bool,
    /// Number of attempts that have failed since the last success.
    pub(crate) failures: u32,
}

/// State of a node.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum HostState {
    /// The node is configured.
    Available,
    /// The node refused the configuration.
    Degraded(String),
    /// The node is being configured.
    Progressing,
    /// The node has no object, or one with another content.
    Waiting,
    /// Another owner has an object of this name.
    Foreign,
}

/// Next step for a node.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Action {
    /// Write the first object.
    Create(ObjectName),
    /// Replace the object; `resets` is true if the addresses are released before.
    Replace { node: ObjectName, uid: String, resets: bool },
}

impl Action {
    /// Node, and uid of the object that is replaced.
    pub(crate) fn target(&self) -> (&ObjectName, Option<&String>) {
        match self {
            Self::Create(node) => (node, None),
            Self::Replace { node, uid, .. } => (node, Some(uid)),
        }
    }
}

/// States and next steps.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) states: Vec<(ObjectName, HostState)>,
    /// Requested resets of single nodes. They wait for no other node.
    pub(crate) asked: Vec<Action>,
    /// Further steps. There may be more steps than room, because a failed step uses no room.
    pub(crate) actions: Vec<Action>,
    /// Number of nodes that may become unavailable.
    pub(crate) room: u64,
    /// True if a node that fails stops the roll-out.
    pub(crate) is_stopped: bool,
}

/// Plans the next steps of a policy.
pub(crate) fn plan(policy: &Policy, hosts: &[Host], reset: Option<&str>) -> Plan {
    let states: Vec<HostState> = hosts.iter().map(|host| state(policy, host, reset)).collect();
    let count = |is_it: fn(&HostState) -> bool| states.iter().filter(|state| is_it(state)).count() as u64;
    let available = count(|state| *state == HostState::Available);
    let degraded = count(|state| matches!(state, HostState::Degraded(_)));
    let unavailable = degraded + count(|state| *state == HostState::Progressing);
    let mut room = policy.max_unavailable.of(hosts.len() as u64).saturating_sub(unavailable);
    let mut plan = Plan { room, ..Plan::default() };
    let waiting = || hosts.iter().zip(&states).filter(|(_, state)| **state == HostState::Waiting);
    // A reset of one node is a request of its own, which does not wait.
    let asked = |host: &Host| host.object.as_ref().is_some_and(|object| object.reset.is_some());
    let is_due = |(host, state): &(&Host, &HostState)| {
        asked(host) && !host.is_written && !matches!(state, HostState::Foreign)
    };
    let mut due: Vec<&Host> = hosts.iter().zip(&states).filter(is_due).map(|(host, _)| host).collect();
    due.sort_by_key(|host| host.failures);
    plan.asked = due.into_iter().filter_map(|host| replacement(host, true)).collect();
    let is_broken = degraded > 0 && available == 0;
    let new = || waiting().map(|(host, _)| host).filter(|host| host.object.is_none());
    let old = || {
        let is_old = |object: &NncpFacts| !object.is_deleting && object.reset.is_none();
        waiting().map(|(host, _)| host).filter(move |host| host.object.as_ref().is_some_and(is_old))
    };
    let (has_new, has_old) = (new().next().is_some(), old().next().is_some());
    plan.is_stopped = (is_broken && has_new) || (degraded > 0 && has_old);
    let mut next: Vec<&Host> = Vec::new();
    next.extend(new().filter(|_| !is_broken));
    next.extend(old().filter(|_| degraded == 0));
    // A failed attempt must not delay other nodes.
    next.sort_by_key(|host| host.failures);
    for host in next {
        if room == 0 {
            break;
        }
        room -= u64::from(host.failures == 0);
        let resets = host.object.as_ref().is_some_and(|object| object.lacks_reset(reset));
        let create = || Some(Action::Create(host.name.clone()));
        plan.actions.extend(replacement(host, resets).or_else(create));
    }
    plan.states = hosts.iter().map(|host| host.name.clone()).zip(states).collect();
    plan
}

fn replacement(host: &Host, resets: bool) -> Option<Action> {
    let uid = host.object.as_ref()?.uid.clone();
    Some(Action::Replace { node: host.name.clone(), uid, resets })
}

fn state(policy: &Policy, host: &Host, reset: Option<&str>) -> HostState {
    if host.is_written {
        return HostState::Progressing;
    }
    let Some(object) = &host.object else { return HostState::Waiting };
    if object.owner.as_ref().is_none_or(|owner| owner.policy != policy.name || owner.node != host.name) {
        return HostState::Foreign;
    }
    if object.is_deleting || host.is_stale || !object.is_current(&policy.template, reset) {
        return HostState::Waiting;
    }
    match &object.state {
        NncpState::Available => HostState::Available,
        NncpState::Degraded(text) => HostState::Degraded(text.clone()),
        NncpState::Progressing => HostState::Progressing,
    }
}

#[cfg(test)]
mod tests {
    use ipam_api::host_policy::HostPolicy;
    use ipam_api::name::Name;
    use serde_json::{Value, json};

    use super::super::object::{Content, object};
    use super::super::status::rollout;
    use super::*;
    use crate::custom::CustomObject;

    fn policy(max_unavailable: &Value) -> Policy {
        let spec = json!({"name": "static-ip", "realm": "prod", "max_unavailable": max_unavailable});
        Policy::of(&serde_json::from_value::<HostPolicy>(spec).unwrap())
    }

    fn name(node: &str) -> ObjectName {
        ObjectName::new(node).unwrap()
    }

    /// Object of a node, with a condition and further annotations.
    fn facts(policy: &Policy, node: &str, state: &str, change: impl FnOnce(&mut Value)) -> NncpFacts {
        let rendered = serde_json::from_value(json!({
            "policy": policy.name, "node": node, "interfaces": [], "capture": {}, "revision": 1,
            "endpoint": {"realm": "prod", "kind": "host", "namespace": policy.name, "name": node},
            "desired_state": {"interfaces": []},
        }))
        .unwrap();
        let (realm, of) = (Name::new("prod").unwrap(), name(node));
        let (node, rendered) = (&of, &rendered);
        let content = Content { policy, realm: &realm, node, hostname: "n", rendered, reset: None };
        let mut object = object(&content);
        object["metadata"]["uid"] = json!("u");
        object["status"] = json!({"conditions": [{"type": state, "status": "True", "message": "no link"}]});
        change(&mut object);
        let object: CustomObject = serde_json::from_value(object).unwrap();
        NncpFacts::of(object, &realm).unwrap().1
    }

    /// Hosts by their states: `-` has no object, `o` another template, `f` another owner.
    fn hosts(policy: &Policy, states: &str) -> Vec<Host> {
        let host = |(index, state): (usize, char)| {
            let node = format!("n{index}");
            let kind = match state {
                'd' => "Degraded",
                'p' => "Progressing",
                _ => "Available",
            };
            let object = facts(policy, &node, kind, |object| match state {
                'o' => object["metadata"]["annotations"]["ipamd.internal/template"] = json!("other"),
                'e' => object["spec"]["desiredState"] = json!({"interfaces": [1]}),
                'f' => object["metadata"]["labels"] = json!({}),
                'r' => object["metadata"]["annotations"]["ipamd.internal/reset"] = json!("1"),
                _ => {}
            });
            let (name, object) = (name(&node), (state != '-').then_some(object));
            Host { name, object, is_written: false, is_stale: false, failures: 0 }
        };
        states.chars().enumerate().map(host).collect()
    }

    fn next(max_unavailable: &Value, states: &str) -> (Vec<String>, bool) {
        let policy = policy(max_unavailable);
        let found = plan(&policy, &hosts(&policy, states), None);
        let shown = found.asked.iter().chain(&found.actions).map(|action| match action {
            Action::Create(node) => format!("create {node}"),
            Action::Replace { node, resets, .. } => {
                format!("{} {node}", if *resets { "reset" } else { "replace" })
            }
        });
        (shown.collect(), found.is_stopped)
    }

    #[test]
    fn n5_6_a_new_node_gets_its_own_object_and_no_other_one_changes() {
        assert_eq!(next(&json!("50%"), "aa-"), (vec!["create n2".to_owned()], false));
        assert_eq!(next(&json!("50%"), "aaa"), (vec![], false));
    }

    #[test]
    fn a_roll_out_goes_in_steps() {
        for (max, states, expected) in [
            (json!("50%"), "----", vec!["create n0", "create n1"]),
            (json!("50%"), "pp--", vec![]),
            (json!("50%"), "ap--", vec!["create n2"]),
            (json!(1), "oaoo", vec!["replace n0"]),
            (json!(1), "apoo", vec![]),
            (json!(2), "e-o", vec!["create n1", "replace n0"]),
            (json!(1), "f-", vec!["create n1"]),
        ] {
            assert_eq!(next(&max, states).0, expected, "{states}");
        }
    }

    #[test]
    fn a_node_that_fails_stops_changes_and_a_template_that_never_succeeded() {
        assert_eq!(next(&json!("50%"), "d---"), (vec![], true));
        assert_eq!(next(&json!("50%"), "da--").0, ["create n2"], "it takes one place of two");
        assert_eq!(next(&json!(1), "da--").0, Vec::<String>::new());
        assert_eq!(next(&json!(3), "dao"), (vec![], true), "configured nodes stay as they are");
    }

    #[test]
    fn n5_8_a_reset_of_one_node_waits_for_nothing_and_one_of_the_policy_goes_in_steps() {
        assert_eq!(next(&json!(1), "pr").0, ["reset n1"]);
        let policy = policy(&json!(1));
        let hosts = hosts(&policy, "aa");
        let found = plan(&policy, &hosts, Some("2"));
        assert_eq!(found.actions.len(), 1);
        assert!(matches!(&found.actions[0], Action::Replace { resets: true, .. }));
        assert!(rollout(&found, None, Some("2")).fields.get("observedReset").is_none());
        let found = plan(&policy, &hosts, None);
        let shown = rollout(&found, None, Some("2"));
        assert_eq!((shown.status, &shown.fields["observedReset"]), ("True", &json!("2")));
    }

    #[test]
    fn an_attempt_that_failed_holds_up_no_other_node_and_a_written_object_counts() {
        let policy = policy(&json!(1));
        let mut hosts = hosts(&policy, "--");
        hosts[0].failures = 1;
        let found = plan(&policy, &hosts, None);
        assert_eq!(found.actions, [Action::Create(name("n1"))]);
        hosts[1].is_written = true;
        let found = plan(&policy, &hosts, None);
        assert!(found.actions.is_empty());
        let shown = rollout(&found, None, None);
        assert_eq!((shown.reason.as_str(), &shown.fields["nodes"]["progressing"]), ("RollingOut", &json!(1)));
    }

    #[test]
    fn attempts_that_failed_come_last_and_the_room_is_known() {
        let policy = policy(&json!(2));
        let mut hosts = hosts(&policy, "-oorr");
        hosts[0].failures = 2;
        hosts[1].failures = 1;
        hosts[3].failures = 1;
        let found = plan(&policy, &hosts, None);
        let nodes = |actions: &[Action]| -> Vec<String> {
            actions.iter().map(|action| action.target().0.to_string()).collect()
        };
        assert_eq!(nodes(&found.actions), ["n2", "n1", "n0"]);
        assert_eq!(nodes(&found.asked), ["n4", "n3"]);
        assert_eq!(found.room, 2);
    }

    #[test]
    fn the_status_names_nodes_that_fail() {
        let policy = policy(&json!("50%"));
        let found = plan(&policy, &hosts(&policy, "da--"), None);
        let shown = rollout(&found, None, None);
        assert_eq!(shown.reason, "Degraded");
        assert_eq!(shown.message, "1 of 4 nodes are configured; node n0 failed: no link");
        let found = plan(&policy, &hosts(&policy, "d---"), None);
        assert!(rollout(&found, None, None).message.ends_with("the roll-out is stopped"));
        let found = plan(&policy, &hosts(&policy, "fa"), None);
        assert_eq!(rollout(&found, None, None).reason, "ManagedElsewhere");
    }
}
