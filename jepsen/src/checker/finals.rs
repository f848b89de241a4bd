//! Comparison of the replayed journal with the final state of a member.

use super::model::Model;
use super::pairs::Pairs;
use super::{Final, Verdict};

/// Compares a final state with the model at the same revision.
///
/// Background tasks may have continued while the state was read: grants that later events begin or end are
/// exempt.
pub(super) fn compare_finals(pairs: &Pairs<'_>, model: &Model<'_>, last: &Final, verdict: &mut Verdict) {
    let lifetimes = &pairs.journal.lifetimes;
    verdict.checked += (last.allocations.len() + last.prefixes.len()) as u64;
    for (id, message) in model.differences(last) {
        let events = lifetimes.get(&id).map(|known| [Some(known.begun), known.ended]);
        let events = events.into_iter().flatten().flatten();
        if events.clone().any(|event| event.revision > last.revision) {
            continue;
        }
        let operations = pairs.calls_naming(id).take(4).map(|(_, call)| call.begin.index).collect();
        verdict.add(super::Anomaly {
            message: format!("{}: {message}", last.member),
            operations,
            events: events.map(ipam_api::event::Event::id).collect(),
        });
    }
}
