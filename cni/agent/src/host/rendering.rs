//! Files of a network manager, written below the directory of the configuration.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Component, Path, PathBuf};

use ipam_api::render::{Format, RenderedFile};
use ipam_api::resource::Interface;

use super::binding::Bindings;

/// Mode of folders that the agent creates.
const FOLDER_MODE: u32 = 0o755;
/// Ending of a file until it is complete.
const NEW: &str = "ipamd-new";

/// Result of a rendering.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Written {
    /// All files, without the directory.
    pub(super) files: BTreeSet<PathBuf>,
    /// Number of files that were written or removed.
    pub(super) changed: usize,
}

/// Writes files whose content differs, and removes former ones that are not rendered any more.
///
/// # Errors
/// The failed operation, with the path.
pub(super) fn write(
    directory: &Path,
    rendered: &[RenderedFile],
    former: &BTreeSet<PathBuf>,
) -> Result<Written, String> {
    let mut written = Written::default();
    for file in rendered {
        let relative = relative(Path::new(&file.path))?;
        let path = directory.join(&relative);
        let failed = |error: io::Error| format!("{}: {error}", path.display());
        written.changed += usize::from(put(&path, file).map_err(failed)?);
        written.files.insert(relative);
    }
    for gone in former.difference(&written.files) {
        let path = directory.join(relative(gone)?);
        match fs::remove_file(&path) {
            Ok(()) => written.changed += 1,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(format!("{}: {error}", path.display())),
        }
    }
    Ok(written)
}

/// Renames interfaces to their links. An interface without a link keeps its name: the link may reappear.
pub(super) fn named(interfaces: &[Interface], bindings: &Bindings) -> Vec<Interface> {
    let under = |interface: &Interface| {
        let name = match bindings.named(&interface.name) {
            Some(bound) => bound.device.parse().ok()?,
            // Another interface may have a link of this name now.
            None if bindings.bound.iter().any(|bound| bound.device == interface.name.as_str()) => {
                return None;
            }
            None => interface.name.clone(),
        };
        Some(Interface { name, ..interface.clone() })
    };
    interfaces.iter().filter_map(under).collect()
}

/// Creates the missing folders of a path. Their mode is set explicitly, since other users' programs read the
/// files and the umask of the agent would forbid that.
fn create_folders(folder: &Path) -> io::Result<()> {
    let missing: Vec<&Path> = folder.ancestors().take_while(|one| !one.exists()).collect();
    for one in missing.into_iter().rev() {
        match fs::create_dir(one) {
            Ok(()) => fs::set_permissions(one, fs::Permissions::from_mode(FOLDER_MODE))?,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Path below the directory; an error if the path leads out of it.
fn relative(path: &Path) -> Result<PathBuf, String> {
    let path = path.strip_prefix("/").unwrap_or(path);
    let is_plain = path.components().all(|one| matches!(one, Component::Normal(_)));
    if is_plain && path.file_name().is_some() {
        Ok(path.to_owned())
    } else {
        Err(format!("{} is no path of a file", path.display()))
    }
}

/// Writes a file unless it is the same already.
fn put(path: &Path, file: &RenderedFile) -> io::Result<bool> {
    let mode = fs::metadata(path).map(|metadata| metadata.permissions().mode() & 0o7777);
    if mode.is_ok_and(|mode| mode == file.mode)
        && fs::read(path).is_ok_and(|bytes| bytes == file.content.as_bytes())
    {
        return Ok(false);
    }
    let folder = path.parent().unwrap_or(Path::new("/"));
    create_folders(folder)?;
    let mut new = path.as_os_str().to_owned();
    new.push(format!(".{NEW}"));
    let mut open = OpenOptions::new().write(true).create(true).truncate(true).mode(file.mode).open(&new)?;
    // The umask of the agent removes the permissions of other users.
    open.set_permissions(fs::Permissions::from_mode(file.mode))?;
    open.write_all(file.content.as_bytes())?;
    open.sync_all()?;
    fs::rename(&new, path)?;
    File::open(folder)?.sync_all()?;
    Ok(true)
}

/// Command that makes the network manager read the files.
pub(super) fn activation(format: Format) -> &'static str {
    match format {
        Format::Netplan => "netplan apply",
        Format::Networkd => "networkctl reload",
        Format::Ifupdown => "ifup -a",
        Format::Nmstate => "nmstatectl apply FILE",
        Format::Networkmanager => "nmcli connection reload",
        Format::CloudInit => "cloud-init clean --configs network, and a reboot",
    }
}

#[cfg(test)]
mod tests {
    use super::super::binding::Bound;
    use super::*;
    use crate::host::fake::interface;

    fn file(path: &str, content: &str) -> RenderedFile {
        RenderedFile { path: path.to_owned(), mode: 0o600, content: content.to_owned() }
    }

    #[test]
    fn files_are_written_when_they_differ_and_removed_when_they_are_gone() {
        let dir = tempfile::tempdir().unwrap();
        let files = [file("/etc/netplan/60-ipamd.yaml", "a"), file("/etc/x", "b")];
        let first = write(dir.path(), &files, &BTreeSet::new()).unwrap();
        assert_eq!((first.changed, first.files.len()), (2, 2));
        let path = dir.path().join("etc/netplan/60-ipamd.yaml");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o600);
        let second = write(dir.path(), &files, &first.files).unwrap();
        assert_eq!(second, Written { changed: 0, ..first });
        let third = write(dir.path(), &[file("/etc/netplan/60-ipamd.yaml", "c")], &second.files).unwrap();
        assert_eq!((third.changed, fs::read_to_string(&path).unwrap().as_str()), (2, "c"));
        assert!(!dir.path().join("etc/x").exists());
    }

    #[test]
    fn missing_folders_can_be_read_by_others_whatever_the_umask() {
        let dir = tempfile::tempdir().unwrap();
        let former = rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
        let written = write(dir.path(), &[file("/etc/netplan/60-ipamd.yaml", "a")], &BTreeSet::new());
        rustix::process::umask(former);
        written.unwrap();
        for folder in ["etc", "etc/netplan"] {
            let mode = fs::metadata(dir.path().join(folder)).unwrap().permissions().mode();
            assert_eq!(mode & 0o7777, 0o755, "{folder}");
        }
    }

    #[test]
    fn an_interface_without_a_link_keeps_its_files() {
        let bound = |name: &str, device: &str| Bound {
            name: name.parse().unwrap(),
            device: device.to_owned(),
            index: 2,
            mac: None,
            section: 0,
            place: 0,
        };
        let applied = [interface("eth1"), interface("eth2"), interface("eth3")];
        let names = |bound| {
            let bindings = Bindings { bound, warnings: Vec::new() };
            named(&applied, &bindings).into_iter().map(|one| one.name.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(names(vec![bound("eth1", "lan1")]), ["lan1", "eth2", "eth3"]);
        assert_eq!(names(vec![bound("eth1", "eth2")]), ["eth2", "eth3"]);
    }

    #[test]
    fn paths_that_lead_elsewhere_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        for path in ["/etc/../../x", "..", "/", ""] {
            assert!(write(dir.path(), &[file(path, "a")], &BTreeSet::new()).is_err(), "{path}");
        }
    }
}
