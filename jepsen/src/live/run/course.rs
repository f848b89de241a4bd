//! Course of a run: prepare, work under faults, settle, collect the final states, store the run.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use ipam_api::client::{Call, Client};
use ipam_api::event::{Event, EventPage};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

use super::bench::Bench;
use super::idle::IdleMeter;
use super::members::Controls;
use super::plan::Plan;
use super::progress::Progress;
use super::sampler::Samples;
use super::schedule::Schedule;
use super::sessions::Sessions;
use super::{finals, journal};
use crate::checker::{Final, Record};
use crate::history::Recorder;
use crate::nemesis::Nemesis;
use crate::random::Random;
use crate::workload::{Phase, Workload};

/// Time limit of the members' recovery after the last fault.
const READY: Duration = Duration::from_secs(60);
/// Time in which sessions release their grants.
const SETTLE: Duration = Duration::from_secs(12);
/// Time in which sessions end their last operation.
const OVER: Duration = Duration::from_secs(5);
/// Time without an event after which background tasks have done their work.
const CALM: Duration = Duration::from_millis(2_500);
/// Longest wait for such a time without an event.
const CALM_MAX: Duration = Duration::from_secs(15);
/// Time after the last fault in which agents deliver stored DELs and leases end: I8 allows none to be left.
const CLEANUP: Duration = Duration::from_secs(16);
/// Time limit of equal states of all members.
const EQUAL: Duration = Duration::from_secs(60);
/// Polling interval.
const LOOK: Duration = Duration::from_millis(250);

/// One run on a live system, and its record so far.
pub(super) struct Course {
    pub(super) plan: Plan,
    pub(super) workloads: Vec<Arc<dyn Workload>>,
    pub(super) nemeses: Vec<Box<dyn Nemesis>>,
    pub(super) recorder: Recorder,
    pub(super) progress: Progress,
    pub(super) samples: Samples,
    /// Record without history and samples.
    pub(super) record: Record,
    /// Broken promises that no checker sees, such as a cluster that does not recover.
    pub(super) failures: Vec<String>,
}

impl Course {
    /// Runs all phases, until the system may be stopped.
    pub(super) async fn run<B: Bench>(&mut self, bench: &mut B) -> Result<()> {
        let mut random = Random::new(self.plan.seed);
        let controls = Controls::default();
        controls.update(bench)?;
        let idle = IdleMeter::begin();
        let (phase, phases) = watch::channel(Phase::Work);
        let mut sessions = Sessions::new(bench)?;
        sessions.prepare(&self.workloads).await?;
        self.progress.say(&format!("{} workloads are prepared", self.workloads.len()));
        sessions.start(&self.workloads, &self.plan, &mut random, &self.recorder, &phases)?;
        let mut sampling = JoinSet::new();
        let (samples, recorder) = (self.samples.clone(), self.recorder.clone());
        let sampled = controls.clone();
        sampling.spawn(async move { samples.take(sampled, recorder).await });

        self.work(bench, &controls, &mut sessions, random).await?;
        let cleaned_up = Instant::now() + CLEANUP;
        phase.send_replace(Phase::Settle);
        sessions.wait(SETTLE).await?;
        phase.send_replace(Phase::Over);
        let late = sessions.wait(OVER).await?;
        self.progress.say(&format!("clients have ended; {late} of them are stopped"));
        drop(sessions);
        drop(sampling);
        // A live run would become longer by this time.
        if self.plan.is_simulated && self.workloads.iter().any(|workload| workload.is_cleaned_up()) {
            sleep_until(cleaned_up).await;
        }

        self.record.exits = bench.exits(self.recorder.now_ns()).await;
        if self.failures.is_empty() {
            self.collect(&controls).await?;
        }
        self.record.settings.idle_percent = idle.percent();
        self.record.settings.failures.clone_from(&self.failures);
        self.record.settings.is_complete = self.failures.is_empty();
        Ok(())
    }

    /// Injects and heals faults; at the end all faults are healed and all members are ready.
    async fn work<B: Bench>(
        &mut self,
        bench: &mut B,
        controls: &Controls,
        sessions: &mut Sessions,
        random: Random,
    ) -> Result<()> {
        let mut schedule = Schedule {
            nemeses: &self.nemeses,
            random,
            recorder: self.recorder.clone(),
            progress: self.progress.clone(),
            until: Instant::now() + self.plan.time,
            failures: Vec::new(),
        };
        let mut changed = |bench: &B| {
            controls.update(bench)?;
            sessions.update(bench)
        };
        match &self.plan.script {
            Some(script) => schedule.run_script(bench, script, &mut changed).await?,
            None => schedule.run(bench, &mut changed).await?,
        }
        self.failures.append(&mut schedule.failures);
        self.progress.say("all faults are healed");
        if let Err(error) = bench.ready(READY).await {
            self.failures.push(format!("the members do not become ready: {error:#}"));
        }
        changed(bench)
    }

    /// Collects the final states and the journal.
    async fn collect(&mut self, controls: &Controls) -> Result<()> {
        let members = controls.all();
        let (_, first) = members.first().context("no member")?;
        calm(first).await;
        // The states are not older. After a live run, bounds that depend on it would measure the machine.
        let time_ns = if self.plan.is_simulated { self.recorder.now_ns() } else { 0 };
        match finals::collect(&members, EQUAL).await {
            Ok(finals) => {
                self.record.finals = finals.into_iter().map(|last| Final { time_ns, ..last }).collect();
            }
            Err(error) => self.failures.push(format!("{error:#}")),
        }
        self.record.journal = journal::download(first).await?;
        self.progress.say(&format!(
            "{} events, final states of {}",
            self.record.journal.len(),
            members.len()
        ));
        Ok(())
    }
}

/// Waits until background tasks, which reclaim the grants of clients, write no event for a while.
///
/// The revision is no sign of this, because renewals of whole nodes raise it every second.
async fn calm(client: &Client) {
    let deadline = Instant::now() + CALM_MAX;
    let (mut last, mut since) = (None, Instant::now());
    while Instant::now() < deadline && since.elapsed() < CALM {
        let newest = Call::get("/v1/events?reverse=true&limit=1&consistency=stale").within(LOOK);
        if let Ok(page) = client.call::<EventPage>(newest).await {
            let id = page.items.first().map(Event::id);
            if id != last {
                (last, since) = (id, Instant::now());
            }
        }
        sleep(LOOK).await;
    }
}
