//! Comparison of an explanation with the result of the request.

use std::net::IpAddr;

use ipam_api::Code;
use ipam_machine::command::{Allocate, Given, GivenInterface, OnLinks};
use ipam_machine::event::WaitReason;
use ipam_machine::explain::{CandidateOutcome, Explained, Explanation};
use ipam_machine::{Action, Answer, Command, Outcome};

/// Compares an explanation with what became of its request.
pub(crate) fn agrees(explanation: &Explanation, outcome: &Outcome, command: &Command) {
    assert_eq!(explanation.outcome, *outcome, "explained otherwise: {command:?}");
    let (Action::Allocate(request) | Action::AllocateOnLinks(OnLinks(request))) = &command.action else {
        return assert!(explanation.choices.is_empty(), "there is nothing to choose: {command:?}");
    };
    if request.options.adopt {
        return assert!(explanation.choices.is_empty(), "what is adopted isn't chosen: {command:?}");
    }
    for choice in &explanation.choices {
        assert!(choice.given.is_some() != choice.refused.is_some(), "{choice:?}");
        if choice.more || choice.kept {
            continue;
        }
        let gives = |outcome: &CandidateOutcome| matches!(outcome, CandidateOutcome::Gives(_));
        let first = choice.candidates.iter().find(|one| gives(&one.outcome));
        let first = first.map(|one| {
            (
                one.pool.clone(),
                match one.outcome {
                    CandidateOutcome::Gives(address) => address,
                    _ => unreachable!("it gives"),
                },
            )
        });
        assert_eq!(choice.given, first, "the first that gives is the one: {choice:?}");
    }
    match outcome.as_ref().map(|applied| &applied.answer) {
        Ok(Answer::Allocated { repeated: false, interfaces }) => {
            // Existing addresses and claims weren't chosen now.
            let is_chosen =
                |one: &&GivenInterface| explanation.choices.iter().any(|choice| choice.interface == one.name);
            // What is attached elsewhere was the choice of that attachment, unless it was taken along.
            let kept = |address: IpAddr| {
                let of_choice =
                    |choice: &Explained| choice.given.as_ref().is_some_and(|(_, one)| *one == address);
                explanation.choices.iter().any(|choice| choice.kept && of_choice(choice))
            };
            let given = interfaces.iter().filter(is_chosen).flat_map(|interface| {
                let name = interface.name.clone();
                let is_elsewhere =
                    interface.attachment.is_some() && interface.attachment != request.attachment;
                // A lease beside kept addresses wasn't chosen, and stays until it ends.
                let is_choice = move |one: &&Given| {
                    (one.lease.is_none() || request.options.ttl_ms.is_some())
                        && (!is_elsewhere || kept(one.address.addr()))
                };
                interface
                    .addresses
                    .iter()
                    .filter(is_choice)
                    .map(move |one| (name.clone(), one.pool.clone(), one.address.addr()))
            });
            let foretold = explanation.choices.iter().filter_map(|choice| {
                let (pool, address) = choice.given.clone()?;
                Some((choice.interface.clone(), pool, address))
            });
            // What is taken along is older than what is new, and has its place before it.
            let (mut foretold, mut given): (Vec<_>, Vec<_>) = (foretold.collect(), given.collect());
            foretold.sort();
            given.sort();
            assert_eq!(foretold, given, "{command:?}");
        }
        Ok(Answer::Pending(pending)) => {
            let refused = explanation.choices.iter().any(|choice| choice.refused.is_some());
            let otherwise = matches!(pending.why, WaitReason::AllocationFailed | WaitReason::QuotaExceeded);
            assert!(refused || otherwise, "it waits for nothing: {command:?}");
        }
        Ok(_) => assert!(explanation.choices.is_empty(), "nothing was chosen: {command:?}"),
        Err(refusal) => {
            let first = explanation.choices.iter().find_map(|choice| choice.refused.as_ref());
            assert!(
                first.is_none_or(|first| first == refusal || is_decided_before(refusal.code())),
                "refused for another reason: {first:?} {refusal:?}"
            );
            // A subnet that hasn't enough for a pool of its own is no candidate.
            let chooses = first.is_some() || request.automatic_pool.is_some();
            assert!(chooses || !is_decided_by_choosing(refusal.code(), request), "{refusal:?}");
        }
    }
}

/// True for refusals before any choice.
fn is_decided_before(code: Code) -> bool {
    matches!(
        code,
        Code::AttachmentReleased
            | Code::BootUnconfirmed
            | Code::AlreadyExists
            | Code::DeadlineExceeded
            | Code::InvalidField
            | Code::ConflictingFields
    )
}

/// True for refusals that only the choice makes.
fn is_decided_by_choosing(code: Code, request: &Allocate) -> bool {
    let by_value = request.interfaces.iter().any(|one| !one.addresses.is_empty());
    matches!(code, Code::PoolExhausted | Code::PoolDisabled) && !by_value
}
