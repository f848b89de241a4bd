//! The start of this process, on clocks that no process can set and that count through suspend.

use ipam_api::request::Started;
use rustix::time::{ClockId, clock_gettime};

/// Names this boot of this machine.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
/// The kernel's record of this process.
const STAT: &str = "/proc/self/stat";
/// Fields of the record between the program's name, the second of them, and the start time, the 22nd.
const FIELDS_BETWEEN: usize = 19;

/// Present time and kernel start time of this process, or nothing if the boot id is unknown.
///
/// Any delay may lie between the start of a process and its first look at the clock. The kernel notes the
/// start when the process is forked, so it is never later than the exec of this program.
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

/// The start time in a kernel's record of a process, in ticks of 10 ms since boot.
///
/// The program's name stands in parentheses, is any bytes, and may have parentheses and spaces itself: fields
/// are counted from the last closing one.
fn start_ticks(stat: &[u8]) -> Option<u64> {
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    let fields = std::str::from_utf8(stat.get(name_end..)?.strip_prefix(b")")?).ok()?;
    fields.split_ascii_whitespace().nth(FIELDS_BETWEEN)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIELDS: &str = "R 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4242 20 21 22";

    #[test]
    fn time_goes_on_within_a_boot() {
        let (first, second) = (now().unwrap(), now().unwrap());
        assert_eq!(first.boot_id, second.boot_id);
        assert!(first.at_us <= second.at_us);
        // The process is the same, and began before it looked at the clock.
        assert_eq!(first.start_ticks, second.start_ticks);
        assert!(first.start_ticks.unwrap() <= first.at_us / 10_000);
    }

    #[test]
    fn the_start_time_is_the_22nd_field_whatever_the_program_is_called() {
        let names: [&[u8]; 6] = [b"ipam-cni", b"", b"a b c", b") R 1 2 3 (", b"((x))", b"\xff\n) "];
        for name in names {
            let stat = [b"77 (".as_slice(), name, b") ", FIELDS.as_bytes(), b"\n"].concat();
            assert_eq!(start_ticks(&stat), Some(4242), "{}", String::from_utf8_lossy(name));
        }
    }

    #[test]
    fn a_record_that_has_no_start_time_gives_none() {
        let short = format!("77 (x) {}", FIELDS.split_once(" 4242").unwrap().0);
        for stat in ["", "77", "77 (x", "77 (x)", &short, &format!("77 (x) {}", FIELDS.replace("4242", "-1"))]
        {
            assert_eq!(start_ticks(stat.as_bytes()), None, "{stat}");
        }
    }
}
