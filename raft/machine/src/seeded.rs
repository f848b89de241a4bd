//! Seeded bugs: defects that `ipam-jepsen mutants` turns on, to prove that its checkers detect them.
//!
//! A seeded bug is a start option of the test build (`--test-option bug-NAME`), off by default. Without the
//! feature `testing`, [`SeededBug::is_on`] always returns false, and the compiler removes the defect.
//!
//! **Invariant:** the state depends on the log alone, as long as all members have the same options. The
//! exception is [`SeededBug::LocalLease`], whose defect is to violate this invariant.

/// Names the bugs: each is a variant with its option.
macro_rules! bugs {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal;)*) => {
        /// A defect that a test can turn on in the whole process.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum SeededBug {
            $($(#[doc = $doc])+ $variant,)*
        }

        #[cfg(feature = "testing")]
        impl SeededBug {
            /// All bugs with the names of their options.
            pub const ALL: &[(Self, &str)] = &[$((Self::$variant, $name)),*];
        }
    };
}

bugs! {
    /// The leader answers a write before its entry is committed.
    EarlyAck = "bug-early-ack";
    /// The log confirms entries and votes without an fsync.
    SkippedFsync = "bug-skipped-fsync";
    /// A linearizable read is answered from the member's own state, without a read index.
    LocalRead = "bug-local-read";
    /// The leader answers a read index without asking a majority.
    UnconfirmedRead = "bug-unconfirmed-read";
    /// A forwarded write whose outcome is unknown is sent once more, with or without an identity.
    RepeatedForward = "bug-repeated-forward";
    /// Log time follows the wall clock of the leader.
    WallClock = "bug-wall-clock";
    /// Answers kept for repetitions are forgotten when a leadership begins.
    ForgottenKeys = "bug-forgotten-keys";
    /// An ADD that began before the DEL of its attachment is granted.
    LateGrant = "bug-late-grant";
    /// A DEL releases an attachment that is newer than itself.
    LateRelease = "bug-late-release";
    /// A transaction keeps the effect of the steps before the one that is refused.
    PartialTransaction = "bug-partial-transaction";
    /// The last address of a delegated prefix remains free in its pool.
    OverlappingPrefix = "bug-overlapping-prefix";
    /// A returned prefix remains in the count of allocated addresses by one.
    MiscountedPrefix = "bug-miscounted-prefix";
    /// A renewal of a lease that ends later than in one second is taken for a repetition.
    DampedRenewal = "bug-damped-renewal";
    /// The end of a lease has no event.
    MissingEvent = "bug-missing-event";
    /// Waiting claims are not served when addresses become free.
    ForgottenClaim = "bug-forgotten-claim";
    /// The end of a lease depends on the process that applies the renewal.
    LocalLease = "bug-local-lease";
    /// A silent node loses its addresses without a witness that found them silent.
    HastyReclaim = "bug-hasty-reclaim";
    /// An event stream goes on after the revision of the state, not after that of its last page.
    SkippedEvent = "bug-skipped-event";
    /// A page of a list lacks the first item after the cursor.
    SkippedItem = "bug-skipped-item";
}

/// The bugs that are on in this process, one bit each.
#[cfg(feature = "testing")]
static ON: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);

impl SeededBug {
    /// Returns true in a test build that was started with this bug.
    #[must_use]
    #[inline]
    pub fn is_on(self) -> bool {
        #[cfg(feature = "testing")]
        return ON.load(std::sync::atomic::Ordering::Relaxed) & self.bit() != 0;
        #[cfg(not(feature = "testing"))]
        false
    }
}

/// Number that differs between members, for [`SeededBug::LocalLease`].
pub(crate) fn local_number() -> u64 {
    u64::from(std::process::id())
}

#[cfg(feature = "testing")]
impl SeededBug {
    /// Turns the bug on until the process ends.
    pub fn turn_on(self) {
        ON.fetch_or(self.bit(), std::sync::atomic::Ordering::Relaxed);
    }

    fn bit(self) -> u64 {
        1 << self as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_bug_has_a_bit_of_its_own() {
        let mut bits = 0;
        for (bug, name) in SeededBug::ALL {
            assert_eq!(bits & bug.bit(), 0, "{name}");
            bits |= bug.bit();
        }
    }

    /// The option applies to the whole process, so no other test uses this one.
    #[test]
    fn a_bug_is_off_unless_it_is_turned_on() {
        let on = || SeededBug::ALL.iter().filter(|(bug, _)| bug.is_on()).map(|(_, name)| *name);
        assert_eq!(on().count(), 0);
        SeededBug::EarlyAck.turn_on();
        assert_eq!(on().collect::<Vec<_>>(), ["bug-early-ack"]);
    }
}
