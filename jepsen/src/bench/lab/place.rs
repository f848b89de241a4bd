//! Laboratory: systems that are started when a measurement first needs them, and stay until the end.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use serde_json::json;

use super::agent::Agent;
use super::ipamd::Ipamd;
use super::peer::Peer;
use super::plugin::{HOST_LOCAL, Plugin, run};
use super::subject::Subject;

/// Large pools of each family, which no measurement exhausts.
const LARGE: [(&str, &str); 2] = [("large", "10.0.0.0/8"), ("large6", "2001:db8:7::/64")];

/// Directories with programs.
#[derive(Debug, Clone)]
pub(in crate::bench) struct Programs {
    /// The build under test.
    pub(in crate::bench) bin_dir: PathBuf,
    /// An older build of this project.
    pub(in crate::bench) against: Option<PathBuf>,
    /// Unpacked package of etcd.
    pub(in crate::bench) etcd: Option<PathBuf>,
}

/// Running systems.
pub(in crate::bench) struct Lab {
    pub(in crate::bench) dir: PathBuf,
    pub(in crate::bench) programs: Programs,
    clusters: Vec<(Subject, Ipamd)>,
    etcd: Option<Peer>,
    plugins: Vec<Ready>,
    made: usize,
}

/// Plugin on a node that holds some addresses, with the agent that serves it.
struct Ready {
    subject: Subject,
    held: usize,
    plugin: Plugin,
    agent: Option<Agent>,
}

impl Lab {
    /// Laboratory in an empty directory.
    pub(in crate::bench) fn new(dir: &Path, programs: Programs) -> Self {
        Self { dir: dir.to_owned(), programs, clusters: Vec::new(), etcd: None, plugins: Vec::new(), made: 0 }
    }

    /// Returns true if the programs of a system exist.
    pub(in crate::bench) fn has(&self, subject: Subject) -> bool {
        match subject {
            Subject::Ipamd => true,
            Subject::Against => self.programs.against.is_some(),
            Subject::Etcd => self.programs.etcd.is_some(),
            Subject::HostLocal => Path::new(HOST_LOCAL).exists(),
        }
    }

    /// Program of a build of this project.
    pub(in crate::bench) fn program(&self, subject: Subject, name: &str) -> Result<PathBuf> {
        let dir = match subject {
            Subject::Ipamd => &self.programs.bin_dir,
            Subject::Against => self.programs.against.as_ref().context("no --against")?,
            Subject::Etcd | Subject::HostLocal => bail!("{} is no build of this project", subject.name()),
        };
        let program = dir.join(name);
        std::fs::canonicalize(&program).with_context(|| format!("no {}", program.display()))
    }

    /// New directory.
    pub(in crate::bench) fn fresh_dir(&mut self, name: &str) -> PathBuf {
        self.made += 1;
        self.dir.join(format!("{name}-{}", self.made))
    }

    /// The common cluster of a build of this project, with large pools `large` and `large6`.
    pub(in crate::bench) async fn ipamd(&mut self, subject: Subject) -> Result<&Ipamd> {
        let known = self.clusters.iter().position(|(known, _)| *known == subject);
        let at = match known {
            Some(at) => at,
            None => {
                let cluster = self.fresh_ipamd(subject).await?;
                self.clusters.push((subject, cluster));
                self.clusters.len() - 1
            }
        };
        self.clusters.get(at).map(|(_, cluster)| cluster).context("no cluster")
    }

    /// Starts another cluster of a build, with the same pools; dropping the value ends the cluster.
    pub(in crate::bench) async fn fresh_ipamd(&mut self, subject: Subject) -> Result<Ipamd> {
        let (dir, program) = (self.fresh_dir(subject.name()), self.program(subject, "ipamd")?);
        let cluster = Ipamd::start(&dir, &program).await?;
        for (name, cidr) in LARGE {
            cluster.make_pool(name, cidr, &json!({})).await?;
        }
        Ok(cluster)
    }

    /// The cluster of etcd.
    pub(in crate::bench) async fn etcd(&mut self) -> Result<&Peer> {
        if self.etcd.is_none() {
            let unpacked = self.programs.etcd.clone().context("no --etcd")?;
            self.etcd = Some(Peer::start(&self.fresh_dir("etcd"), &unpacked).await?);
        }
        self.etcd.as_ref().context("no etcd")
    }

    /// Plugin of a node that holds this many attachments.
    pub(in crate::bench) async fn plugin(&mut self, subject: Subject, held: usize) -> Result<&Plugin> {
        let is_it = |ready: &Ready| ready.subject == subject && ready.held == held;
        if !self.plugins.iter().any(is_it) {
            let dir = self.fresh_dir("node");
            let node = format!("bench-{}", self.made);
            let (plugin, agent) = if subject == Subject::HostLocal {
                (Plugin::host_local(&dir)?, None)
            } else {
                let urls = self.ipamd(subject).await?.urls();
                let agent = Agent::start(&dir, &self.program(subject, "ipam-agent")?, &urls, &node).await?;
                let program = self.program(subject, "ipam-cni")?;
                let [(four, _), (six, _)] = LARGE;
                (Plugin::ipam_cni(&program, &agent, &dir, [four, six])?, Some(agent))
            };
            for number in 0..held {
                run(&plugin, "ADD", &format!("held-{number}")).await?;
            }
            self.plugins.push(Ready { subject, held, plugin, agent });
        }
        self.plugins.iter().find(|ready| is_it(ready)).map(|ready| &ready.plugin).context("no plugin")
    }

    /// Process of the agent of a node that holds this many attachments.
    pub(in crate::bench) fn agent_pid(&self, held: usize) -> Option<u32> {
        self.plugins
            .iter()
            .filter(|ready| ready.held == held)
            .find_map(|ready| Some(ready.agent.as_ref()?.pid()))
    }
}
