//! The course of a run: cut by cut, cluster by cluster.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use super::cluster::Cluster;
use super::ledger::{Findings, Ledger};
use super::load::{self, Load, Shared};
use super::plan::{self, Kind, Step};
use super::tally::Tally;
use crate::live::Tools;
use crate::random::Random;
use crate::sync::held;

/// Time limit of waiting for a snapshot in progress.
const SNAPSHOT: Duration = Duration::from_secs(120);
/// Number of reads that may fail because the state changed meanwhile.
const LOOKS_MAX: usize = 20;
/// Interval of progress messages.
const SAY: Duration = Duration::from_secs(5);

/// Parameters of a run.
#[derive(Debug)]
pub(super) struct Course<'a> {
    pub(super) tools: &'a Tools,
    /// Directory of the members' disks and logs.
    pub(super) dir: PathBuf,
    /// Command line of ipamd, with any wrapper before it.
    pub(super) program: Vec<PathBuf>,
    pub(super) members: usize,
    pub(super) cuts: usize,
    pub(super) writes: u64,
}

/// A cluster's life, from its founding on.
struct Life<'a> {
    cluster: Cluster<'a>,
    ledger: Shared,
    /// Number of writes that were acknowledged before the previous cut.
    counted: u64,
}

impl Course<'_> {
    /// Makes all cuts, and adds their results to the tally.
    pub(super) async fn run(&self, random: &mut Random, tally: &mut Tally) -> Result<()> {
        let (begun, mut printed) = (Instant::now(), Instant::now());
        let mut life: Option<Life<'_>> = None;
        for number in 0..self.cuts {
            let mut step = plan::step(number, self.writes / self.cuts.max(1) as u64, self.members, random);
            let mut living = match life.take() {
                Some(living) if step.kind != Kind::Founding => living,
                // The disks of the old cluster are removed before the new cluster is created.
                old => {
                    drop(old);
                    step.kind = Kind::Founding;
                    self.found()?
                }
            };
            let mut findings = Findings::default();
            let what = living.cut(&step, &mut findings).await;
            what.with_context(|| format!("cut {number}, {step:?}"))?;
            let reached = held(&living.ledger).acknowledged();
            tally.add(step.kind, reached - living.counted, &findings);
            living.counted = reached;
            for words in &findings.words {
                println!("cut {number} ({}): {words}", step.kind.name());
            }
            // A cluster that has lost a member is replaced.
            life = (findings.refused == 0).then_some(living);
            if printed.elapsed() > SAY || number + 1 == self.cuts {
                println!(
                    "{} of {} cuts, {} s: {}",
                    number + 1,
                    self.cuts,
                    begun.elapsed().as_secs(),
                    tally.line()
                );
                printed = Instant::now();
            }
        }
        Ok(())
    }

    fn found(&self) -> Result<Life<'_>> {
        let cluster = Cluster::make(self.tools, &self.program, self.members, &self.dir)?;
        Ok(Life { cluster, ledger: Arc::new(Mutex::new(Ledger::default())), counted: 0 })
    }
}

impl Life<'_> {
    /// Makes one cut, and records the findings after it.
    async fn cut(&mut self, step: &Step, findings: &mut Findings) -> Result<()> {
        let all_members: Vec<usize> = (0..self.cluster.members.len()).collect();
        match step.kind {
            Kind::Founding => self.founding(step, &all_members, findings).await?,
            Kind::One => self.one(step, findings).await?,
            Kind::Majority => {
                let victims = step.order.get(..=all_members.len() / 2).unwrap_or_default();
                self.several(step, victims, findings).await?;
            }
            Kind::All | Kind::Starting | Kind::Snapshot => self.several(step, &all_members, findings).await?,
        }
        if findings.refused == 0 {
            self.compare(step, findings).await?;
        }
        Ok(())
    }

    /// Founds a new cluster and cuts it during the founding, or after its first acknowledged write.
    async fn founding(&mut self, step: &Step, all: &[usize], findings: &mut Findings) -> Result<()> {
        self.cluster.start(all)?;
        match step.start {
            Some(moment) => tokio::time::sleep(moment).await,
            None => {
                self.cluster.ready(findings).await?;
                if findings.refused == 0 {
                    self.cluster.make_pool().await?;
                    held(&self.ledger).note();
                }
            }
        }
        self.cluster.cut(step.how[0], all, step.agony).await?;
        self.cluster.power_on(step.how[0], all)?;
        if step.start.is_none() {
            for member in self.cluster.members.iter().filter(|member| !member.data_dir().is_dir()) {
                findings.lost(format!("the data directory of {}, by its name", member.name));
            }
        }
        self.cluster.start(all)?;
        self.cluster.ready(findings).await?;
        if findings.refused == 0 {
            if step.start.is_none() && !self.cluster.has_pool().await? {
                findings.lost("the first pool".to_owned());
            }
            self.cluster.make_pool().await?;
        }
        Ok(())
    }

    /// Cuts one member, which returns to a running cluster.
    async fn one(&mut self, step: &Step, findings: &mut Findings) -> Result<()> {
        let mut load = Load::start(&self.cluster.urls(), &self.ledger)?;
        if let Err(told) = load.get_on(step.writes[0]).await? {
            findings.refused(format!("nothing was acknowledged any more: {told}"));
            return Ok(());
        }
        let by_chance = step.order.first().copied().unwrap_or_default();
        let victim = if step.leader { self.cluster.leader().await } else { None };
        let victims = [victim.unwrap_or(by_chance)];
        self.cluster.cut(step.how[0], &victims, step.agony).await?;
        if let Err(told) = load.get_on(step.writes[1]).await? {
            findings.refused(format!("nothing was acknowledged by those that were left: {told}"));
        }
        self.cluster.power_on(step.how[0], &victims)?;
        self.cluster.start(&victims)?;
        self.cluster.ready(findings).await?;
        load.finish().await
    }

    /// Cuts enough members to stop the cluster.
    async fn several(&mut self, step: &Step, victims: &[usize], findings: &mut Findings) -> Result<()> {
        let mut load = Load::start(&self.cluster.urls(), &self.ledger)?;
        if let Err(told) = load.get_on(step.writes[0]).await? {
            findings.refused(format!("nothing was acknowledged any more: {told}"));
            return Ok(());
        }
        if step.kind == Kind::Snapshot {
            self.snapshot_under_way().await?;
        }
        self.cluster.cut(step.how[0], victims, step.agony).await?;
        load.stop();
        self.cluster.power_on(step.how[0], victims)?;
        self.cluster.start(victims)?;
        if step.kind == Kind::Starting {
            tokio::time::sleep(step.start.unwrap_or_default()).await;
            self.cluster.cut(step.how[1], victims, step.agony).await?;
            self.cluster.power_on(step.how[1], victims)?;
            self.cluster.start(victims)?;
        }
        self.cluster.ready(findings).await?;
        load.finish().await
    }

    /// Waits until a member writes a snapshot: all members do so repeatedly.
    async fn snapshot_under_way(&self) -> Result<()> {
        let look = async {
            while !self.cluster.members.iter().any(|member| member.has_unfinished_snapshot()) {
                // The pause is short, because the file exists for a few milliseconds only.
                tokio::time::sleep(Duration::from_micros(200)).await;
            }
        };
        tokio::time::timeout(SNAPSHOT, look).await.context("no snapshot was ever under way")
    }

    /// Compares the state of the cluster with the acknowledged writes.
    async fn compare(&self, step: &Step, findings: &mut Findings) -> Result<()> {
        // All members have the same state, so any of them may be queried.
        let one = step.order.first().and_then(|at| self.cluster.members.get(*at)).context("no member")?;
        for _ in 0..LOOKS_MAX {
            let Some(before) = self.cluster.settled(findings).await else { return Ok(()) };
            let found = load::allocations(&one.ask()?).await?;
            let Some(after) = self.cluster.settled(findings).await else { return Ok(()) };
            // A request without an answer may still take effect.
            if before.revision != after.revision {
                continue;
            }
            findings.add(held(&self.ledger).check(&found));
            let counted = after.addresses.allocated;
            if u64::try_from(found.len()).ok() != Some(counted) {
                findings.corrupt(format!("{} allocations are listed, {counted} are counted", found.len()));
            }
            return Ok(());
        }
        findings.corrupt("the state keeps changing although no writer runs".to_owned());
        Ok(())
    }
}
