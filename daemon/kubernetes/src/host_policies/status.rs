//! Progress of a roll-out, as the object of the host policy shows it.

use ipam_api::limits::KUBERNETES_CUSTOM_MESSAGE_CHARS_MAX;
use ipam_api::name::ObjectName;
use serde_json::{Map, Value, json};

use super::rollout::{HostState, Plan};

/// Maximum number of nodes that a message names.
const NAMED: usize = 3;

/// Progress of a roll-out.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Rollout {
    /// Further fields of the status.
    pub(crate) fields: Map<String, Value>,
    pub(crate) status: &'static str,
    pub(crate) reason: String,
    pub(crate) message: String,
}

/// Cause that holds up a roll-out.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Blocked {
    pub(crate) node: ObjectName,
    /// Reason in CamelCase.
    pub(crate) reason: String,
    pub(crate) message: String,
}

impl Rollout {
    /// Progress before anything is known of the nodes.
    pub(crate) fn without(reason: &str, message: &str) -> Self {
        Self { fields: Map::new(), status: "False", reason: reason.to_owned(), message: message.to_owned() }
    }
}

/// Progress of a roll-out by its plan, and by what holds it up.
pub(crate) fn rollout(plan: &Plan, blocked: Option<&Blocked>, reset: Option<&str>) -> Rollout {
    let count = |is_it: fn(&HostState) -> bool| plan.states.iter().filter(|(_, state)| is_it(state)).count();
    let available = count(|state| *state == HostState::Available);
    let degraded = count(|state| matches!(state, HostState::Degraded(_)));
    let all = plan.states.len();
    let mut fields = Map::new();
    let nodes = json!({
        "matching": all, "available": available, "degraded": degraded,
        "progressing": count(|state| *state == HostState::Progressing),
        "waiting": count(|state| matches!(state, HostState::Waiting | HostState::Foreign)),
    });
    fields.insert("nodes".to_owned(), nodes);
    if let Some(reset) = reset.filter(|_| available + degraded == all) {
        fields.insert("observedReset".to_owned(), reset.into());
    }
    let foreign = plan.states.iter().find(|(_, state)| *state == HostState::Foreign);
    let progress = format!("{available} of {all} nodes are configured");
    let (status, reason, message) = match (blocked, foreign) {
        _ if degraded > 0 => {
            let tail = if plan.is_stopped { "; the roll-out is stopped" } else { "" };
            ("False", "Degraded".to_owned(), format!("{progress}; {}{tail}", failures(plan, degraded)))
        }
        (Some(Blocked { node, reason, message }), _) => {
            ("False", reason.clone(), format!("{progress}; node {node}: {message}"))
        }
        (None, Some((node, _))) => {
            let text = "its policy of kubernetes-nmstate exists and has another owner; rename or delete it";
            ("False", "ManagedElsewhere".to_owned(), format!("{progress}; node {node}: {text}"))
        }
        _ if available == all => ("True", "Configured".to_owned(), progress),
        _ => ("False", "RollingOut".to_owned(), progress),
    };
    let message = message.chars().take(KUBERNETES_CUSTOM_MESSAGE_CHARS_MAX).collect();
    Rollout { fields, status, reason, message }
}

fn failures(plan: &Plan, degraded: usize) -> String {
    let failed = plan.states.iter().filter_map(|(node, state)| match state {
        HostState::Degraded(text) => Some(format!("node {node} failed: {text}")),
        _ => None,
    });
    let mut named: Vec<String> = failed.take(NAMED).collect();
    if degraded > NAMED {
        named.push(format!("and {} more", degraded - NAMED));
    }
    named.join("; ")
}
