//! Configuration of the host: journal first, then the kernel.

use std::collections::BTreeSet;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use ipam_api::access::NodeKey;
use ipam_api::resource::Interface;

use super::binding::Bindings;
use super::journal::{HostFile, HostJournal, Owned};
use super::kernel::{Change, HostRoute, Kernel, KernelError, Link, Observed};
use super::manager::Managers;
use super::plan::{Scope, added, is_own, is_used, plan};
use super::request::machine_id;
use super::status::{AddressStatus, HostState, HostStatus, InterfaceStatus, Source};
use super::target::{Target, device_of};
use crate::host_config::HostConfig;

/// Reason why a step of the configuration failed.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The journal can't be written, so nothing is changed.
    #[error("the host's journal can't be written: {0}; nothing is changed")]
    Journal(#[from] io::Error),
    /// The kernel's state can't be read.
    #[error("the links, addresses and routes can't be read: {0}")]
    Kernel(#[from] KernelError),
}

/// Current state of the host.
#[derive(Debug, Clone, Default)]
pub struct View {
    /// State of the kernel.
    pub observed: Observed,
    /// Interfaces with their links.
    pub bindings: Bindings,
    /// Links of network managers: bound ones, and VLAN devices over them.
    pub frozen: BTreeSet<String>,
}

/// Results of changes.
#[derive(Debug, Default)]
struct Made {
    /// Changes that are in effect.
    done: Vec<Change>,
    /// Additions whose object existed already, created by other programs.
    foreign: Vec<Change>,
}

/// Configuration of the interfaces of this host.
#[derive(Debug)]
pub struct Session<K> {
    /// Settings.
    pub config: HostConfig,
    /// Realm and name of the node.
    node: String,
    pub(super) kernel: K,
    pub(super) journal: HostJournal,
    file: HostFile,
    state_dir: PathBuf,
    managers: Managers,
    /// Addresses that were added and not announced yet, with their links.
    pub(super) unannounced: BTreeSet<(String, IpAddr)>,
    /// Routes that were not added, since another route occupies their place.
    foreign: BTreeSet<(String, HostRoute)>,
    /// VLAN devices that stay because other programs use them.
    used: BTreeSet<String>,
    /// Messages that were logged.
    logged: BTreeSet<String>,
    /// Failed changes that were logged.
    logged_failures: BTreeSet<String>,
    /// Changes that failed in the last attempt.
    failed: Vec<String>,
    status: HostStatus,
}

impl<K: Kernel> Session<K> {
    /// Reads the journal in the state directory, which this process has locked. Changes nothing.
    ///
    /// # Errors
    /// The failed read.
    pub fn open(
        config: HostConfig,
        kernel: K,
        state_dir: &Path,
        boot_id: &str,
        root: &Path,
        node: &NodeKey,
    ) -> io::Result<Self> {
        let file = HostFile::new(state_dir);
        let node = node.to_string();
        let machine = machine_id(&config.machine_id_file).ok();
        let journal = file.load()?.unwrap_or_else(|| HostJournal::new(boot_id)).on_boot(boot_id);
        let journal = journal.on_machine(machine.as_deref(), &node);
        Ok(Self {
            config,
            node,
            kernel,
            journal,
            file,
            state_dir: state_dir.to_owned(),
            managers: Managers::new(root),
            unannounced: BTreeSet::new(),
            foreign: BTreeSet::new(),
            used: BTreeSet::new(),
            logged: BTreeSet::new(),
            logged_failures: BTreeSet::new(),
            failed: Vec::new(),
            status: HostStatus::default(),
        })
    }

    /// Returns true if a change waits for the answer of a server.
    #[must_use]
    pub fn is_unconfirmed(&self) -> bool {
        self.journal.former.is_some()
    }

    /// Reads the current state of the host.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub async fn view(&mut self) -> Result<View, SessionError> {
        let observed = self.kernel.observe().await?;
        let bindings = Bindings::find(&self.config.interfaces, &observed, &self.journal.names());
        let mut frozen = BTreeSet::new();
        let mut messages: Vec<String> = bindings.warnings.clone();
        if self.config.mode.applies() {
            for bound in &bindings.bound {
                let Some(link) = observed.link(bound.index) else { continue };
                if let Some(manager) = self.managers.of(link) {
                    frozen.insert(link.name.clone());
                    messages.push(manager.refusal(&link.name));
                }
                let is_child = |one: &&Link| one.vlan.is_some_and(|(parent, _)| parent == bound.index);
                for child in observed.links.iter().filter(is_child) {
                    if self.managers.of(child).is_some() {
                        frozen.insert(child.name.clone());
                    }
                }
            }
        }
        self.warn(&messages);
        Ok(View { observed, bindings, frozen })
    }

    /// Logs messages that are new.
    fn warn(&mut self, messages: &[String]) {
        for message in messages {
            if !self.logged.contains(message) {
                tracing::warn!("{message}");
            }
        }
        self.logged = messages.iter().cloned().collect();
    }

    /// Replaces the journal, on the disk and then in memory, if it differs.
    fn keep(&mut self, next: HostJournal) -> io::Result<()> {
        if next != self.journal {
            self.file.store(&next)?;
            self.journal = next;
        }
        Ok(())
    }

    /// Permits new attempts to add routes that were blocked by other routes.
    pub fn retry_foreign(&mut self) {
        self.foreign.clear();
    }

    /// Configures the addresses in the journal, where the kernel lacks them. Needs no server.
    ///
    /// # Errors
    /// The reason for which nothing was changed.
    pub async fn repair(&mut self) -> Result<(), SessionError> {
        // Without a known `applied`, the agent would remove all its earlier additions.
        if self.config.mode.applies() && self.journal.is_known {
            let view = self.view().await?;
            self.apply(&view, Scope::All).await?;
        }
        Ok(())
    }

    /// Makes the links of addresses ready for probes.
    ///
    /// # Errors
    /// The reason for which nothing was changed.
    pub async fn prepare(&mut self, interfaces: &[Interface]) -> Result<(), SessionError> {
        let view = self.view().await?;
        let target = Target::new(interfaces, &view.bindings, &view.observed, &BTreeSet::new());
        self.change(&view, &target, Scope::Links).await
    }

    /// Configures new addresses, except those in `withheld`.
    ///
    /// The change is unconfirmed afterwards, unless the kernel's configuration is the same.
    ///
    /// # Errors
    /// The reason for which nothing was changed.
    pub async fn adopt(
        &mut self,
        interfaces: Vec<Interface>,
        withheld: BTreeSet<IpAddr>,
    ) -> Result<(), SessionError> {
        let view = self.view().await?;
        let mut next = self.journal.clone();
        for bound in &view.bindings.bound {
            if let Some(mac) = bound.mac {
                next.names.entry(mac.to_string()).or_insert_with(|| bound.name.clone());
            }
        }
        let target = |interfaces: &[Interface], withheld: &BTreeSet<IpAddr>| {
            Target::new(interfaces, &view.bindings, &view.observed, withheld).devices
        };
        let is_same = target(&interfaces, &withheld) == target(&next.applied, &next.withheld);
        // If the earlier journal was lost, undoing the change must not remove the additions that it
        // described.
        let has_former = next.is_known || !has_remains(&view.observed);
        let before = std::mem::replace(&mut next.applied, interfaces);
        let withheld_before = std::mem::replace(&mut next.withheld, withheld);
        if !is_same && has_former && self.config.mode.applies() && next.former.is_none() {
            (next.former, next.former_withheld) = (Some(before), withheld_before);
        }
        next.is_known = true;
        next.node = Some(self.node.clone());
        if let Ok(machine) = machine_id(&self.config.machine_id_file) {
            next.machine = Some(machine);
        }
        self.keep(next)?;
        if self.config.mode.applies() { self.apply(&view, Scope::All).await } else { Ok(()) }
    }

    /// Confirms a change, after a server has answered.
    ///
    /// # Errors
    /// The failed write of the journal.
    pub fn confirm(&mut self) -> Result<(), SessionError> {
        let mut next = self.journal.clone();
        (next.former, next.former_withheld) = (None, BTreeSet::new());
        Ok(self.keep(next)?)
    }

    /// Undoes a change that no server has confirmed. Returns the interfaces of the change.
    ///
    /// # Errors
    /// The reason for which nothing was changed.
    pub async fn undo(&mut self) -> Result<Vec<Interface>, SessionError> {
        let mut next = self.journal.clone();
        let Some(former) = next.former.take() else { return Ok(Vec::new()) };
        next.withheld = std::mem::take(&mut next.former_withheld);
        let undone = std::mem::replace(&mut next.applied, former);
        self.keep(next)?;
        self.repair().await?;
        Ok(undone)
    }

    /// Stores the files that were rendered.
    ///
    /// # Errors
    /// The failed write of the journal.
    pub fn note_rendered(&mut self, files: BTreeSet<PathBuf>) -> Result<(), SessionError> {
        Ok(self.keep(HostJournal { rendered: files, ..self.journal.clone() })?)
    }

    /// Returns the agent's addresses and routes that the kernel has now.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub async fn remains(&self) -> Result<Vec<String>, SessionError> {
        let observed = self.kernel.observe().await?;
        let mut remains = Vec::new();
        for link in observed.links.iter().filter(|_| self.config.mode.applies()) {
            let addresses = observed.addresses.iter().filter(|one| one.link == link.index);
            let own = addresses.filter(|one| is_own(&observed, &self.journal.owned, &link.name, one));
            remains.extend(own.map(|one| format!("{} {}", link.name, one.address)));
            let routes = observed.routes.iter().filter(|(index, _)| *index == link.index);
            remains.extend(routes.map(|(_, route)| format!("{} {route}", link.name)));
        }
        Ok(remains)
    }

    /// Removes the journal and the state, after all addresses were released.
    ///
    /// # Errors
    /// The failed operation.
    pub fn forget(&mut self) -> Result<(), SessionError> {
        self.file.remove()?;
        self.status = HostStatus::default();
        Ok(self.status.store(&self.state_dir)?)
    }

    /// Applies the addresses in the journal to the kernel.
    async fn apply(&mut self, view: &View, scope: Scope) -> Result<(), SessionError> {
        let target =
            Target::new(&self.journal.applied, &view.bindings, &view.observed, &self.journal.withheld);
        self.change(view, &target, scope).await
    }

    async fn change(&mut self, view: &View, target: &Target, scope: Scope) -> Result<(), SessionError> {
        let observed = &view.observed;
        let mut owned = self.journal.owned.clone();
        // Objects that other programs have removed are no longer the agent's.
        owned.vlans.retain(|name| observed.named(name).is_some());
        owned.mtus.retain(|name, _| observed.named(name).is_some());
        owned.addresses.retain(|(name, address)| {
            let link = observed.named(name).map(|link| link.index);
            observed.addresses.iter().any(|one| Some(one.link) == link && one.address == *address)
        });
        let mut changes = plan(observed, target, &owned, &view.frozen, scope);
        let is_open = |change: &Change| match change {
            Change::AddRoute { device, route } => !self.foreign.contains(&(device.clone(), route.clone())),
            _ => true,
        };
        changes.retain(is_open);
        if scope == Scope::All {
            self.warn_of_used(observed, target, &owned);
        }
        for change in &changes {
            match change {
                Change::AddVlan { device, .. } => _ = owned.vlans.insert(device.clone()),
                Change::AddAddress { device, address } => {
                    owned.addresses.insert((device.clone(), *address));
                }
                Change::SetMtu { device, .. } => {
                    if let Some(link) = observed.named(device) {
                        owned.mtus.entry(device.clone()).or_insert(link.mtu);
                    }
                }
                _ => {}
            }
        }
        self.keep(HostJournal { owned, ..self.journal.clone() })?;
        if scope == Scope::All {
            self.failed.clone_from(&target.problems);
            let frozen = target.devices.iter().filter(|(name, device)| {
                device.vlan.is_some() && !device.addresses.is_empty() && view.frozen.contains(*name)
            });
            self.failed.extend(frozen.map(|(name, _)| format!("another network manager has {name}")));
        }
        if changes.is_empty() {
            return Ok(());
        }
        let made = self.make(changes).await;
        self.settle(target, &made)?;
        Ok(())
    }

    /// Logs VLAN devices that stay because others use them.
    fn warn_of_used(&mut self, observed: &Observed, target: &Target, owned: &Owned) {
        let gone = observed.links.iter().filter(|link| !target.devices.contains_key(&link.name));
        let own = gone.filter(|link| owned.vlans.contains(&link.name));
        let used = own.filter(|link| is_used(observed, owned, link));
        let used: BTreeSet<String> = used.map(|link| link.name.clone()).collect();
        for device in used.difference(&self.used) {
            tracing::warn!(%device, "the VLAN device of the agent stays, since others use it");
        }
        self.used = used;
    }

    /// Makes changes one after the other. A failed change does not prevent the others.
    ///
    /// Returns the changes that are in effect, including removals of objects that the kernel had removed
    /// before, and the additions whose object existed already.
    async fn make(&mut self, changes: Vec<Change>) -> Made {
        let mut made = Made::default();
        let mut missing = BTreeSet::new();
        for change in &changes {
            if missing.contains(change.device()) {
                continue;
            }
            #[cfg(feature = "testing")]
            crate::testing::at_change();
            let result = self.kernel.change(change).await;
            #[cfg(feature = "testing")]
            crate::testing::at_change();
            match (&result, change) {
                (Ok(()), _) => tracing::info!(%change, "the host is configured"),
                (Err(KernelError::Exists), Change::AddRoute { device, route }) => {
                    tracing::info!(%change, "another route is in its place, and stays");
                    self.foreign.insert((device.clone(), route.clone()));
                }
                (Err(KernelError::Exists), Change::AddAddress { .. } | Change::AddVlan { .. }) => {
                    made.foreign.push(change.clone());
                }
                // The kernel removes routes with their addresses, and addresses with their links.
                (
                    Err(KernelError::Missing),
                    Change::RemoveAddress { .. } | Change::RemoveRoute { .. } | Change::RemoveVlan { .. },
                ) => made.done.push(change.clone()),
                (Err(error), _) => {
                    let message = format!("{change}: {error}");
                    if !self.logged_failures.contains(&message) {
                        tracing::warn!(%change, %error, "a change of the host failed");
                    }
                    if matches!(change, Change::AddVlan { .. }) {
                        missing.insert(change.device());
                    }
                    self.failed.push(message);
                }
            }
            if result.is_ok() {
                made.done.push(change.clone());
                for (device, address) in added(std::slice::from_ref(change)) {
                    self.unannounced.insert((device.to_owned(), address.addr()));
                }
            }
        }
        self.logged_failures = self.failed.iter().cloned().collect();
        made
    }

    /// Removes former additions, and additions of other programs, from the journal.
    fn settle(&mut self, target: &Target, made: &Made) -> Result<(), SessionError> {
        let mut next = self.journal.clone();
        let owned = &mut next.owned;
        for change in &made.foreign {
            match change {
                Change::AddVlan { device, .. } => _ = owned.vlans.remove(device),
                Change::AddAddress { device, address } => {
                    owned.addresses.remove(&(device.clone(), *address));
                }
                _ => {}
            }
        }
        for change in &made.done {
            match change {
                Change::RemoveVlan { device } => _ = owned.vlans.remove(device),
                Change::RemoveAddress { device, address, .. } => {
                    owned.addresses.remove(&(device.clone(), *address));
                }
                // The former MTU is restored, and no VLAN device needs another one.
                Change::SetMtu { device, mtu }
                    if target.devices.get(device).is_none_or(|wanted| wanted.mtu.is_none())
                        && owned.mtus.get(device) == Some(mtu) =>
                {
                    owned.mtus.remove(device);
                }
                _ => {}
            }
        }
        Ok(self.keep(next)?)
    }

    /// Writes the state for `ipam-agent host status`.
    pub fn report(&mut self, state: HostState, source: Source, detail: &str, view: &View) {
        let interface = |bound: &super::binding::Bound| {
            let link = view.observed.link(bound.index);
            let manager = link.filter(|_| self.config.mode.applies()).and_then(|link| self.managers.of(link));
            let given = self.journal.applied.iter().filter(|one| one.name == bound.name);
            let addresses = given.flat_map(|one| &one.addresses).map(|given| AddressStatus {
                address: given.address,
                device: device_of(bound, &view.observed, given),
                pool: given.pool.to_string(),
                gateway: given.gateway,
            });
            InterfaceStatus {
                device: bound.device.clone(),
                refused: manager.map(|manager| manager.refusal(&bound.device)),
                addresses: addresses.collect(),
            }
        };
        let has_failed = state == HostState::Applied && !self.failed.is_empty();
        let status = HostStatus {
            state: if has_failed { HostState::Failed } else { state },
            source,
            detail: if has_failed { self.failed.join("; ") } else { detail.to_owned() },
            interfaces: view.bindings.bound.iter().map(interface).collect(),
            warnings: view.bindings.warnings.clone(),
        };
        if status != self.status {
            if let Err(error) = status.store(&self.state_dir) {
                tracing::warn!(%error, "the state of the host can't be written");
            }
            self.status = status;
        }
    }
}

/// Returns true if the kernel has addresses or routes with the agent's protocol number.
fn has_remains(observed: &Observed) -> bool {
    !observed.routes.is_empty() || observed.addresses.iter().any(|one| one.is_tagged)
}
