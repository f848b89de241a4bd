//! Writes of a history: attempts, accepted writes, and refusals that prove a working majority.

use ipam_api::Code;

use crate::checker::intervals::Interval;
use crate::history::{Function, Type};

/// Times of writes, each in rising order.
#[derive(Debug, Clone, Default)]
pub(super) struct Writes {
    /// Begins, with the index of the operation.
    pub(super) attempts: Vec<(u64, u64)>,
    /// Ends of accepted writes.
    pub(super) accepted: Vec<u64>,
    /// Ends of writes that were accepted, or that the state machine refused.
    pub(super) answered: Vec<u64>,
}

/// Returns true for functions that a majority must accept. CNI DEL succeeds without a majority.
pub(super) fn is_write(f: Function) -> bool {
    use Function::{Add, Allocate, Claim, Delegate, Delete, Put, Release, Renew, Return, Transaction};
    matches!(f, Allocate | Release | Renew | Add | Claim | Delegate | Return | Transaction | Put | Delete)
}

impl Writes {
    /// Writes among these operations.
    pub(super) fn of(operations: &[Interval<'_>]) -> Self {
        let mut writes = Self::default();
        for interval in operations.iter().filter(|interval| is_write(interval.begin.f)) {
            writes.attempts.push((interval.begin_ns(), interval.begin.index));
            let Some(end) = interval.end else { continue };
            if end.kind == Type::Ok {
                writes.accepted.push(end.time_ns);
            }
            let refusal = end.value.error.as_deref().filter(|_| end.kind == Type::Fail);
            if end.kind == Type::Ok || refusal.is_some_and(is_refusal) {
                writes.answered.push(end.time_ns);
            }
        }
        writes.attempts.sort_unstable();
        writes.accepted.sort_unstable();
        writes.answered.sort_unstable();
        writes
    }
}

/// Returns true for the code of a refusal by the state, such as an exhausted pool.
fn is_refusal(error: &str) -> bool {
    let code = Code::ALL.iter().map(|code| code.entry()).find(|entry| entry.code == error);
    code.is_some_and(|entry| matches!(entry.http, 404 | 409 | 412))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_of_the_state_are_answers_and_unavailability_is_not() {
        assert!(is_refusal("pool-exhausted") && is_refusal("not-found"));
        assert!(!is_refusal("no-leader") && !is_refusal("unreachable") && !is_refusal("no code"));
    }
}
