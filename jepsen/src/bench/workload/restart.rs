//! Starts of a member with a large state: with its rows, without them, and by replay of its log.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use crate::bench::lab::Ipamd;
use crate::bench::load::Measured;

/// Longest wait for a member.
const PATIENCE: Duration = Duration::from_secs(300);
/// Folders that a member lacks at its start, by the name of the figure.
const STARTS: [(&str, &[&str]); 3] = [
    ("ready-clean-s", &[]),
    ("ready-without-rows-s", &["rows"]),
    ("ready-without-rows-and-snapshot-s", &["rows", "snapshot"]),
];

/// Stops and starts a follower, and adds the times until it is ready.
pub(super) async fn restarts(cluster: &mut Ipamd, measured: &mut Measured) -> Result<()> {
    let at = cluster.follower().await?;
    for (figure, folders) in STARTS {
        cluster.stop(at).await?;
        for folder in folders {
            std::fs::remove_dir_all(cluster.data_dir(at)?.join(folder))?;
        }
        let begun = Instant::now();
        cluster.start_member(at)?;
        while let Err(error) = cluster.is_ready(at).await {
            ensure!(begun.elapsed() < PATIENCE, "the member does not get ready: {error:#}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        measured.add(figure, begun.elapsed().as_secs_f64());
        eprintln!("{figure}: {:.1}", begun.elapsed().as_secs_f64());
    }
    Ok(())
}
