//! Idle share of the machine's CPUs, from `/proc/stat`.

use std::fs;

/// Meter that compares two readings.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct IdleMeter {
    idle: u64,
    all: u64,
}

impl IdleMeter {
    /// A meter that begins now.
    pub(crate) fn begin() -> Self {
        fs::read_to_string("/proc/stat").ok().and_then(|text| parse(&text)).unwrap_or_default()
    }

    /// Idle share since the begin, in percent.
    pub(crate) fn percent(&self) -> u8 {
        share(*self, Self::begin())
    }
}

fn share(begin: IdleMeter, end: IdleMeter) -> u8 {
    let (idle, all) = (end.idle.saturating_sub(begin.idle), end.all.saturating_sub(begin.all));
    u8::try_from(idle.saturating_mul(100).checked_div(all).unwrap_or_default()).unwrap_or(100)
}

/// The first line counts ticks of all CPUs: user, nice, system, idle, iowait, and others.
fn parse(text: &str) -> Option<IdleMeter> {
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<u64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let waiting = ticks.get(3)?.saturating_add(*ticks.get(4)?);
    // Guests are counted in `user` as well.
    Some(IdleMeter { idle: waiting, all: ticks.iter().take(8).sum() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_and_waiting_ticks_count_as_idle() {
        let begin = parse("cpu  100 0 100 700 100 0 0 0 0 0\ncpu0 1 2 3 4 5\n").unwrap();
        let end = parse("cpu  150 0 150 750 150 0 0 0 50 0\n").unwrap();
        assert_eq!(share(begin, end), 50);
        assert_eq!(share(begin, begin), 0);
        assert!(parse("intr 5\n").is_none());
    }
}
