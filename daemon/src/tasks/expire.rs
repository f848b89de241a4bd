//! Lets log time pass where nobody asks for anything, so that what has cooled is shown as free. `apply` does the
//! same with every command; this only keeps a quiet cluster honest.

use ipam_machine::Action;

use super::leader::Leader;

/// Proposes that time has passed, if a row waits for that or a token has expired; false if that came to nothing.
pub(super) async fn run(leader: &Leader<'_>) -> bool {
    let state = leader.node.stale().0;
    // All members judge tokens by the state's log time, so an entry has to carry it there.
    let has_passed = |at_ms| leader.node.log_time_ms().is_some_and(|now_ms| now_ms >= at_ms);
    let is_due = state.next_expiry_ms().is_some() || state.next_token_expiry_ms().is_some_and(has_passed);
    !is_due || leader.propose("expire", Action::Expire).await
}
