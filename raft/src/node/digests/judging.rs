//! Verdict on one member's state, computed from the checkpoints of all members without side effects.

use std::collections::{BTreeMap, BTreeSet};

use crate::store::Checkpoint;

/// Verdict on the state of one member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// No log index allows a comparison of the member with a majority.
    Nothing,
    /// A majority of the voters has the same state.
    Agrees,
    /// A majority agrees on another state.
    Odd {
        /// Index of the log entry.
        index: u64,
        /// The digest of the majority.
        right: u128,
        /// Voters with the digest of the majority.
        fellows: Vec<u64>,
    },
    /// Members differ, and the voters without a report could still form a majority.
    Undecided {
        /// Index of the log entry.
        index: u64,
    },
    /// Members differ, and no state can reach a majority, even with the voters without a report.
    Split {
        /// Index of the log entry.
        index: u64,
    },
}

/// Judges one member. The newest checkpoint with a majority decides. A newer disagreement without a majority
/// overrides an earlier agreement.
pub(super) fn judge(
    member: u64,
    voters: &BTreeSet<u64>,
    checkpoints: &BTreeMap<u64, Vec<Checkpoint>>,
) -> Verdict {
    let mut places: BTreeMap<u64, BTreeMap<u64, u128>> = BTreeMap::new();
    for (id, noted) in checkpoints {
        for checkpoint in noted {
            places.entry(checkpoint.index).or_default().insert(*id, checkpoint.digest);
        }
    }
    let majority = voters.len() / 2 + 1;
    let mut disagreement = None;
    for (index, digests) in places.into_iter().rev() {
        let Some(own) = digests.get(&member) else { continue };
        let mut votes: BTreeMap<u128, usize> = BTreeMap::new();
        for (_, digest) in digests.iter().filter(|(id, _)| voters.contains(id)) {
            *votes.entry(*digest).or_default() += 1;
        }
        let Some((right, most)) = votes.iter().max_by_key(|(_, votes)| **votes) else { continue };
        if *most >= majority && right == own {
            return disagreement.unwrap_or(Verdict::Agrees);
        }
        if *most >= majority {
            let fellows = digests.iter().filter(|(id, digest)| *digest == right && voters.contains(id));
            return Verdict::Odd { index, right: *right, fellows: fellows.map(|(id, _)| *id).collect() };
        }
        if disagreement.is_none() && votes.keys().any(|digest| digest != own) {
            let silent = voters.len().saturating_sub(votes.values().sum());
            disagreement = Some(match most + silent >= majority {
                true => Verdict::Undecided { index },
                false => Verdict::Split { index },
            });
        }
    }
    disagreement.unwrap_or(Verdict::Nothing)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line a member: its digests at entries 64, 128, ..., as letters; a blank where it has none.
    fn verdict(voters: usize, member: u64, lines: &[&str]) -> Verdict {
        let checkpoints = lines.iter().zip(1..).map(|(line, id)| {
            let noted = line.bytes().zip(1..).filter(|(letter, _)| *letter != b' ');
            let noted = noted.map(|(letter, place): (u8, u64)| Checkpoint {
                index: 64 * place,
                revision: 0,
                digest: letter.into(),
            });
            (id, noted.collect())
        });
        judge(member, &(1..=voters as u64).collect(), &checkpoints.collect())
    }

    fn odd(index: u64, right: u8, fellows: &[u64]) -> Verdict {
        Verdict::Odd { index, right: right.into(), fellows: fellows.to_vec() }
    }

    #[test]
    fn two_of_three_decide() {
        let lines = ["aab", "aac", "aab"];
        assert_eq!(verdict(3, 1, &lines), Verdict::Agrees);
        assert_eq!(verdict(3, 2, &lines), odd(192, b'b', &[1, 3]));
        assert_eq!(verdict(3, 3, &lines), Verdict::Agrees);
    }

    #[test]
    fn three_different_digests_have_no_majority() {
        for member in 1..=3 {
            assert_eq!(verdict(3, member, &["aa", "ab", "ac"]), Verdict::Split { index: 128 });
        }
    }

    #[test]
    fn three_of_five_decide_and_two_against_two_against_one_do_not() {
        let lines = ["a", "a", "b", "a", "b"];
        assert_eq!(verdict(5, 1, &lines), Verdict::Agrees);
        assert_eq!(verdict(5, 3, &lines), odd(64, b'a', &[1, 2, 4]));
        assert_eq!(verdict(5, 1, &["a", "a", "b", "b", "c"]), Verdict::Split { index: 64 });
    }

    #[test]
    fn silence_leaves_it_open_as_long_as_it_could_decide() {
        assert_eq!(verdict(3, 1, &["a", "b", " "]), Verdict::Undecided { index: 64 });
        assert_eq!(verdict(3, 1, &["a", "a", " "]), Verdict::Agrees);
        assert_eq!(verdict(3, 1, &["a", " ", " "]), Verdict::Nothing);
        assert_eq!(verdict(5, 1, &["a", "b", "c", " ", " "]), Verdict::Undecided { index: 64 });
        assert_eq!(verdict(5, 1, &["a", "b", "c", "d", " "]), Verdict::Split { index: 64 });
        assert_eq!(verdict(2, 1, &["a", "b"]), Verdict::Split { index: 64 });
        assert_eq!(verdict(1, 1, &["a"]), Verdict::Agrees);
    }

    #[test]
    fn a_lagging_member_is_judged_by_its_checkpoints() {
        assert_eq!(verdict(3, 3, &["aaaa", "aaaa", "b"]), odd(64, b'a', &[1, 2]));
        assert_eq!(verdict(3, 1, &["aaaa", "aaaa", "b"]), Verdict::Agrees);
        assert_eq!(verdict(3, 3, &["  aa", "  aa", "b"]), Verdict::Nothing, "nothing in common");
    }

    #[test]
    fn a_new_disagreement_outweighs_an_old_agreement_but_not_an_old_verdict() {
        assert_eq!(verdict(3, 1, &["aa", "ab", "a "]), Verdict::Undecided { index: 128 });
        assert_eq!(verdict(3, 2, &["aa", "bb", "a "]), odd(64, b'a', &[1, 3]));
    }

    #[test]
    fn a_member_that_is_equal_again_is_trusted() {
        assert_eq!(verdict(3, 2, &["aa", "ba", "aa"]), Verdict::Agrees);
    }

    #[test]
    fn a_learner_is_judged_and_judges_no_member() {
        let lines = ["a", "b", "a", "b"];
        assert_eq!(verdict(3, 4, &lines), odd(64, b'a', &[1, 3]));
        assert_eq!(verdict(3, 2, &lines), odd(64, b'a', &[1, 3]));
        assert_eq!(verdict(3, 4, &["a", " ", " ", "b"]), Verdict::Undecided { index: 64 });
    }
}
