//! The start of this process, on clocks that no process can set and that count through suspend.

use ipam_api::process::start_ticks;
use ipam_api::request::Started;
use rustix::time::{ClockId, clock_gettime};

/// Kernel's file with the id of the current boot.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
/// The kernel's record of this process.
const STAT: &str = "/proc/self/stat";

/// Returns the current time and the start of this process; `None` if the boot id is unknown.
///
/// The process may read the clock at any time after its start. The kernel records the start when the process
/// is forked, so it is never later than the exec of this program.
#[must_use]
pub fn now() -> Option<Started> {
    let time = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(time.tv_sec).ok()?;
    let nanoseconds = u64::try_from(time.tv_nsec).ok()?;
    let boot_id = std::fs::read_to_string(BOOT_ID).ok()?.trim().to_owned();
    let start_ticks = std::fs::read(STAT).ok().and_then(|stat| start_ticks(&stat));
    let at_us = seconds.checked_mul(1_000_000)?.checked_add(nanoseconds / 1000)?;
    Some(Started { boot_id, at_us, start_ticks })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_goes_on_within_a_boot() {
        let (first, second) = (now().unwrap(), now().unwrap());
        assert_eq!(first.boot_id, second.boot_id);
        assert!(first.at_us <= second.at_us);
        // The process is the same, and began before it looked at the clock.
        assert_eq!(first.start_ticks, second.start_ticks);
        assert!(first.start_ticks.unwrap() <= first.at_us / 10_000);
    }
}
