//! Journal of a host's configuration: one file, replaced as a whole.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use ipam_api::limits::HOST_JOURNAL_BYTES_MAX;
use ipam_api::mac::MacAddress;
use ipam_api::name::InterfaceName;
use ipam_api::resource::Interface;
use ipnet::IpNet;
use serde::{Deserialize, Serialize};

const NAME: &str = "host.json";
const NEW: &str = "host.json.new";
const DAMAGED: &str = "host.json.damaged";
/// Version of the format.
const VERSION: u32 = 1;

/// Additions of the agent since the boot, beside addresses and routes with its protocol number.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Owned {
    /// Addresses by link. Needed only for kernels that store no protocol number.
    #[serde(default)]
    pub(super) addresses: BTreeSet<(String, IpNet)>,
    /// VLAN devices.
    #[serde(default)]
    pub(super) vlans: BTreeSet<String>,
    /// Former MTU by link.
    #[serde(default)]
    pub(super) mtus: BTreeMap<String, u32>,
}

/// Content of the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct HostJournal {
    /// Version of the format.
    pub(super) version: u32,
    /// Boot in which `owned` is true.
    pub(super) boot_id: String,
    /// Machine id of the host that wrote it.
    #[serde(default)]
    pub(super) machine: Option<String>,
    /// Realm and name of the node that wrote it.
    #[serde(default)]
    pub(super) node: Option<String>,
    /// True once a server has answered: only then `applied` is the answer of the cluster.
    #[serde(default = "yes")]
    pub(super) is_known: bool,
    /// Interfaces whose addresses are configured, or are about to be.
    #[serde(default)]
    pub(super) applied: Vec<Interface>,
    /// Interfaces before a change that is not confirmed by a server yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) former: Option<Vec<Interface>>,
    /// Addresses of `applied` that another station uses. They are not configured.
    #[serde(default)]
    pub(super) withheld: BTreeSet<IpAddr>,
    /// Addresses of `former` that were not configured.
    #[serde(default)]
    pub(super) former_withheld: BTreeSet<IpAddr>,
    /// Additions of the agent.
    #[serde(default)]
    pub(super) owned: Owned,
    /// Names under which links were requested first, for sections with `mac`.
    #[serde(default)]
    pub(super) names: BTreeMap<String, InterfaceName>,
    /// Files that were rendered.
    #[serde(default)]
    pub(super) rendered: BTreeSet<PathBuf>,
}

/// Default of a field that is true.
fn yes() -> bool {
    true
}

impl HostJournal {
    /// Journal of a host without addresses.
    #[must_use]
    pub(super) fn new(boot_id: &str) -> Self {
        Self {
            version: VERSION,
            boot_id: boot_id.to_owned(),
            machine: None,
            node: None,
            is_known: false,
            applied: Vec::new(),
            former: None,
            withheld: BTreeSet::new(),
            former_withheld: BTreeSet::new(),
            owned: Owned::default(),
            names: BTreeMap::new(),
            rendered: BTreeSet::new(),
        }
    }

    /// Adapts the journal of an earlier boot. The kernel has lost all additions. An unconfirmed change is
    /// reverted, unless it was the first configuration.
    #[must_use]
    pub(super) fn on_boot(mut self, boot_id: &str) -> Self {
        if self.boot_id == boot_id {
            return self;
        }
        boot_id.clone_into(&mut self.boot_id);
        self.owned = Owned::default();
        match self.former.take() {
            Some(former) if former.is_empty() => self.former = Some(former),
            Some(former) => {
                self.applied = former;
                self.withheld = std::mem::take(&mut self.former_withheld);
            }
            None => {}
        }
        self
    }

    /// Discards the addresses of another host, as on a cloned disk: a server must first answer for this host.
    ///
    /// The additions to the kernel and to the disk stay listed, so that an answer can remove them.
    #[must_use]
    pub(super) fn on_machine(mut self, machine: Option<&str>, node: &str) -> Self {
        let is_other = |recorded: Option<&str>, present| recorded.is_some() && recorded != present;
        if !is_other(self.machine.as_deref(), machine) && !is_other(self.node.as_deref(), Some(node)) {
            return self;
        }
        tracing::warn!(node = ?self.node, "the host's journal is of another host");
        let Self { owned, rendered, .. } = self;
        self = Self { owned, rendered, ..Self::new(&self.boot_id) };
        self
    }

    /// Names of links by their Ethernet address.
    #[must_use]
    pub(super) fn names(&self) -> BTreeMap<MacAddress, InterfaceName> {
        self.names.iter().filter_map(|(mac, name)| Some((mac.parse().ok()?, name.clone()))).collect()
    }
}

/// File of the journal, in the state directory that the agent has locked.
#[derive(Debug, Clone)]
pub(super) struct HostFile {
    dir: PathBuf,
}

impl HostFile {
    /// File in a directory.
    #[must_use]
    pub(super) fn new(dir: &Path) -> Self {
        Self { dir: dir.to_owned() }
    }

    /// Reads the journal; none if there is no file. A damaged file is set aside.
    ///
    /// # Errors
    /// The failed operation.
    pub(super) fn load(&self) -> io::Result<Option<HostJournal>> {
        let path = self.dir.join(NAME);
        let mut bytes = Vec::new();
        match File::open(&path) {
            Ok(file) => file.take(HOST_JOURNAL_BYTES_MAX).read_to_end(&mut bytes)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        match serde_json::from_slice::<HostJournal>(&bytes) {
            Ok(journal) if journal.version == VERSION => Ok(Some(journal)),
            result => {
                let aside = self.dir.join(DAMAGED);
                std::fs::rename(&path, &aside)?;
                let error = result.err().map_or_else(|| "another version".to_owned(), |one| one.to_string());
                tracing::error!(%error, kept = %aside.display(), "the host's journal can't be read");
                Ok(None)
            }
        }
    }

    /// Replaces the journal. When this returns, it survives a power cut.
    ///
    /// # Errors
    /// The failed operation; the former journal is still there then.
    pub(super) fn store(&self, journal: &HostJournal) -> io::Result<()> {
        let bytes = serde_json::to_vec(journal)?;
        if u64::try_from(bytes.len()).unwrap_or(u64::MAX) >= HOST_JOURNAL_BYTES_MAX {
            return Err(io::Error::other(format!("the journal exceeds {HOST_JOURNAL_BYTES_MAX} bytes")));
        }
        replace(&self.dir, NEW, NAME, &bytes)
    }

    /// Removes the journal.
    ///
    /// # Errors
    /// The failed operation.
    pub(super) fn remove(&self) -> io::Result<()> {
        match std::fs::remove_file(self.dir.join(NAME)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => File::open(&self.dir)?.sync_all(),
        }
    }
}

/// Replaces a file of a directory durably.
///
/// # Errors
/// The failed operation; the former file is still there then.
pub(super) fn replace(dir: &Path, new: &str, name: &str, bytes: &[u8]) -> io::Result<()> {
    let path = dir.join(new);
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&path)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    std::fs::rename(&path, dir.join(name))?;
    File::open(dir)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fake::interface;

    #[test]
    fn a_journal_is_read_back_and_a_damaged_one_is_set_aside() {
        let dir = tempfile::tempdir().unwrap();
        let file = HostFile::new(dir.path());
        assert_eq!(file.load().unwrap(), None);
        let mut journal = HostJournal::new("b1");
        journal.owned.addresses.insert(("eth1".to_owned(), "10.0.0.7/24".parse().unwrap()));
        file.store(&journal).unwrap();
        assert_eq!(file.load().unwrap(), Some(journal));
        std::fs::write(dir.path().join(NAME), "{\"version\": 1").unwrap();
        assert_eq!(file.load().unwrap(), None);
        assert!(dir.path().join(DAMAGED).exists() && !dir.path().join(NAME).exists());
        file.remove().unwrap();
    }

    #[test]
    fn another_boot_forgets_what_was_added_and_what_was_not_confirmed() {
        let mut journal = HostJournal::new("b1");
        journal.owned.mtus.insert("eth1".to_owned(), 1500);
        (journal.applied, journal.former) = (vec![interface("new")], Some(vec![interface("old")]));
        assert_eq!(journal.clone().on_boot("b1"), journal);
        let next = journal.clone().on_boot("b2");
        assert_eq!((next.owned.clone(), next.former), (Owned::default(), None));
        assert_eq!(next.applied, [interface("old")]);
        // The first configuration has none before it.
        journal.former = Some(Vec::new());
        let next = journal.on_boot("b2");
        assert_eq!((next.applied, next.former), (vec![interface("new")], Some(Vec::new())));
    }
}
