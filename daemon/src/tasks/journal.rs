//! Seals the journal's open segment at its maximum age, and drops the oldest segments by size and age. Limits
//! count whole segments, so slightly more is kept than configured, never less.

use ipam_machine::{Action, State};

use super::leader::Leader;
use super::status::Run;
use super::task::Task;

/// Limits of the kept journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JournalLimits {
    /// Bytes of events, before compression; on disk they are about a fifth.
    pub keep_bytes: u64,
    /// Days of log time: it stands still without a leader, and a wrong wall clock doesn't shorten history.
    pub keep_days: u64,
}

const DAY_MS: u64 = 24 * 3600 * 1000;

/// Proposes to seal the open segment in an idle cluster, and to drop history above the limits.
pub(super) async fn run(leader: &Leader<'_>, limits: JournalLimits) -> Run {
    let state = leader.node.stale().0;
    // The leadership has ended, and the new leader does the work.
    let Some(log_time_ms) = leader.node.log_time_ms() else { return Run::of(false) };
    // `apply` checks the age again, at the log time of the entry.
    let old = state.header().journal.is_old(log_time_ms);
    let sealed = !old || leader.propose(Task::Journal, Action::SealJournal).await.is_some();
    let trimmed = match due(&state, limits, log_time_ms) {
        Some(through) => leader.propose(Task::Journal, Action::TrimJournal { through }).await.is_some(),
        None => true,
    };
    Run::of(sealed && trimmed)
}

/// Newest segment to drop, together with all older ones.
fn due(state: &State, limits: JournalLimits, now_ms: u64) -> Option<u64> {
    let open = state.header().journal.open.bytes;
    let mut kept: u64 =
        state.segments.iter().map(|(_, segment)| segment.bytes).sum::<u64>().saturating_add(open);
    let too_old = now_ms.saturating_sub(limits.keep_days.saturating_mul(DAY_MS));
    let mut due = None;
    for (number, segment) in state.segments.iter() {
        // A segment stays if the rest would fall below the size limit, unless it is too old.
        if kept.saturating_sub(segment.bytes) < limits.keep_bytes && segment.until_log_time_ms >= too_old {
            break;
        }
        kept = kept.saturating_sub(segment.bytes);
        due = Some(number);
    }
    due
}

#[cfg(test)]
mod tests {
    use ipam_api::limits::JOURNAL_SEGMENT_AGE_MS_MAX;
    use ipam_machine::{At, apply, fixtures};

    use super::*;

    /// Ten segments of a day each, and an open one.
    fn state() -> State {
        let mut state = State::new();
        for day in 0..=10_u64 {
            let action = Action::PutNetwork(fixtures::put(fixtures::network(&format!("network-{day}"))));
            // Wall time has no effect: it runs backwards here.
            let wall_ms = (1000 - day) * DAY_MS;
            let at = At { log_time_ms: 1 + day * JOURNAL_SEGMENT_AGE_MS_MAX, wall_ms, leadership: 0 };
            apply(&mut state, at, &fixtures::command(action)).0.unwrap();
        }
        assert_eq!(state.segments.len(), 10);
        state
    }

    #[test]
    fn only_segments_beyond_the_limits_are_dropped() {
        let state = state();
        let limits = |keep_bytes, keep_days| JournalLimits { keep_bytes, keep_days };
        let now_ms = 10 * DAY_MS;
        assert_eq!(due(&state, limits(u64::MAX, 400), now_ms), None);
        assert_eq!(due(&state, limits(u64::MAX, 3), now_ms), Some(7), "events of day 7 are kept");
        assert_eq!(due(&state, limits(u64::MAX, 1), 400 * DAY_MS), Some(10), "all that is sealed");
        let each = state.segments.iter().next().unwrap().1.bytes;
        assert_eq!(due(&state, limits(20 * each, 400), now_ms), None);
        let through = due(&state, limits(4 * each, 400), now_ms).unwrap();
        let kept: u64 = state.segments.iter_after(through).map(|(_, segment)| segment.bytes).sum();
        assert!(kept + state.header().journal.open.bytes >= 4 * each, "never less than was said");
        assert!((6..=8).contains(&through), "{through}");
    }
}
