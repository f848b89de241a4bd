//! A cluster of members, each with a disk of its own.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use ipam_api::Code;
use ipam_api::client::{Call, Client};
use ipam_api::cluster::Cluster as Shown;
use serde_json::{Value, json};

use super::POOL;
use super::ledger::Findings;
use super::member::Member;
use crate::live::{Cut, Tools};
use crate::loopback::free_addresses;

/// Settings of the members, with frequent snapshots. Elections are slower than by default, so that a slow
/// leader on a busy machine is not replaced.
const SETTINGS: &str = "log = \"info\"\n[raft]\nheartbeat_ms = 100\nelection_min_ms = 300\nelection_max_ms = 500\n\
                        snapshot_every_entries = 60\n";
/// Time limit of a cluster's recovery.
const COME_BACK: Duration = Duration::from_secs(60);
/// Polling interval.
const LOOK: Duration = Duration::from_millis(5);

/// The members of one cluster, from its founding on.
#[derive(Debug)]
pub(super) struct Cluster<'a> {
    pub(super) members: Vec<Member>,
    tools: &'a Tools,
    program: Vec<PathBuf>,
}

impl<'a> Cluster<'a> {
    /// Creates members with empty disks in `dir`, all stopped. `program` is ipamd with any wrapper before it.
    pub(super) fn make(tools: &'a Tools, program: &[PathBuf], count: usize, dir: &Path) -> Result<Self> {
        std::fs::write(dir.join("ipamd.toml"), SETTINGS).context("no room for settings")?;
        let mut members = Vec::new();
        for (client, number) in free_addresses(count)?.into_iter().zip(1..) {
            members.push(Member::make(dir, format!("n{number}"), client)?);
        }
        Ok(Self { members, tools, program: program.to_vec() })
    }

    pub(super) fn urls(&self) -> Vec<String> {
        self.members.iter().map(Member::url).collect()
    }

    /// A client of all members.
    pub(super) fn ask(&self) -> Result<Client> {
        Ok(Client::new(&self.urls())?)
    }

    /// Starts the given members.
    pub(super) fn start(&mut self, which: &[usize]) -> Result<()> {
        let peers: Vec<_> =
            self.members.iter().map(|member| (member.name.clone(), member.peer_address())).collect();
        for member in chosen(&mut self.members, which) {
            member.start(&self.program, &peers)?;
        }
        Ok(())
    }

    /// Cuts the power of the given members, all at once. With `Flushed` the disks lose power first, and the
    /// processes are killed after `agony`.
    pub(super) async fn cut(&mut self, how: Cut, which: &[usize], agony: Duration) -> Result<()> {
        for member in chosen(&mut self.members, which) {
            member.disk.set_canary()?;
        }
        let victims: Vec<&Member> = self
            .members
            .iter()
            .enumerate()
            .filter(|(at, _)| which.contains(at))
            .map(|(_, one)| one)
            .collect();
        let places: Vec<&Path> = victims.iter().map(|member| member.disk.place()).collect();
        if how == Cut::Flushed {
            self.tools.cut(how, &places, &[])?;
            tokio::time::sleep(agony).await;
        } else {
            let processes: Vec<u32> = victims.iter().filter_map(|member| member.process_id()).collect();
            self.tools.cut(how, &places, &processes)?;
        }
        for member in chosen(&mut self.members, which) {
            member.kill()?;
        }
        Ok(())
    }

    /// Restores the power of the given members, without starting processes.
    pub(super) fn power_on(&mut self, after: Cut, which: &[usize]) -> Result<()> {
        chosen(&mut self.members, which).try_for_each(|member| member.power_on(after))
    }

    /// Waits until all members are ready; members that fail to start are findings.
    pub(super) async fn ready(&mut self, findings: &mut Findings) -> Result<()> {
        let begun = Instant::now();
        for member in &mut self.members {
            loop {
                if let Some(status) = member.ended()? {
                    let words = format!("{} doesn't start ({status})\n{}", member.name, member.tail());
                    findings.refused(words);
                    break;
                }
                match member.is_ready().await {
                    Ok(()) => break,
                    Err(error) if begun.elapsed() > COME_BACK => {
                        let words =
                            format!("{} doesn't get ready ({error:#})\n{}", member.name, member.tail());
                        findings.refused(words);
                        break;
                    }
                    // A member that has exited is not waited for.
                    Err(_) if findings.refused > 0 => break,
                    Err(_) => tokio::time::sleep(LOOK).await,
                }
            }
        }
        Ok(())
    }

    /// Waits until all members have the same applied index and the same state, and returns that state.
    /// Members that don't converge are a finding, and the result is none.
    pub(super) async fn settled(&self, findings: &mut Findings) -> Option<Shown> {
        let begun = Instant::now();
        loop {
            let seen = self.states().await;
            if let Ok(states) = &seen
                && let Some(first) = states.first()
                && states.iter().all(|one| state(one) == state(first))
            {
                return Some(first.clone());
            }
            if begun.elapsed() > COME_BACK {
                match seen {
                    Ok(states) => findings.corrupt(format!(
                        "the members are in different states: {:?}",
                        states.iter().map(state).collect::<Vec<_>>()
                    )),
                    Err(error) => findings.refused(format!("{error:#}")),
                }
                return None;
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    async fn states(&self) -> Result<Vec<Shown>> {
        let mut states = Vec::new();
        for member in &self.members {
            states.push(member.shown().await?);
        }
        Ok(states)
    }

    /// Index of the leader, according to any member.
    pub(super) async fn leader(&self) -> Option<usize> {
        for member in &self.members {
            if let Ok(Shown { leader: Some(leader), .. }) = member.shown().await {
                return self.members.iter().position(|member| member.name == leader);
            }
        }
        None
    }

    /// True if the writers' pool exists.
    pub(super) async fn has_pool(&self) -> Result<bool> {
        match self.ask()?.send(Call::get(format!("/v1/pools/{POOL}")).within(COME_BACK)).await {
            Ok(_) => Ok(true),
            Err(problem) if problem.code == Code::NotFound => Ok(false),
            Err(problem) => Err(problem.into()),
        }
    }

    /// Creates the writers' pool. Freed addresses can be allocated again at once, so that the pool is never
    /// exhausted.
    pub(super) async fn make_pool(&self) -> Result<()> {
        let subnet = json!({"name": POOL, "cidr": "10.7.0.0/16", "gateway": "10.7.0.1"});
        put(&self.ask()?, "subnets", &subnet).await?;
        put(&self.ask()?, "pools", &json!({"name": POOL, "subnet": POOL, "cooling_ms": 0})).await
    }
}

fn state(shown: &Shown) -> (u64, u64, &str) {
    (shown.applied, shown.revision, &shown.digest)
}

async fn put(client: &Client, plural: &str, body: &Value) -> Result<()> {
    let call = Call::put(format!("/v1/{plural}/{POOL}")).json(body)?.within(COME_BACK);
    client.send(call).await.context("no pool can be made")?;
    Ok(())
}

fn chosen<'m>(members: &'m mut [Member], which: &[usize]) -> impl Iterator<Item = &'m mut Member> {
    let chosen = members.iter_mut().enumerate().filter(move |(at, _)| which.contains(at));
    chosen.map(|(_, member)| member)
}
