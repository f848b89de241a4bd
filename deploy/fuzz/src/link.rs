//! Frames that any station of a link can send to the probes of the agent.

use ipam_agent::probe::frame::answer;

/// One frame.
pub(crate) fn frame(data: &[u8]) {
    let Some((_, mac)) = answer(data) else { return };
    assert!(!mac.is_zero() && !mac.is_multicast(), "no station has the address {mac}");
}
