//! Frame of a run: programs, signals, and a run directory that stays readable after a failure.

use std::sync::Arc;

use anyhow::{Context as _, Result, anyhow};
use ipam_api::time::Timestamp;
use tokio::signal::unix::{SignalKind, signal};

use super::bench::Bench;
use super::course::Course;
use super::history_file;
use super::live_bench::LiveBench;
use super::nodes::Nodes;
use super::plan::Plan;
use super::progress::Progress;
use super::sampler::Samples;
use crate::checker::Record;
use crate::history::Recorder;
use crate::live::lab::{self, Lab, Programs};
use crate::seeded::{Process, options_of};
use crate::store;

/// Threads of the driver; clients have threads of their own.
const THREADS: usize = 2;

/// A run and its record, in the directory of its plan.
pub(crate) struct Recorded(Course);

impl Recorded {
    /// Begins the record.
    ///
    /// # Errors
    /// If the plan has unknown names, or the directory can't be written.
    pub(crate) fn begin(plan: &Plan, version: String) -> Result<Self> {
        let workloads = plan.chosen_workloads()?.into_iter().map(Arc::from).collect();
        let nemeses = plan.chosen_nemeses()?;
        std::fs::create_dir_all(&plan.store).with_context(|| plan.store.display().to_string())?;
        let (writer, written) = history_file::create(&plan.store.join(store::HISTORY))?;
        let recorder = Recorder::new(writer);
        let progress = Progress::new(recorder.clone(), written, plan.is_quiet);
        let settings = plan.settings(version, Timestamp::now().to_string());
        Ok(Self(Course {
            plan: plan.clone(),
            workloads,
            nemeses,
            progress,
            samples: Samples::default(),
            record: Record { settings, ..Record::default() },
            failures: Vec::new(),
            recorder,
        }))
    }

    /// Runs all phases on a system.
    pub(crate) async fn run_on<B: Bench>(&mut self, bench: &mut B) -> Result<()> {
        self.0.run(bench).await
    }

    /// Stores the run. An interrupted or failed run can be read, too.
    pub(crate) fn store(mut self) -> Result<()> {
        let Self(course) = &mut self;
        course.recorder.finish().context("the history can't be written")?;
        course.record.samples = course.samples.all();
        store::write(&course.plan.store, &course.record)
    }
}

/// Makes a run and stores it in the directory of its plan.
///
/// SIGINT and SIGTERM end the run early; the stored part stays readable and is marked as incomplete.
///
/// # Errors
/// If the run can't be made, or was interrupted.
pub fn run(plan: &Plan) -> Result<()> {
    let mut recorded = Recorded::begin(plan, version(plan)?)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(THREADS).enable_all().build()?;
    let done = runtime.block_on(until_signal(&mut recorded.0));
    recorded.store()?;
    done.with_context(|| format!("the run in {} is incomplete", plan.store.display()))?;
    Ok(())
}

async fn until_signal(course: &mut Course) -> Result<()> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    // Dropped at any point, the lab ends its processes and removes all of its resources.
    tokio::select! {
        done = in_lab(course) => done,
        _ = interrupt.recv() => Err(anyhow!("interrupted")),
        _ = terminate.recv() => Err(anyhow!("terminated")),
    }
}

/// First line that the daemon prints about itself.
fn version(plan: &Plan) -> Result<String> {
    let program = plan.bin_dir.join("ipamd");
    let output = std::process::Command::new(&program).arg("--version").output();
    let output = output.with_context(|| format!("{} can't be started", program.display()))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Starts the lab, makes the run in it, and keeps the logs.
async fn in_lab(course: &mut Course) -> Result<()> {
    let plan = &course.plan;
    let lab = Lab::start(lab::Plan {
        members: plan.members,
        is_secure: plan.is_secure,
        seed: plan.seed,
        test_options: options_of(Process::Member, &plan.test_options),
        programs: Programs::in_dir(&plan.bin_dir)?,
        dir: plan.store.clone(),
    });
    let lab = lab.await.context("the cluster can't be founded")?;
    let nodes = Nodes::start(&lab, &options_of(Process::Agent, &plan.test_options))
        .await
        .context("the agents can't be started")?;
    let mut bench = LiveBench { nodes, lab };
    course.progress.say(&format!("{} members and two nodes run", course.plan.members));
    let done = course.run(&mut bench).await;
    if done.is_err() {
        course.record.exits.extend(bench.exits(course.recorder.now_ns()).await);
    }
    for (name, log) in bench.nodes.logs() {
        std::fs::copy(&log, bench.lab.logs().join(name)).with_context(|| log.display().to_string())?;
    }
    done
}
