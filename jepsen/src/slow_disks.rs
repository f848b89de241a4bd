//! Slow disks: the time from `kill -9` of the leader to the next accepted write.
//!
//! Each fsync has a delay. A seccomp filter adds the delay, since the shipped binaries are static. The delay
//! is 0 while the cluster starts, and the same on all members while leaders are killed.

mod cluster;
mod writers;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail};
use tokio::signal::unix::{SignalKind, signal};

pub(crate) use self::cluster::Cluster;
use self::writers::Writers;
pub(crate) use self::writers::allocation;
use crate::live::Tools;

/// The pool that is written to, and its subnet.
const POOL: &str = "slow";
/// Longest gap; a longer one counts as an outage that does not end.
const GAP_MAX: Duration = Duration::from_secs(60);
/// Writes that are accepted before a kill, so that the disks are busy.
const WRITES: u64 = 20;

/// Options of a run.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Milliseconds that each fsync takes longer, on all members; several values are several runs.
    #[arg(long, value_delimiter = ',', default_values_t = [0, 50, 100, 200, 400])]
    fsync_ms: Vec<u64>,
    /// Clients that write without a pause.
    #[arg(long, default_value_t = 6)]
    writers: usize,
    /// Leaders killed in each run.
    #[arg(long, default_value_t = 5)]
    kills: usize,
    /// Let a disk serve any number of fsyncs at once; without this, one at a time, as a slow disk does.
    #[arg(long)]
    parallel: bool,
    /// Directory for the members' logs, which then stay.
    #[arg(long)]
    keep: Option<PathBuf>,
    /// The ipamd to kill.
    #[arg(long, default_value = "target/dist/ipamd")]
    ipamd: PathBuf,
}

/// Kills leaders and prints the gaps; false if a cluster stayed without a leader.
///
/// # Errors
/// An error if a run is not possible: a missing program, no C compiler, no port.
pub fn run(arguments: &Arguments) -> Result<bool> {
    let ipamd = std::fs::canonicalize(&arguments.ipamd)
        .with_context(|| format!("no {}; first: cargo xtask build", arguments.ipamd.display()))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let (mut interrupt, mut terminate) =
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        // A dropped run kills its members.
        tokio::select! {
            done = runs(arguments, ipamd) => done,
            _ = interrupt.recv() => Err(anyhow!("interrupted")),
            _ = terminate.recv() => Err(anyhow!("terminated")),
        }
    })
}

async fn runs(arguments: &Arguments, ipamd: PathBuf) -> Result<bool> {
    let work_dir = tempfile::TempDir::with_prefix("ipam-jepsen-").context("no place for temporary files")?;
    let tools = Tools::make(work_dir.path())?;
    let mut clean = true;
    println!("fsync +ms  kills  median s  max s  terms  elections of each kill (gap s / terms)");
    for &fsync_ms in &arguments.fsync_ms {
        let dir = arguments.keep.as_deref().unwrap_or(work_dir.path()).join(format!("{fsync_ms}ms"));
        let program = [tools.outside().to_owned(), "supervise".into(), dir.join("disk"), ipamd.clone()];
        let mut cluster = Cluster::make(&dir, &program)?;
        cluster.start_all()?;
        cluster.ready().await?;
        cluster.make_pool().await?;
        let mut kills = Vec::new();
        for _ in 0..arguments.kills {
            match kill(&mut cluster, fsync_ms, arguments).await? {
                Some(kill) => kills.push(kill),
                None => {
                    clean = false;
                    kills.push(Kill { gap: GAP_MAX, terms: 0 });
                    break;
                }
            }
        }
        print(fsync_ms, kills);
    }
    Ok(clean)
}

/// Result of one kill.
struct Kill {
    gap: Duration,
    /// Increase of the Raft term.
    terms: u64,
}

/// Kills the leader under load; nothing if no write is accepted within [`GAP_MAX`].
async fn kill(cluster: &mut Cluster, fsync_ms: u64, arguments: &Arguments) -> Result<Option<Kill>> {
    cluster.delay(fsync_ms, arguments.parallel)?;
    let mut load = Writers::start(arguments.writers, &cluster.urls())?;
    if load.accepted(WRITES, Instant::now() + GAP_MAX).await?.is_none() {
        bail!("no writes are accepted before the kill: {}", load.refusal());
    }
    let (victim, before) = cluster.leader().await.context("no leader before the kill")?;
    cluster.kill(victim)?;
    let killed = Instant::now();
    let accepted = load.accepted_after(killed, killed + GAP_MAX).await?;
    let leader = cluster.leader().await;
    load.stop().await;
    // A returning member would distort the measurement.
    cluster.delay(0, false)?;
    cluster.start(victim)?;
    cluster.ready().await?;
    Ok(accepted.map(|at| Kill {
        gap: at.saturating_duration_since(killed),
        terms: leader.map_or(0, |(_, term)| term.saturating_sub(before)),
    }))
}

fn print(fsync_ms: u64, mut kills: Vec<Kill>) {
    let each: Vec<String> =
        kills.iter().map(|kill| format!("{:.2}/{}", kill.gap.as_secs_f64(), kill.terms)).collect();
    kills.sort_by_key(|kill| kill.gap);
    let median = kills.get(kills.len() / 2).map_or(Duration::ZERO, |kill| kill.gap);
    let max = kills.last().map_or(Duration::ZERO, |kill| kill.gap);
    let terms = kills.iter().map(|kill| kill.terms).max().unwrap_or_default();
    println!(
        "{fsync_ms:>9}  {:>5}  {:>8.2}  {:>5.2}  {terms:>5}  {}",
        kills.len(),
        median.as_secs_f64(),
        max.as_secs_f64(),
        each.join(" ")
    );
}
