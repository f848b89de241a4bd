//! CPU time and bytes written of processes, and the idle share of the machine, during a load.

use std::fs;
use std::time::Duration;

use crate::live::run::IdleMeter;

/// Ticks of `/proc/PID/stat` per second (`USER_HZ`).
const TICKS_PER_S: u64 = 100;
/// Name of this process in the figures.
const GENERATOR: &str = "generator";

/// Process of a system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::bench) struct Process {
    /// Role of the process in the system, such as `leader`.
    pub(in crate::bench) name: String,
    pub(in crate::bench) pid: u32,
}

impl Process {
    /// CPU time so far.
    pub(in crate::bench) fn cpu(&self) -> Duration {
        Duration::from_millis(1000 / TICKS_PER_S * read(self.pid).ticks)
    }
}

/// Resources that a process used during a load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::bench) struct Used {
    pub(in crate::bench) name: String,
    pub(in crate::bench) cpu: Duration,
    /// Bytes that reached the block layer.
    pub(in crate::bench) written_bytes: u64,
}

/// Resources of all processes, the load generator included.
#[derive(Debug, Clone, Default)]
pub(in crate::bench) struct Usage {
    idle_percents: Vec<u8>,
    pub(in crate::bench) processes: Vec<Used>,
}

impl Usage {
    /// Mean idle share of the machine.
    pub(in crate::bench) fn idle_percent(&self) -> u64 {
        let sum: u64 = self.idle_percents.iter().map(|percent| u64::from(*percent)).sum();
        sum.checked_div(self.idle_percents.len() as u64).unwrap_or_default()
    }

    /// CPU time of the system without the load generator.
    pub(in crate::bench) fn system_cpu(&self) -> Duration {
        self.processes.iter().filter(|used| used.name != GENERATOR).map(|used| used.cpu).sum()
    }

    /// CPU time of the processes of one name.
    pub(in crate::bench) fn cpu_of(&self, name: &str) -> Duration {
        self.processes.iter().filter(|used| used.name == name).map(|used| used.cpu).sum()
    }

    /// Adds the resources of another load; processes with the same name are counted together.
    pub(in crate::bench) fn merge(&mut self, other: &Self) {
        self.idle_percents.extend(&other.idle_percents);
        for more in &other.processes {
            match self.processes.iter_mut().find(|used| used.name == more.name) {
                Some(used) => {
                    used.cpu += more.cpu;
                    used.written_bytes += more.written_bytes;
                }
                None => self.processes.push(more.clone()),
            }
        }
    }
}

/// Meter that compares two readings.
#[derive(Debug)]
pub(super) struct Meter {
    idle: IdleMeter,
    processes: Vec<(Process, Reading)>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Reading {
    ticks: u64,
    written_bytes: u64,
}

impl Meter {
    /// Starts to measure these processes and the load generator.
    pub(super) fn begin(processes: &[Process]) -> Self {
        let generator = Process { name: GENERATOR.to_owned(), pid: std::process::id() };
        let all = processes.iter().cloned().chain([generator]);
        Self {
            idle: IdleMeter::begin(),
            processes: all.map(|process| (process.clone(), read(process.pid))).collect(),
        }
    }

    /// Resources used since the begin. A process that has ended counts none.
    pub(super) fn end(self) -> Usage {
        let used = |(process, before): (Process, Reading)| {
            let now = read(process.pid);
            Used {
                name: process.name,
                cpu: Duration::from_millis(1000 / TICKS_PER_S * now.ticks.saturating_sub(before.ticks)),
                written_bytes: now.written_bytes.saturating_sub(before.written_bytes),
            }
        };
        let mut usage = Usage { idle_percents: vec![self.idle.percent()], processes: Vec::new() };
        let processes = self.processes.into_iter().map(used).collect();
        // Followers share a name.
        usage.merge(&Usage { idle_percents: Vec::new(), processes });
        usage
    }
}

fn read(pid: u32) -> Reading {
    let text = |name: &str| fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_default();
    Reading {
        ticks: ticks(&text("stat")).unwrap_or_default(),
        written_bytes: written_bytes(&text("io")).unwrap_or_default(),
    }
}

/// User and system time. The name of the program, in parentheses, may contain spaces.
fn ticks(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11);
    Some(fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?)
}

fn written_bytes(io: &str) -> Option<u64> {
    io.lines().find_map(|line| line.strip_prefix("write_bytes: "))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_and_bytes_are_read_past_a_name_with_spaces() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 100 0 0 0 31 11 5 6 20 0 1 0 100 1 2";
        assert_eq!(ticks(stat), Some(42));
        assert_eq!(ticks("7 (a) S 1"), None);
        assert_eq!(written_bytes("wchar: 9\nwrite_bytes: 4096\ncancelled_write_bytes: 1\n"), Some(4096));
    }

    #[test]
    fn processes_of_one_name_are_one_and_the_generator_is_apart() {
        let used =
            |name: &str, ms| Used { name: name.to_owned(), cpu: Duration::from_millis(ms), written_bytes: 1 };
        let mut usage = Usage { idle_percents: vec![10], processes: vec![used("leader", 5)] };
        let processes = vec![used("follower", 2), used("follower", 3), used(GENERATOR, 9)];
        usage.merge(&Usage { idle_percents: vec![20], processes });
        assert_eq!(usage.system_cpu(), Duration::from_millis(10));
        assert_eq!((usage.idle_percent(), usage.processes.len()), (15, 3));
    }
}
