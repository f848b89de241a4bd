//! Sockets on which clients and peers connect.

use std::fs::Permissions;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use ipam_raft::socket::make_way;
use tokio::net::{TcpListener, TcpSocket, UnixListener};

/// Length of the accept queue. The kernel drops further connections, which clients repeat after a second, so
/// the default of 128 would delay a burst of clients. The kernel limits the length to `net.core.somaxconn`.
const BACKLOG: u32 = 4096;

/// Binds a port for clients or peers. Needs a runtime.
///
/// # Errors
/// If the address can't be used.
pub(crate) fn bind_port(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // Connections of the previous process may still be in TIME_WAIT.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Binds a unix socket for local processes, which the kernel identifies by user. The socket of a dead process
/// is replaced.
///
/// # Errors
/// If the path can't be used.
pub(crate) async fn bind_socket(path: &Path) -> io::Result<UnixListener> {
    make_way(path).await?;
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, Permissions::from_mode(0o666))?;
    Ok(listener)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn many_clients_connect_before_any_is_accepted() {
        let listener = bind_port("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = listener.local_addr().unwrap();
        // With a shorter queue the kernel drops connections, and the last clients time out.
        let connect = |_| std::net::TcpStream::connect(address).unwrap();
        let waiting: Vec<_> = (0..200).map(connect).collect();
        assert_eq!(waiting.len(), 200);
    }
}
