//! Facts about the container that only this process sees, for the node's agent: its network namespace, and
//! the runtime that runs it.

use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::parent_id;

use ipam_api::agent::Netns;
use ipam_api::limits::NAME_CHARS_MAX;
use ipam_api::process::{parent, start_ticks};

/// Identifies the network namespace at a path; `None` if there is none.
#[must_use]
pub fn netns(path: &str) -> Option<Netns> {
    let (device, inode) = match Netns::process(path) {
        Some(pid) => (Netns::PROCESS, start_ticks(&std::fs::read(format!("/proc/{pid}/stat")).ok()?)?),
        None => std::fs::metadata(path).map(|file| (file.dev(), file.ino())).ok()?,
    };
    Some(Netns { device, inode, path: path.to_owned() })
}

/// Name of the runtime: of the process that runs the main plugin, the parent of this process.
///
/// CNI names no runtime, and two of them on one node may share a network configuration. A runtime's GC must
/// leave the containers of the other alone.
#[must_use]
pub fn runtime() -> Option<String> {
    let main_plugin = std::fs::read(format!("/proc/{}/stat", parent_id())).ok()?;
    let pid = parent(&main_plugin)?;
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    Some(name.trim_end().chars().filter(char::is_ascii_graphic).take(NAME_CHARS_MAX).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replaced_namespace_has_another_identity() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("netns");
        let look = || netns(path.to_str().unwrap());
        assert_eq!(look(), None);
        std::fs::write(&path, "").unwrap();
        let first = look().unwrap();
        assert_eq!(look().as_ref(), Some(&first));
        std::fs::write(dir.path().join("other"), "").unwrap();
        std::fs::rename(dir.path().join("other"), &path).unwrap();
        assert_ne!(look(), Some(first));
    }

    #[test]
    fn a_process_stands_for_its_namespace() {
        let netns = |pid: u32| netns(&format!("/proc/{pid}/ns/net"));
        let own = netns(std::process::id()).unwrap();
        assert_eq!(own.device, Netns::PROCESS);
        assert!(own.inode > netns(1).unwrap().inode, "a later process has a later start");
        assert_eq!(netns(u32::MAX), None);
    }

    #[test]
    fn the_runtime_has_a_name() {
        assert!(runtime().is_some_and(|name| !name.is_empty()));
    }
}
