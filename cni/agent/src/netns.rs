//! Identity of a container's network namespace, as this process sees it.

use std::io;
use std::os::unix::fs::MetadataExt as _;

use ipam_api::agent::Netns;
use ipam_api::process::start_ticks;

/// Returns the namespace of the plugin if this process sees the same one under its path.
///
/// The agent may run with other mounts or process numbers than the plugin. A path that the agent can't see
/// must not count as a removed container.
pub async fn observed(netns: Netns) -> Option<Netns> {
    let own = identity(&netns.path).await.ok()?;
    (own == (netns.device, netns.inode)).then_some(netns)
}

/// Returns true if the path is missing or names something else. An unreadable path proves nothing.
pub async fn is_gone(netns: &Netns) -> bool {
    match identity(&netns.path).await {
        Ok((device, inode)) => (device, inode) != (netns.device, netns.inode),
        Err(error) => matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory),
    }
}

/// Reads the identity of a path on a blocking thread, since a hung mount may delay the answer.
async fn identity(path: &str) -> io::Result<(u64, u64)> {
    #[cfg(feature = "testing")]
    if crate::testing::present().is_some() {
        return read_identity(path);
    }
    let path = path.to_owned();
    tokio::task::spawn_blocking(move || read_identity(&path)).await.map_err(io::Error::other)?
}

/// Device and inode of a file, or the start of the process that the path names.
fn read_identity(path: &str) -> io::Result<(u64, u64)> {
    match Netns::process(path) {
        Some(pid) => {
            let stat = std::fs::read(format!("/proc/{pid}/stat"))?;
            Ok((Netns::PROCESS, start_ticks(&stat).ok_or(io::ErrorKind::InvalidData)?))
        }
        None => std::fs::metadata(path).map(|file| (file.dev(), file.ino())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn netns(path: &str) -> Netns {
        Netns { device: 7, inode: 7, path: path.to_owned() }
    }

    #[tokio::test]
    async fn a_namespace_that_another_mount_shows_is_not_observed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("netns");
        assert_eq!(observed(netns(path.to_str().unwrap())).await, None);
        std::fs::write(&path, "").unwrap();
        assert_eq!(observed(netns(path.to_str().unwrap())).await, None);
        let (device, inode) = identity(path.to_str().unwrap()).await.unwrap();
        let own = Netns { device, inode, path: path.to_str().unwrap().to_owned() };
        assert_eq!(observed(own.clone()).await.as_ref(), Some(&own));
        assert!(!is_gone(&own).await);
        std::fs::remove_file(&path).unwrap();
        assert!(is_gone(&own).await);
    }

    #[tokio::test]
    async fn a_namespace_of_a_process_lasts_as_long_as_the_process() {
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let path = format!("/proc/{}/ns/net", child.id());
        let (device, inode) = identity(&path).await.unwrap();
        assert_eq!(device, Netns::PROCESS);
        let own = Netns { device, inode, path };
        assert_eq!(observed(own.clone()).await.as_ref(), Some(&own));
        // The same process number in another PID namespace, or of a later process.
        let other = Netns { inode: inode + 1, ..own.clone() };
        assert_eq!(observed(other.clone()).await, None);
        assert!(is_gone(&other).await);
        assert!(!is_gone(&own).await);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(is_gone(&own).await);
    }
}
