//! Cluster of a lab, from its founding to its end.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use ipam_api::client::{Client, Options};

use super::access::Access;
use super::exits::Ended;
use super::faults::{self, CostClients};
use super::member::{Launch, Member, Origin};
use super::plan::{Plan, Programs};
use super::reaper::Reaper;
use super::servers::Endpoints;
use super::settings;
use crate::cluster::BackupFile;
use crate::live::network::{Count, Host, Network};
use crate::live::{Tools, WorkDir};
use crate::nemesis::Fault;
use crate::random::Random;

/// Hosts besides those of members, with the numbers of their addresses: nodes, endpoint farm, clients.
const HOSTS: [(&str, u16); 4] = [("c1", 11), ("c2", 12), ("e1", 21), ("x1", 31)];
/// Host whose clients use IPv6.
const BY_IPV6: &str = "c2";
/// Time limit of the founding.
const FOUNDING: Duration = Duration::from_secs(60);

/// Live system: a network, and members with their disks. Dropping it ends and removes everything.
pub struct Lab {
    /// Expensive requests in progress.
    pub(super) costs: CostClients,
    pub(super) members: Vec<Member>,
    /// Names of the founding members.
    pub(super) founders: Vec<String>,
    /// Active faults, in the order of their injection.
    pub(super) active: Vec<Fault>,
    /// Backup of an active restore.
    pub(super) backup: Option<BackupFile>,
    pub(super) ends: Vec<Ended>,
    /// Evidence of the recovery that belongs to the next healed fault.
    pub(super) notes: Vec<String>,
    /// Frames that cuts had dropped when the active partition began.
    pub(super) frames_before: u64,
    /// Frames of impaired hosts when the active impairment began.
    pub(super) count_before: Count,
    /// Positions up to which logs were searched for complaints, by process.
    pub(super) searched: BTreeMap<String, u64>,
    pub(super) random: Random,
    pub(super) tools: Tools,
    pub(super) access: Option<Access>,
    /// Prefix of the paths of control groups.
    pub(super) groups: PathBuf,
    pub(super) plan: Plan,
    network: Network,
    work_dir: WorkDir,
    /// Reaper, dropped last.
    _reaper: Reaper,
}

impl Lab {
    /// Makes the network and the disks, and founds the cluster; all members are ready then.
    ///
    /// The process must be in a mount namespace of its own ([`crate::live::enter`]).
    ///
    /// # Errors
    /// If the machine lacks something, or a member doesn't become ready.
    pub async fn start(plan: Plan) -> Result<Self> {
        let work_dir = WorkDir::make()?;
        let groups = faults::group_prefix();
        let reaper = Reaper::start(work_dir.path(), &groups)?;
        let tools = Tools::make(work_dir.path())?;
        settings::write(&work_dir.path().join("ipamd.toml"))?;
        std::fs::create_dir_all(plan.dir.join("logs")).context("no room for logs")?;
        let network = Network::make(plan.seed)?;
        for (name, number) in HOSTS {
            network.add_host(name, number)?;
        }
        let access = match plan.is_secure {
            true => Some(Access::make(work_dir.path().join("ca"), &plan.programs.ipamctl)?),
            false => None,
        };
        let mut lab = Self {
            costs: CostClients::default(),
            members: Vec::new(),
            founders: (1..=plan.members).map(|number| format!("n{number}")).collect(),
            active: Vec::new(),
            backup: None,
            ends: Vec::new(),
            notes: Vec::new(),
            frames_before: 0,
            count_before: Count::default(),
            searched: BTreeMap::new(),
            random: Random::new(plan.seed),
            tools,
            access,
            groups,
            plan,
            network,
            work_dir,
            _reaper: reaper,
        };
        for name in lab.founders.clone() {
            lab.make_member(&name)?;
        }
        lab.ready(FOUNDING).await?;
        if let (Some(access), Some(first)) = (&lab.access, lab.members.first()) {
            access.make_token(&first.socket_url())?;
        }
        Ok(lab)
    }

    /// Starts members that have ended, and waits until all are ready.
    ///
    /// # Errors
    /// If some are not ready in time.
    pub async fn ready(&mut self, limit: Duration) -> Result<()> {
        crate::cluster::ready(self, limit).await
    }

    /// Adds a stopped member with an empty disk, on a host of the same name.
    pub(super) fn make_member(&mut self, name: &str) -> Result<()> {
        let number = name.trim_start_matches('n').parse().with_context(|| name.to_owned())?;
        let host = match self.network.host(name) {
            Some(host) => host,
            None => self.network.add_host(name, number)?,
        };
        let holder = self.access.as_ref().map(|access| access.issue(&host)).transpose()?;
        let mut member = Member::make(self.work_dir.path(), &self.plan.dir.join("logs"), host, holder)?;
        // A member with the old program can't join a cluster with a raised level.
        member.is_upgraded = self.members.iter().any(|member| member.is_upgraded);
        self.members.push(member);
        self.members.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(())
    }

    /// Starts a stopped member.
    pub(super) fn start_member(&mut self, name: &str) -> Result<()> {
        let launch = self.launch(name);
        self.member_mut(name)?.start(&launch)
    }

    fn launch(&self, name: &str) -> Launch {
        let others = self.members.iter().filter(|member| member.name != name && !member.standing.must_rejoin);
        let founders = self.members.iter().filter(|member| member.origin == Origin::Founder);
        Launch {
            outside: self.tools.outside().to_owned(),
            ipamd: self.plan.programs.ipamd.clone(),
            config: self.work_dir.path().join("ipamd.toml"),
            test_options: self.plan.test_options.clone(),
            founders: founders.map(|member| (member.name.clone(), member.peer())).collect(),
            join: others.map(Member::url).collect(),
        }
    }

    pub(super) fn member(&self, name: &str) -> Result<&Member> {
        let member = self.members.iter().find(|member| member.name == name);
        member.with_context(|| format!("there is no member {name}"))
    }

    pub(super) fn member_mut(&mut self, name: &str) -> Result<&mut Member> {
        let member = self.members.iter_mut().find(|member| member.name == name);
        member.with_context(|| format!("there is no member {name}"))
    }

    /// Endpoints of the founding members for the clients on a host. Those on `c2` use IPv6.
    #[must_use]
    pub fn servers(&self, host: &str) -> Endpoints {
        let url = |member: &Member| match host == BY_IPV6 {
            true => member.url_ipv6(),
            false => member.url(),
        };
        let founders = self.members.iter().filter(|member| self.founders.contains(&member.name));
        let urls = founders.map(|member| (member.name.clone(), url(member))).collect();
        Endpoints { urls, options: self.access.as_ref().map(Access::options).unwrap_or_default() }
    }

    /// CA and token of all clients; both absent without TLS.
    #[must_use]
    pub fn options(&self) -> Options {
        self.access.as_ref().map(Access::options).unwrap_or_default()
    }

    /// Client of one member, as an administrator and independent of faults of the network.
    ///
    /// # Errors
    /// If there is no such member.
    pub fn control(&self, member: &str) -> Result<Client> {
        self.member(member)?.control()
    }

    /// Client of all members that run, as an administrator and independent of faults of the network.
    ///
    /// # Errors
    /// If no member runs.
    pub fn administrator(&self) -> Result<Client> {
        crate::cluster::administrator(self)
    }

    /// Names of the present members.
    #[must_use]
    pub fn member_names(&self) -> Vec<String> {
        self.members.iter().map(|member| member.name.clone()).collect()
    }

    /// Network of all hosts.
    #[must_use]
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// Host of members, nodes, the endpoint farm or clients, by its name.
    ///
    /// # Errors
    /// If there is no such host.
    pub fn host(&self, name: &str) -> Result<Arc<Host>> {
        self.network.host(name).with_context(|| format!("there is no host {name}"))
    }

    /// Programs under test.
    #[must_use]
    pub fn programs(&self) -> &Programs {
        &self.plan.programs
    }

    /// Directory in memory for the files of processes; it ends with the lab.
    #[must_use]
    pub fn work_dir(&self) -> &Path {
        self.work_dir.path()
    }

    /// Directory of the logs of all processes.
    #[must_use]
    pub fn logs(&self) -> PathBuf {
        self.plan.dir.join("logs")
    }

    /// The ends of the logs of all members, for an error.
    pub(super) fn tails(&self, names: &[String]) -> String {
        let mut tails = String::new();
        for member in self.members.iter().filter(|member| names.contains(&member.name)) {
            let _written = write!(tails, "\n{}", member.tail());
        }
        tails
    }
}
