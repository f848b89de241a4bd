//! I11: members with the same applied index have the same state, and all members end in the same one.

use std::collections::BTreeMap;

use super::record::Final;
use super::{Checker, Record, Verdict};

/// Checker of I11.
#[derive(Debug)]
pub(super) struct Digests;

/// Bits of a revision below its epoch.
const EPOCH_SHIFT: u32 = 40;

impl Checker for Digests {
    fn id(&self) -> &'static str {
        "I11"
    }

    fn name(&self) -> &'static str {
        "equal digests"
    }

    fn promises(&self) -> &'static [u8] {
        &[8]
    }

    fn about(&self) -> &'static str {
        "Members with the same applied index have the same digest, and all members end in the same state."
    }

    fn check(&self, record: &Record) -> Verdict {
        let mut verdict = Verdict::default();
        let mut states: BTreeMap<(u64, u64), (&str, &str)> = BTreeMap::new();
        let samples = record
            .samples
            .iter()
            .map(|sample| ((sample.epoch, sample.applied), (sample.digest.as_str(), sample.member.as_str())));
        let finals = record.finals.iter().map(|last| {
            let epoch = last.revision >> EPOCH_SHIFT;
            ((epoch, last.applied), (last.digest.as_str(), last.member.as_str()))
        });
        for (at, (digest, member)) in samples.chain(finals) {
            let first = *states.entry(at).or_insert((digest, member));
            if first.1 == member && first.0 == digest {
                continue;
            }
            verdict.checked += 1;
            if first.0 != digest {
                let (epoch, applied) = at;
                let message = format!(
                    "at applied index {applied} of epoch {epoch}, {} has digest {}, {member} has {digest}",
                    first.1, first.0
                );
                verdict.violated(message, []);
            }
        }
        check_ends(&record.finals, &mut verdict);
        verdict.figure("compared indexes", states.len());
        verdict
    }
}

/// Compares the final states of all members with that of the first member.
fn check_ends(finals: &[Final], verdict: &mut Verdict) {
    let Some((first, others)) = finals.split_first() else { return };
    for other in others {
        verdict.checked += 1;
        if (first.applied, first.revision) != (other.applied, other.revision) {
            let message = format!(
                "at the end {} has applied index {} and revision {}, and {} has {} and {}",
                first.member, first.applied, first.revision, other.member, other.applied, other.revision
            );
            verdict.violated(message, []);
            continue;
        }
        for (what, left, right) in [
            ("allocations", allocations(first), allocations(other)),
            ("prefixes", prefixes(first), prefixes(other)),
        ] {
            let differing = left.iter().find(|(id, text)| right.get(*id) != Some(*text));
            let differing = differing.or_else(|| right.iter().find(|(id, _)| !left.contains_key(*id)));
            if let Some((id, text)) = differing {
                let message = format!(
                    "at the end {} and {} list different {what}, for example {id}: {text}",
                    first.member, other.member
                );
                verdict.violated(message, []);
            }
        }
    }
}

fn allocations(last: &Final) -> BTreeMap<u64, String> {
    let row = |one: &ipam_api::resource::Allocation| {
        (one.id, format!("{} in {} of {}", one.address, one.network, one.endpoint))
    };
    last.allocations.iter().map(row).collect()
}

fn prefixes(last: &Final) -> BTreeMap<u64, String> {
    let row = |one: &ipam_api::resource::Prefix| {
        let cidr = one.cidr.map_or_else(|| "waiting".to_owned(), |cidr| cidr.to_string());
        (one.id, format!("{cidr} in {} of {}", one.network, one.path))
    };
    last.prefixes.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checker::Sample;
    use crate::checker::fixtures::{allocation, final_state};

    fn sample(member: &str, applied: u64, digest: &str, epoch: u64) -> Sample {
        let (member, digest) = (member.to_owned(), digest.to_owned());
        Sample { time_ns: 0, member, applied, digest, epoch, term: 1, leader: None }
    }

    #[test]
    fn equal_digests_at_equal_indexes_hold() {
        let samples = vec![sample("n1", 5, "a", 0), sample("n2", 5, "a", 0), sample("n2", 6, "b", 0)];
        let verdict = Digests.check(&Record { samples, ..Record::default() });
        assert_eq!((verdict.violations, verdict.checked), (0, 1));
    }

    #[test]
    fn a_diverged_member_is_a_violation_unless_the_epoch_differs() {
        let samples = vec![sample("n1", 5, "a", 0), sample("n2", 5, "b", 0)];
        assert_eq!(Digests.check(&Record { samples, ..Record::default() }).violations, 1);
        let samples = vec![sample("n1", 5, "a", 0), sample("n2", 5, "b", 1)];
        assert!(Digests.check(&Record { samples, ..Record::default() }).holds());
    }

    #[test]
    fn members_end_in_the_same_state_with_the_same_lists() {
        let (left, mut right) = (final_state("n1"), final_state("n2"));
        let finals = vec![left.clone(), right.clone()];
        assert!(Digests.check(&Record { finals, ..Record::default() }).holds());
        right.allocations.push(allocation(7, "10.0.0.7/24", "p"));
        let finals = vec![left.clone(), right.clone()];
        assert_eq!(Digests.check(&Record { finals, ..Record::default() }).violations, 1);
        right = final_state("n2");
        right.applied += 1;
        let finals = vec![left, right];
        assert_eq!(Digests.check(&Record { finals, ..Record::default() }).violations, 1);
    }
}
