//! Advances log time in an idle cluster, so that cooled addresses are shown as free.
//!
//! Every command expires rows in `apply`; this task only covers a cluster without commands.

use ipam_machine::Action;

use super::leader::Leader;

/// Proposes an expiry if a row or a token is due; false if the proposal failed.
pub(super) async fn run(leader: &Leader<'_>) -> bool {
    let state = leader.node.stale().0;
    // All members judge tokens by the state's log time, so an entry has to carry it there.
    let has_passed = |at_ms| leader.node.log_time_ms().is_some_and(|now_ms| now_ms >= at_ms);
    let is_due = state.next_expiry_ms().is_some() || state.next_token_expiry_ms().is_some_and(has_passed);
    !is_due || leader.propose("expire", Action::Expire).await
}
