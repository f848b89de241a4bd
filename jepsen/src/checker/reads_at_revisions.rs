//! Reads that state a revision, compared with the model at that revision.

use std::collections::BTreeSet;

use ipam_api::address::AddressRange;

use super::block::block;
use super::intervals::Interval;
use super::model::Model;
use super::pairs::Pairs;
use super::{Anomaly, Verdict};
use crate::history::{Function, Type};

/// Network of a read that specifies none.
const NETWORK: &str = "default";

/// Subject of a read.
enum Subject<'a> {
    Address(&'a str, AddressRange),
    Pools(&'a [String]),
}

/// Reads in the order of their revisions.
pub(super) struct ReadsAtRevisions<'a> {
    reads: std::iter::Peekable<std::vec::IntoIter<(u64, usize, Subject<'a>)>>,
    /// Number of reads that were compared.
    pub(super) compared: u64,
}

impl<'a> ReadsAtRevisions<'a> {
    /// Collects the reads. Reads that a restore has undone and reads without a revision are left out.
    pub(super) fn of(pairs: &Pairs<'a>) -> Self {
        let mut reads = Vec::new();
        for (at, call) in pairs.calls.iter().enumerate() {
            if call.kind() != Type::Ok || !pairs.journal.is_complete {
                continue;
            }
            let Some(revision) = call.value().revision.filter(|revision| !pairs.journal.is_lost(*revision))
            else {
                continue;
            };
            if let Some(subject) = subject(call, revision) {
                reads.push((revision, at, subject));
            }
        }
        reads.sort_by_key(|(revision, at, _)| (*revision, *at));
        Self { reads: reads.into_iter().peekable(), compared: 0 }
    }

    /// Compares all reads below a revision.
    pub(super) fn compare_before(
        &mut self,
        revision: u64,
        model: &Model<'a>,
        pairs: &Pairs<'a>,
        verdict: &mut Verdict,
    ) {
        while let Some((of, at, subject)) = self.reads.next_if(|(of, _, _)| *of < revision) {
            let Some(call) = pairs.call(at) else { continue };
            let seen: BTreeSet<u64> = call.value().grants.iter().map(|grant| grant.id).collect();
            let expected: BTreeSet<u64> = match subject {
                Subject::Address(network, address) => {
                    model.allocation_at(network, address).into_iter().collect()
                }
                Subject::Pools(pools) => {
                    let ids: Option<Vec<_>> = pools.iter().map(|pool| model.allocations_of(pool)).collect();
                    let Some(ids) = ids else { continue };
                    ids.into_iter().flatten().collect()
                }
            };
            self.compared += 1;
            verdict.checked += 1;
            if seen != expected {
                let differ: Vec<&u64> = seen.symmetric_difference(&expected).take(8).collect();
                let message = format!(
                    "the read at revision {of} differs from the journal at that revision in grants {differ:?}"
                );
                verdict.add(Anomaly { message, operations: vec![call.begin.index], events: Vec::new() });
            }
        }
    }
}

fn subject<'a>(call: &Interval<'a>, revision: u64) -> Option<Subject<'a>> {
    let (begin, value) = (call.begin, call.value());
    match begin.f {
        Function::Read => {
            let address = block(begin.value.target.as_deref()?, false)?;
            let network = value.grants.first().map_or(NETWORK, |grant| grant.network.as_str());
            Some(Subject::Address(network, address))
        }
        Function::List if !begin.value.pools.is_empty() => {
            // Pages of different revisions don't show a single state.
            let revisions = value.detail.get("revisions").and_then(serde_json::Value::as_array);
            let is_one = revisions?.iter().all(|one| one.as_u64() == Some(revision));
            is_one.then_some(Subject::Pools(&begin.value.pools))
        }
        _ => None,
    }
}
