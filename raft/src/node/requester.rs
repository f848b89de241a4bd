//! Requester of a command: the principal, and the namespace that it acts for.

use ipam_api::name::{Name, ObjectName};
use ipam_api::resource::EndpointKey;
use ipam_machine::command::Text;
use ipam_machine::{Action, Command};

/// Steps of one command that weigh as much as a command of their own: authentication, encoding and the
/// response are shared by all of them.
const STEPS_PER_WEIGHT: usize = 16;
/// Bytes of one command that weigh as much as another command.
const BYTES_PER_WEIGHT: usize = 4 << 10;

/// Namespace of a realm.
pub(super) type NamespaceKey = (Name, ObjectName);

/// Requester of a command; queues are fair between requesters. A follower forwards the command unchanged, so
/// the leader sees the same requester.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Requester {
    pub(super) principal: Text,
    /// None for commands about no single namespace.
    pub(super) namespace: Option<NamespaceKey>,
}

impl Requester {
    /// Requester of a command.
    pub(super) fn of(command: &Command) -> Self {
        Self { principal: Text::clone(&command.origin.principal), namespace: namespace(&command.action) }
    }
}

/// Size of a command for queues: 1, and more for many steps or bytes.
pub(super) fn weight(action: &Action, bytes: usize) -> usize {
    1 + steps(action) / STEPS_PER_WEIGHT + bytes / BYTES_PER_WEIGHT
}

fn steps(action: &Action) -> usize {
    match action {
        Action::Transaction(transaction) => transaction.steps.iter().map(steps).sum(),
        Action::AllocateMany(many) => many.names().count(),
        Action::ReleaseAllocations { ids } => ids.len(),
        _ => 1,
    }
}

fn namespace(action: &Action) -> Option<NamespaceKey> {
    let of = |endpoint: &EndpointKey| (endpoint.realm.clone(), endpoint.namespace.clone());
    match action {
        Action::Allocate(request) => Some(of(&request.endpoint)),
        Action::AllocateMany(many) => Some(of(&many.request.endpoint)),
        Action::AllocateOnLinks(request) => Some(of(&request.0.endpoint)),
        Action::ReleaseEndpoint { key } => Some(of(key)),
        Action::EndIncarnation(end) => Some(of(&end.endpoint)),
        Action::ScaleController(scale) => Some((scale.realm.clone(), scale.namespace.clone())),
        // The first step with a namespace decides: a transaction is usually about one workload.
        Action::Transaction(transaction) => transaction.steps.iter().find_map(namespace),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use ipam_machine::command::Transaction;
    use ipam_machine::id::AllocationId;

    use super::*;

    #[test]
    fn a_command_weighs_by_its_steps_and_its_bytes() {
        let steps = |count| Transaction { preconditions: Vec::new(), steps: vec![Action::Expire; count] };
        assert_eq!(weight(&Action::Expire, 300), 1);
        assert_eq!(weight(&Action::Transaction(steps(1_000)), 300), 63);
        assert_eq!(weight(&Action::Expire, 40 << 10), 11);
        let ids = (1..=1_000_u64).map(AllocationId::from).collect();
        let many = Action::ReleaseAllocations { ids };
        assert_eq!(weight(&many, 300), 63);
        // A bulk has the same weight as a step.
        let steps = vec![Action::Expire, many.clone(), many];
        let transaction = Transaction { preconditions: Vec::new(), steps };
        assert_eq!(weight(&Action::Transaction(transaction), 300), 126);
    }
}
