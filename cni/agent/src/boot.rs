//! Current boot of the machine, and the time since then.

use std::io;

use ipam_api::request::Started;
use rustix::time::{ClockId, clock_gettime};

/// Kernel's file with the id of the current boot.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// Reads the id of the current boot.
///
/// # Errors
/// The failed read of the kernel's file.
pub fn id() -> io::Result<String> {
    Ok(std::fs::read_to_string(BOOT_ID)?.trim().to_owned())
}

/// Returns the current time as the start of a request that specifies none.
#[must_use]
pub fn now(boot_id: &str) -> Started {
    Started { boot_id: boot_id.to_owned(), at_us: at_us(), start_ticks: None }
}

/// Microseconds since the boot.
fn at_us() -> u64 {
    #[cfg(feature = "testing")]
    if let Some(simulation) = crate::testing::present() {
        return (simulation.boot_us)();
    }
    let time = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    let nanoseconds = u64::try_from(time.tv_nsec).unwrap_or_default();
    seconds.saturating_mul(1_000_000).saturating_add(nanoseconds / 1000)
}
