//! Damaged and lost files of stopped members.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use ipam_api::client::Call;

use crate::live::lab::Lab;
use crate::nemesis::{Corruption, Link};
use crate::random::Random;

/// Exit code of a member whose data directory is damaged.
const DAMAGED: i32 = 4;
/// Time limit until a damaged member is refused or ready.
const VERDICT: Duration = Duration::from_secs(20);
/// Most bytes that a log loses.
const TRUNCATED_MAX: usize = 4096;

impl Lab {
    pub(in crate::live::lab) async fn corrupt(
        &mut self,
        members: &[String],
        corruption: Corruption,
    ) -> Result<Vec<String>> {
        // A log that lacks its end without a trace is a rollback of the disk, which no member detects (see
        // `deploy/docs/operating.md`). Its member must not meet the others with it.
        let is_alone = matches!(corruption, Corruption::LogFlip | Corruption::LogTruncate);
        let links = if is_alone { self.links_of(members) } else { Vec::new() };
        let mut evidence = Vec::new();
        for name in members {
            self.kill(name).await?;
            let data_dir = self.member(name)?.data_dir();
            if let Some(damage) = damage(&data_dir, corruption, &mut self.random)? {
                evidence.push(format!("{name}: {damage}"));
            }
            self.member_mut(name)?.excuses.insert(DAMAGED);
        }
        self.network().cut(&links);
        let judged = self.judge(members, is_alone).await;
        self.network().heal(&links);
        let judged = judged?;
        // Without a damaged file the fault didn't take hold.
        if !evidence.is_empty() {
            evidence.extend(judged);
        }
        Ok(evidence)
    }

    /// Starts damaged members and waits for their verdicts. A member that accepts a damaged log returns as a
    /// new one.
    async fn judge(&mut self, members: &[String], is_alone: bool) -> Result<Vec<String>> {
        for name in members {
            self.start_member(name)?;
        }
        let begun = Instant::now();
        let mut verdicts = Vec::new();
        for name in members {
            let verdict = self.verdict(name, is_alone, begun).await?;
            verdicts.push(format!("{name}: {verdict}"));
            if is_alone {
                self.kill(name).await?;
                self.member_mut(name)?.must_rejoin = true;
            }
        }
        Ok(verdicts)
    }

    /// Links between these members and the others, in both directions.
    fn links_of(&self, members: &[String]) -> Vec<Link> {
        let mut links = Vec::new();
        for one in members {
            for other in self.member_names().iter().filter(|other| !members.contains(other) || *other > one) {
                links.extend(Link::both(one, other));
            }
        }
        links
    }

    /// Waits until a damaged member has ended, or accepts its data.
    async fn verdict(&mut self, name: &str, is_alone: bool, begun: Instant) -> Result<&'static str> {
        loop {
            self.reap()?;
            let member = self.member(name)?;
            if !member.is_started() {
                return Ok("refuses to start");
            }
            // Alone it gets no further than to its opened store.
            let (path, accepted) = match is_alone {
                true => ("/v1/cluster", "accepts its log"),
                false => ("/readyz", "ready"),
            };
            let call = Call::get(path).within(Duration::from_millis(200));
            if member.control()?.send(call).await.is_ok() {
                return Ok(accepted);
            }
            if begun.elapsed() > VERDICT {
                return Ok("not ready");
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    pub(in crate::live::lab) async fn wipe(&mut self, members: &[String]) -> Result<Vec<String>> {
        let mut evidence = Vec::new();
        for name in members {
            self.kill(name).await?;
            let member = self.member_mut(name)?;
            member.must_rejoin = true;
            member.wipe()?;
            evidence.push(format!("{name}: data directory is lost"));
        }
        Ok(evidence)
    }
}

/// Damages one file; returns a description, or none if there is no such file.
fn damage(data_dir: &Path, corruption: Corruption, random: &mut Random) -> Result<Option<String>> {
    let path = match corruption {
        Corruption::LogFlip | Corruption::LogTruncate => newest(&data_dir.join("log")),
        Corruption::SnapshotFlip => Some(data_dir.join("snapshot/current")).filter(|path| path.exists()),
        Corruption::RowsFlip => Some(data_dir.join("rows/db")).filter(|path| path.exists()),
    };
    let Some(path) = path else { return Ok(None) };
    let shown = path.strip_prefix(data_dir).unwrap_or(&path).display().to_string();
    let mut content = fs::read(&path).with_context(|| shown.clone())?;
    // Space behind the last record is unused.
    let used = content.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    if used == 0 {
        return Ok(None);
    }
    if corruption == Corruption::LogTruncate {
        let lost = 1 + random.below(TRUNCATED_MAX.min(used));
        let left = u64::try_from(used.saturating_sub(lost))?;
        File::options().write(true).open(&path)?.set_len(left)?;
        return Ok(Some(format!("{shown} lacks {lost} bytes")));
    }
    let at = random.below(used);
    if let Some(byte) = content.get_mut(at) {
        *byte ^= 1 << random.below(8);
    }
    fs::write(&path, content).with_context(|| shown.clone())?;
    Ok(Some(format!("{shown} has a flipped bit in byte {at} of {used}")))
}

/// The last file of a directory by name that has contents.
fn newest(dir: &Path) -> Option<PathBuf> {
    let files = fs::read_dir(dir).ok()?.flatten().map(|entry| entry.path());
    files.filter(|path| fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() > 0)).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flip_changes_one_bit_and_a_truncation_the_end() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        fs::create_dir(&log).unwrap();
        let mut content = vec![7_u8; 9_000];
        content.resize(10_000, 0);
        fs::write(log.join("2"), &content).unwrap();
        fs::write(log.join("1"), "older").unwrap();
        let mut random = Random::new(3);
        assert!(damage(dir.path(), Corruption::LogFlip, &mut random).unwrap().unwrap().contains("log/2"));
        let flipped = fs::read(log.join("2")).unwrap();
        let bits: u32 = flipped.iter().zip(&content).map(|(one, other)| (one ^ other).count_ones()).sum();
        assert_eq!((flipped.len(), bits), (10_000, 1));
        damage(dir.path(), Corruption::LogTruncate, &mut random).unwrap().unwrap();
        assert!(fs::metadata(log.join("2")).unwrap().len() < 9_000);
        assert_eq!(damage(dir.path(), Corruption::SnapshotFlip, &mut random).unwrap(), None);
    }
}
