//! Limit of file descriptors: clients must leave enough of them for the log and the peers.

use ipam_api::limits::{CONNECTIONS_MAX, DESCRIPTORS_KEPT, SOCKET_CONNECTIONS_MAX};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors that all of a member's connections and files together can use.
const WANTED: u64 = (CONNECTIONS_MAX + SOCKET_CONNECTIONS_MAX + DESCRIPTORS_KEPT) as u64;

/// Raises the soft limit as far as useful and permitted. Returns the number of network connections that fit
/// into it.
pub(crate) fn make_room() -> usize {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let reachable = maximum.map_or(WANTED, |maximum| maximum.min(WANTED));
    let mut soft = current.unwrap_or(u64::MAX);
    if soft < reachable && setrlimit(Resource::Nofile, Rlimit { current: Some(reachable), maximum }).is_ok() {
        soft = reachable;
    }
    let connections = connections_within(soft);
    if connections < CONNECTIONS_MAX {
        tracing::warn!(
            open_files_max = soft,
            connections,
            "fewer connections are taken than could be; raise the limit of open files (LimitNOFILE)"
        );
    }
    connections
}

fn connections_within(descriptors: u64) -> usize {
    let kept = (DESCRIPTORS_KEPT + SOCKET_CONNECTIONS_MAX) as u64;
    // With hardly any descriptors, serving few clients is better than serving none.
    let left = descriptors.saturating_sub(kept).max(descriptors / 4);
    usize::try_from(left).unwrap_or(usize::MAX).min(CONNECTIONS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_never_get_all_descriptors() {
        assert_eq!(connections_within(u64::MAX), CONNECTIONS_MAX);
        assert_eq!(connections_within(WANTED), CONNECTIONS_MAX);
        for descriptors in [64, 256, 1024, 2048] {
            let connections = connections_within(descriptors);
            assert!(0 < connections && (connections as u64) < descriptors, "{descriptors}: {connections}");
        }
        assert_eq!(connections_within(1024), 256);
    }
}
