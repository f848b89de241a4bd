//! When this process began, on a clock that nobody can set and that counts through suspend.

use ipam_api::request::Started;
use rustix::time::{ClockId, clock_gettime};

/// Names this boot of this machine.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// The present moment, or nothing where the machine doesn't say which boot it is: a time without its boot
/// would be compared with times of another one.
#[must_use]
pub fn now() -> Option<Started> {
    let time = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(time.tv_sec).ok()?;
    let nanoseconds = u64::try_from(time.tv_nsec).ok()?;
    let boot_id = std::fs::read_to_string(BOOT_ID).ok()?.trim().to_owned();
    Some(Started { boot_id, at_us: seconds.checked_mul(1_000_000)?.checked_add(nanoseconds / 1000)? })
}

#[cfg(test)]
mod tests {
    #[test]
    fn time_goes_on_within_a_boot() {
        let (first, second) = (super::now().unwrap(), super::now().unwrap());
        assert_eq!(first.boot_id, second.boot_id);
        assert!(first.at_us <= second.at_us);
    }
}
