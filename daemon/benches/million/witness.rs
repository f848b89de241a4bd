//! Delays of the machine itself, to separate them from those of the members.
//!
//! One thread syncs a small file on the members' disk, another sleeps briefly. Both meet the delays that the
//! members meet.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Interval between two syncs.
const DISK_PAUSE: Duration = Duration::from_millis(20);
/// Duration of one sleep.
const NAP: Duration = Duration::from_millis(2);

/// Start and duration of an operation.
pub(crate) type Took = (Instant, Duration);

/// The witnesses at work.
pub(crate) struct Witness {
    stop: Arc<AtomicBool>,
    disk: JoinHandle<Vec<Took>>,
    processor: JoinHandle<Vec<Took>>,
}

/// Measured delays.
pub(crate) struct Seen {
    /// Each write and fsync of a plain file.
    pub(crate) disk: Vec<Took>,
    /// Excess of each sleep over its nominal duration.
    pub(crate) processor: Vec<Took>,
}

impl Witness {
    pub(crate) fn watch(dir: &Path) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let mut file = File::create(dir.join("witness")).unwrap();
        let over = Arc::clone(&stop);
        let disk = std::thread::spawn(move || {
            repeat(&over, || {
                std::thread::sleep(DISK_PAUSE);
                let begun = Instant::now();
                // It grows, as the log does.
                file.write_all(&[0; 512]).unwrap();
                file.sync_data().unwrap();
                (begun, begun.elapsed())
            })
        });
        let over = Arc::clone(&stop);
        let processor = std::thread::spawn(move || {
            repeat(&over, || {
                let begun = Instant::now();
                std::thread::sleep(NAP);
                (begun, begun.elapsed().saturating_sub(NAP))
            })
        });
        Self { stop, disk, processor }
    }

    pub(crate) fn end(self) -> Seen {
        self.stop.store(true, Relaxed);
        Seen { disk: self.disk.join().unwrap(), processor: self.processor.join().unwrap() }
    }
}

fn repeat(over: &AtomicBool, mut once: impl FnMut() -> Took) -> Vec<Took> {
    let mut took = Vec::new();
    while !over.load(Relaxed) {
        took.push(once());
    }
    took
}

/// The longest of those that were under way at some time of another.
pub(crate) fn longest_beside(those: &[Took], (begun, took): Took) -> Duration {
    let beside = those.iter().filter(|(at, lasted)| *at < begun + took && begun < *at + *lasted);
    beside.map(|(_, lasted)| *lasted).max().unwrap_or_default()
}

/// The value below which a share of them lies, in thousandths; milliseconds.
pub(crate) fn quantile(those: &[Took], thousandths: usize) -> f64 {
    let mut lasted: Vec<_> = those.iter().map(|(_, lasted)| *lasted).collect();
    lasted.sort_unstable();
    lasted[(lasted.len() - 1) * thousandths / 1000].as_secs_f64() * 1000.0
}
