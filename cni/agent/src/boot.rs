//! Present boot of the machine, and this process's place in it.

use std::io;

use ipam_api::request::Started;
use rustix::time::{ClockId, clock_gettime};

/// Names this boot of this machine.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// Reads the id of the present boot.
///
/// # Errors
/// The failed read of the kernel's file.
pub fn id() -> io::Result<String> {
    Ok(std::fs::read_to_string(BOOT_ID)?.trim().to_owned())
}

/// Returns the present moment as the start of a request that carries none.
#[must_use]
pub fn now(boot_id: &str) -> Started {
    let time = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    let nanoseconds = u64::try_from(time.tv_nsec).unwrap_or_default();
    let at_us = seconds.saturating_mul(1_000_000).saturating_add(nanoseconds / 1000);
    Started { boot_id: boot_id.to_owned(), at_us, start_ticks: None }
}
