//! Unix sockets for local processes.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use ipam_raft::socket::make_way;
use tokio::net::UnixListener;

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
