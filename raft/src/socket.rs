//! Unix sockets: created only where nothing else exists, and for processes of one user.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{Error, ErrorKind, Result};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use ipam_api::limits::SOCKET_PATH_BYTES_MAX;
use rustix::fs::{FlockOperation, flock};
use rustix::process::geteuid;
use tokio::net::{UnixListener, UnixStream};

/// The permission bits of all users but the owner.
const OTHERS: u32 = 0o077;

/// A unix socket at which only processes of this process's user are answered.
#[derive(Debug)]
pub struct PrivateSocket {
    listener: UnixListener,
    /// Lock held until the process ends; it distinguishes a socket in use from a leftover one.
    _lock: File,
}

impl PrivateSocket {
    /// Binds the socket in a directory that only its owner may enter; creates the directory if missing.
    ///
    /// # Errors
    /// If another process or file uses the path, or other users may enter the directory.
    pub async fn bind(path: &Path) -> Result<Self> {
        private_dir(path.parent().unwrap_or(Path::new("/")))?;
        let mut aside = path.as_os_str().to_owned();
        aside.push(".lock");
        let lock = File::options().write(true).create(true).truncate(false).open(PathBuf::from(aside))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|_| in_use())?;
        make_way(path).await?;
        let listener = UnixListener::bind(path)?;
        fs::set_permissions(path, Permissions::from_mode(0o600))?;
        Ok(Self { listener, _lock: lock })
    }

    /// Accepts the next connection, whose user is still to be checked by [`same_user`].
    pub(crate) async fn accept(&self) -> Result<UnixStream> {
        Ok(self.listener.accept().await?.0)
    }
}

/// Removes the socket that a dead process left at `path`, so that another one can be bound there.
///
/// # Errors
/// If a running process answers at the path, or the path is no socket.
pub async fn make_way(path: &Path) -> Result<()> {
    let length = path.as_os_str().as_bytes().len();
    if length > SOCKET_PATH_BYTES_MAX {
        return Err(Error::new(
            ErrorKind::InvalidInput,
            format!(
                "its path has {length} bytes, and that of a unix socket at most {SOCKET_PATH_BYTES_MAX}; \
                 name a shorter one"
            ),
        ));
    }
    let there = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata.file_type(),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if !there.is_socket() {
        let kind = match there {
            kind if kind.is_symlink() => "a symbolic link",
            kind if kind.is_dir() => "a directory",
            _ => "a file",
        };
        return Err(Error::new(
            ErrorKind::AlreadyExists,
            format!("{kind} is there, and only a socket is replaced; move it away, or name another path"),
        ));
    }
    match UnixStream::connect(path).await {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => fs::remove_file(path),
        // A process that is too busy to accept a connection is alive, too.
        Ok(_) => Err(in_use()),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Err(in_use()),
        Err(error) => Err(error),
    }
}

/// Checks with the kernel that the peer process belongs to this process's user.
///
/// # Errors
/// If the peer process belongs to another user.
pub(crate) fn same_user(stream: &UnixStream) -> Result<()> {
    let (theirs, mine) = (stream.peer_cred()?.uid(), geteuid().as_raw());
    if theirs == mine {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::PermissionDenied,
        format!("the process at the other end is of user {theirs}; members are of one user, here of {mine}"),
    ))
}

fn in_use() -> Error {
    Error::new(ErrorKind::AddrInUse, "another process answers there; stop it, or name another path")
}

/// Creates a directory for sockets, or refuses one that other users may enter.
fn private_dir(dir: &Path) -> Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let metadata = fs::metadata(dir)?;
    let (owner, mode, me) = (metadata.uid(), metadata.mode() & 0o777, geteuid().as_raw());
    if owner == me && mode & OTHERS == 0 {
        return Ok(());
    }
    let dir = dir.display();
    Err(Error::new(
        ErrorKind::PermissionDenied,
        format!(
            "{dir} belongs to user {owner} and has the mode {mode:04o}; it must belong to user {me}, and \
             only its owner may enter it: name a directory that is not there yet, or run `chmod 0700 {dir}`"
        ),
    ))
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener as StdListener;

    use super::*;

    fn private() -> tempfile::TempDir {
        tempfile::Builder::new().permissions(Permissions::from_mode(0o700)).tempdir().unwrap()
    }

    #[tokio::test]
    async fn only_a_socket_of_a_dead_process_is_replaced() {
        let dir = private();
        let path = dir.path().join("s");
        drop(StdListener::bind(&path).unwrap());
        let first = PrivateSocket::bind(&path).await.unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        let error = PrivateSocket::bind(&path).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AddrInUse);
        drop(first);
        PrivateSocket::bind(&path).await.unwrap();

        let foreign = dir.path().join("foreign");
        let _living = StdListener::bind(&foreign).unwrap();
        assert_eq!(PrivateSocket::bind(&foreign).await.unwrap_err().kind(), ErrorKind::AddrInUse);
    }

    #[tokio::test]
    async fn a_file_a_directory_and_a_link_are_left_where_they_are() {
        let dir = tempfile::tempdir().unwrap();
        let [file, folder, link, socket] =
            ["file", "folder", "link", "socket"].map(|name| dir.path().join(name));
        fs::write(&file, "precious").unwrap();
        fs::create_dir(&folder).unwrap();
        drop(StdListener::bind(&socket).unwrap());
        std::os::unix::fs::symlink(&socket, &link).unwrap();
        for (path, kind) in [(&file, "a file"), (&folder, "a directory"), (&link, "a symbolic link")] {
            let error = make_way(path).await.unwrap_err().to_string();
            assert!(error.starts_with(kind) && error.contains("move it away"), "{error}");
            assert!(fs::symlink_metadata(path).is_ok());
        }
        assert!(fs::symlink_metadata(&socket).is_ok(), "the target of the link");
        make_way(&dir.path().join("nothing")).await.unwrap();
        make_way(&socket).await.unwrap();
        assert!(!socket.exists());
    }

    #[tokio::test]
    async fn the_directory_is_the_owners_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("new").join("s");
        drop(PrivateSocket::bind(&path).await.unwrap());
        let parent = path.parent().unwrap();
        assert_eq!(fs::metadata(parent).unwrap().mode() & 0o777, 0o700);
        for mode in [0o701, 0o710, 0o750, 0o755, 0o777] {
            fs::set_permissions(parent, Permissions::from_mode(mode)).unwrap();
            let error = PrivateSocket::bind(&path).await.unwrap_err().to_string();
            assert!(error.contains("chmod 0700"), "{mode:o}: {error}");
        }
    }

    #[tokio::test]
    async fn a_path_that_no_socket_can_have_is_refused_with_the_bound() {
        let dir = private();
        let name = |length: usize| "x".repeat(length - dir.path().as_os_str().len() - 1);
        let error = PrivateSocket::bind(&dir.path().join(name(108))).await.unwrap_err().to_string();
        assert!(error.contains("has 108 bytes") && error.contains("at most 107"), "{error}");
        PrivateSocket::bind(&dir.path().join(name(107))).await.unwrap();
    }
}
