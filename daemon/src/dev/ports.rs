//! Ports of the members: the usual ones if they are free, else ports that the system chooses.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use super::console::DevError;

/// The first member's client port; the others follow.
const FRIENDLY: u16 = 17_440;

/// Addresses for `count` listeners on loopback.
///
/// # Errors
/// If loopback has no free port.
pub(super) fn pick(count: u16) -> Result<Vec<SocketAddr>, DevError> {
    let at = |port: u16| TcpListener::bind((Ipv4Addr::LOCALHOST, port));
    let friendly: Result<Vec<TcpListener>, _> = (FRIENDLY..FRIENDLY + count).map(at).collect();
    // All ports stay bound until all are known, so that none is used twice.
    let listeners = match friendly {
        Ok(listeners) => Ok(listeners),
        Err(_) => (0..count).map(|_| at(0)).collect::<Result<Vec<_>, _>>(),
    };
    listeners
        .and_then(|listeners| listeners.iter().map(TcpListener::local_addr).collect())
        .map_err(|error| DevError::new("no free port on loopback", error))
}
