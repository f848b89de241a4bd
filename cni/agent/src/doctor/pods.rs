//! View of the node's pods: its age, its size, and the errors of the API server.

use std::time::{Duration, Instant};

use ipam_api::agent::DoctorCheck;

use super::{ok, warning};
use crate::node::Node;
use crate::pods::State;

/// Silence of a watch above which a check warns: the API server sends a bookmark about every minute.
const SILENCE: Duration = Duration::from_secs(180);

/// Checks the view; `None` outside Kubernetes.
pub(super) fn check(node: &Node) -> Option<DoctorCheck> {
    let view = node.pods.as_ref()?;
    let count = node.journal.attachments().pods().len();
    Some(of(&view.state(), count))
}

fn of(state: &State, count: usize) -> DoctorCheck {
    let name = "pods";
    let ago = |at: Option<Instant>| match at {
        Some(at) => format!("{} s ago", at.elapsed().as_secs()),
        None => "never since the start of the agent".to_owned(),
    };
    let detail = format!("{count} pods, listed {}, last heard {}", ago(state.listed), ago(state.heard));
    let is_silent = state.heard.is_none_or(|heard| heard.elapsed() > SILENCE);
    if let Some(error) = &state.error {
        let help = "ADDs of known pods work. Check the API server, the token, the CA and the permissions.";
        warning(name, format!("{detail}; {error}"), help)
    } else if state.surplus > 0 {
        let detail = format!("{detail}; {} pods exceed the limits of the view", state.surplus);
        warning(
            name,
            detail,
            "Their ADDs need the API server. Run fewer pods on the node, or smaller labels.",
        )
    } else if let Some(error) = &state.owner_error {
        let help = "Permit the agent to get replicasets, deployments, statefulsets, daemonsets and jobs.";
        warning(name, format!("{detail}; a controller can't be read: {error}"), help)
    } else if let Some(error) = &state.event_error {
        let help = "Permit the agent to create and patch events.";
        warning(name, format!("{detail}; an event can't be sent: {error}"), help)
    } else if is_silent {
        warning(name, detail, "Check the API server. ADDs of new pods are slower until the watch has them.")
    } else {
        ok(name, detail)
    }
}

#[cfg(test)]
mod tests {
    use ipam_api::agent::Verdict;

    use super::*;

    #[test]
    fn the_first_problem_of_the_view_is_reported() {
        let now = Some(Instant::now());
        let good = State { listed: now, heard: now, ..State::default() };
        let check = of(&good, 7);
        assert_eq!((check.verdict, check.help.as_str()), (Verdict::Ok, ""));
        assert!(check.detail.starts_with("7 pods, listed 0 s ago"), "{check:?}");
        let some = |text: &str| Some(text.to_owned());
        for (state, detail) in [
            (State::default(), "never since the start"),
            (State { error: some("refused"), surplus: 1, ..good.clone() }, "; refused"),
            (State { surplus: 3, owner_error: some("x"), ..good.clone() }, "; 3 pods exceed"),
            (State { owner_error: some("forbidden"), ..good.clone() }, "read: forbidden"),
            (State { event_error: some("forbidden"), ..good.clone() }, "sent: forbidden"),
            (State { heard: Instant::now().checked_sub(2 * SILENCE), ..good.clone() }, "360 s ago"),
        ] {
            let check = of(&state, 7);
            assert!(check.detail.contains(detail), "{check:?}");
            assert!(check.verdict == Verdict::Warning && !check.help.is_empty(), "{check:?}");
        }
    }
}
