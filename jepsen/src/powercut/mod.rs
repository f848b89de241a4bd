//! Power cuts: real members on disks of their own, which lose all unsynced data.
//!
//! A killed process loses nothing: the page cache outlives it. So each member gets an ext4 file system in an
//! image, and a cut is ext4's own shutdown call: from that instant on nothing more is written. The processes
//! are killed, the file systems mounted again, which replays their journals, and the remaining state is
//! compared with the acknowledgements.

mod cluster;
mod course;
mod ledger;
mod load;
mod member;
mod plan;
mod tally;

use std::path::PathBuf;

use anyhow::{Context as _, Result, anyhow};
use tokio::signal::unix::{SignalKind, signal};

use self::course::Course;
use self::tally::Tally;
use crate::live::{Tools, WorkDir, enter};
use crate::random::Random;

/// The pool that is written to, and its subnet.
const POOL: &str = "power";

/// Arguments of the subcommand.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Number of power cuts.
    #[arg(long, default_value_t = 20)]
    cuts: usize,
    /// Writes that are acknowledged meanwhile, about; 250 for each cut unless said.
    #[arg(long)]
    writes: Option<u64>,
    /// Members of each cluster.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=7))]
    members: u8,
    /// Chooses what is cut and when; another one each time unless said.
    #[arg(long)]
    seed: Option<u64>,
    /// Let fsync and its like do nothing, to see that the bench sees what that loses.
    #[arg(long)]
    without_fsync: bool,
    /// The ipamd to cut.
    #[arg(long, default_value = "target/dist/ipamd")]
    ipamd: PathBuf,
}

/// Makes the cuts, and prints their results; returns true if all promises were kept.
///
/// # Errors
/// If the run is not possible: no rights, no loop devices, a missing program.
pub fn run(arguments: &Arguments) -> Result<bool> {
    let ipamd = std::fs::canonicalize(&arguments.ipamd)
        .with_context(|| format!("{} isn't there; first: cargo xtask build", arguments.ipamd.display()))?;
    enter()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(cuts(arguments, ipamd))
}

async fn cuts(arguments: &Arguments, ipamd: PathBuf) -> Result<bool> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let work_dir = WorkDir::make()?;
    let tools = Tools::make(work_dir.path())?;
    let before = if arguments.without_fsync {
        vec![tools.outside().to_owned(), PathBuf::from("without-fsync")]
    } else {
        Vec::new()
    };
    let course = Course {
        tools: &tools,
        dir: work_dir.path().to_owned(),
        program: before.into_iter().chain([ipamd]).collect(),
        members: arguments.members.into(),
        cuts: arguments.cuts,
        writes: arguments.writes.unwrap_or(250 * arguments.cuts as u64),
    };
    let seed = arguments.seed.unwrap_or_else(|| uuid::Uuid::new_v4().as_u64_pair().0 >> 32);
    println!("{} power cuts of {} members, --seed {seed}", course.cuts, course.members);
    let mut random = Random::new(seed);
    let mut tally = Tally::default();
    // Dropped at any point, the course kills the members and unmounts their disks.
    let done = tokio::select! {
        done = course.run(&mut random, &mut tally) => done,
        _ = interrupt.recv() => Err(anyhow!("interrupted")),
        _ = terminate.recv() => Err(anyhow!("terminated")),
    };
    println!("{tally}");
    done.map(|()| tally.is_clean())
}
