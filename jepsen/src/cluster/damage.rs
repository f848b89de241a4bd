//! Damage of a stopped member's files.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::nemesis::Corruption;
use crate::random::Random;

/// Maximum number of bytes that a log loses.
const TRUNCATED_MAX: usize = 4096;

/// File of the newest snapshot in a data directory.
const SNAPSHOT: &str = "snapshot/current";

/// File of the row store in a data directory.
const ROWS: &str = "rows/db";

/// Corruption of a file that the member has: without a snapshot, its rows are damaged instead.
pub(crate) fn possible(data_dir: &Path, corruption: Corruption) -> Corruption {
    match corruption {
        Corruption::SnapshotFlip if !data_dir.join(SNAPSHOT).exists() => Corruption::RowsFlip,
        other => other,
    }
}

/// Damages one file; returns a description, or none if there is no such file.
pub(crate) fn damage(data_dir: &Path, corruption: Corruption, random: &mut Random) -> Result<Option<String>> {
    let corruption = possible(data_dir, corruption);
    let path = match corruption {
        Corruption::LogFlip | Corruption::LogTruncate => newest(&data_dir.join("log")),
        Corruption::SnapshotFlip => Some(data_dir.join(SNAPSHOT)),
        Corruption::RowsFlip => Some(data_dir.join(ROWS)).filter(|path| path.exists()),
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

/// Damages each byte of a member's row store; returns a description, or none if the store has no byte.
///
/// The threads of sled decide when and at which offset they write, so one flipped bit has no repeatable
/// effect.
pub(crate) fn damage_all_rows(data_dir: &Path) -> Result<Option<String>> {
    let path = data_dir.join(ROWS);
    if !path.exists() {
        return Ok(None);
    }
    let mut content = fs::read(&path).context(ROWS)?;
    if content.is_empty() {
        return Ok(None);
    }
    content.iter_mut().for_each(|byte| *byte = !*byte);
    fs::write(&path, content).context(ROWS)?;
    Ok(Some(format!("{ROWS} has no intact byte")))
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

    #[test]
    fn a_member_without_a_snapshot_has_damaged_rows_instead() {
        let dir = tempfile::tempdir().unwrap();
        let flip = || damage(dir.path(), Corruption::SnapshotFlip, &mut Random::new(3)).unwrap().unwrap();
        for (file, content) in [(ROWS, [7; 9]), (SNAPSHOT, [8; 9])] {
            let path = dir.path().join(file);
            fs::create_dir(path.parent().unwrap()).unwrap();
            fs::write(&path, content).unwrap();
            assert!(flip().contains(file), "{file}");
        }
        assert_eq!(possible(dir.path(), Corruption::SnapshotFlip), Corruption::SnapshotFlip);
        assert_eq!(possible(&dir.path().join("other"), Corruption::LogFlip), Corruption::LogFlip);
    }

    #[test]
    fn no_byte_of_damaged_rows_is_intact() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(damage_all_rows(dir.path()).unwrap(), None);
        fs::create_dir(dir.path().join("rows")).unwrap();
        fs::write(dir.path().join(ROWS), "").unwrap();
        assert_eq!(damage_all_rows(dir.path()).unwrap(), None);
        fs::write(dir.path().join(ROWS), [0, 7]).unwrap();
        assert!(damage_all_rows(dir.path()).unwrap().is_some());
        assert_eq!(fs::read(dir.path().join(ROWS)).unwrap(), [255, 248]);
    }
}
