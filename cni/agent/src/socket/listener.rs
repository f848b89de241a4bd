//! Listener that accepts connections of permitted users only.

use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use axum::serve::Listener;
use tokio::net::{UnixListener, UnixStream};

/// Pause after an accept that failed, for instance for want of file descriptors.
const PAUSE: Duration = Duration::from_millis(50);

/// Suffix of the socket's path until the socket has its mode.
const DRAFT_SUFFIX: &str = ".new";

/// Socket with the users that may connect.
#[derive(Debug)]
pub struct PermittedListener {
    socket: UnixListener,
    uids: Vec<u32>,
}

impl PermittedListener {
    /// Binds the socket, in place of one that an earlier agent left. Root and the agent's own user may always
    /// connect.
    ///
    /// # Errors
    /// The failed operation; `AddrInUse` while another agent serves the path.
    pub fn bind(path: &Path, uids: &[u32]) -> io::Result<Self> {
        if let Some(dir) = path.parent() {
            std::fs::create_dir_all(dir)?;
        }
        if std::os::unix::net::UnixStream::connect(path).is_ok() {
            return Err(io::Error::new(io::ErrorKind::AddrInUse, "another agent serves the socket"));
        }
        // The socket gets its final name after its mode, so that no client meets the mode of the umask.
        let mut draft = path.as_os_str().to_owned();
        draft.push(DRAFT_SUFFIX);
        match std::fs::remove_file(&draft) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let socket = UnixListener::bind(&draft)?;
        let own = rustix::process::geteuid().as_raw();
        // Other users reach the listener, which refuses all but the permitted ones.
        let mode = if uids.iter().any(|uid| *uid != own) { 0o666 } else { 0o600 };
        std::fs::set_permissions(&draft, std::fs::Permissions::from_mode(mode))?;
        std::fs::rename(&draft, path)?;
        Ok(Self { socket, uids: uids.iter().copied().chain([0, own]).collect() })
    }

    fn permits(&self, stream: &UnixStream) -> bool {
        let uid = stream.peer_cred().map(|peer| peer.uid());
        let is_permitted = uid.as_ref().is_ok_and(|uid| self.uids.contains(uid));
        if !is_permitted {
            tracing::warn!(uid = ?uid.ok(), "a user who is not in uids was refused at the socket");
        }
        is_permitted
    }
}

impl Listener for PermittedListener {
    type Io = UnixStream;
    type Addr = ();

    async fn accept(&mut self) -> (UnixStream, ()) {
        loop {
            match self.socket.accept().await {
                Ok((stream, _)) if self.permits(&stream) => return (stream, ()),
                Ok(_) => {}
                Err(error) => {
                    tracing::warn!(%error, "a connection can't be accepted");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<()> {
        Ok(())
    }
}
