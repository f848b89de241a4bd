//! System calls of a process during some time, counted by `perf stat`.
//!
//! `strace` counts them if `perf` is not permitted.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use tokio::process::Command;

/// System calls that are counted.
pub(in crate::bench) const COUNTED: [&str; 7] =
    ["futex", "epoll_wait", "fdatasync", "sendto", "recvfrom", "write", "read"];

/// Counts the system calls of all threads of a process; also returns the name of the tool.
pub(in crate::bench) async fn count(
    pid: u32,
    time: Duration,
) -> Result<(&'static str, BTreeMap<&'static str, u64>)> {
    match by_perf(pid, time).await {
        Ok(counts) => Ok(("perf", counts)),
        Err(perf) => {
            let counts = by_strace(pid, time).await;
            Ok(("strace", counts.with_context(|| format!("perf: {perf:#}"))?))
        }
    }
}

async fn by_perf(pid: u32, time: Duration) -> Result<BTreeMap<&'static str, u64>> {
    let events: Vec<String> = COUNTED.iter().map(|name| format!("syscalls:sys_enter_{name}")).collect();
    let mut command = Command::new("perf");
    command.args(["stat", "-x", ",", "-e", &events.join(","), "-p", &pid.to_string()]);
    command.args(["--", "sleep", &time.as_secs_f64().to_string()]).env("LC_ALL", "C");
    let output = command.stdin(Stdio::null()).kill_on_drop(true).output().await?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    if !output.status.success() {
        bail!("{}", text.trim());
    }
    parse_perf(&text)
}

async fn by_strace(pid: u32, time: Duration) -> Result<BTreeMap<&'static str, u64>> {
    let mut command = Command::new("timeout");
    command.args(["--signal", "INT", &time.as_secs_f64().to_string(), "strace", "-f", "-c"]);
    command.args(["-e", &format!("trace={}", COUNTED.join(",")), "-p", &pid.to_string()]);
    let output = command.stdin(Stdio::null()).env("LC_ALL", "C").kill_on_drop(true).output().await?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let counts = parse_strace(&text);
    if counts.is_empty() {
        bail!("strace counted nothing: {}", text.trim());
    }
    Ok(counts)
}

/// Parses lines such as `1234,,syscalls:sys_enter_futex,…`.
fn parse_perf(text: &str) -> Result<BTreeMap<&'static str, u64>> {
    let mut counts = BTreeMap::new();
    for name in COUNTED {
        let event = format!("syscalls:sys_enter_{name}");
        let line = text.lines().find(|line| line.split(',').nth(2) == Some(&event));
        let count = line.and_then(|line| line.split(',').next()?.parse().ok());
        counts.insert(name, count.with_context(|| format!("perf did not count {name}: {}", text.trim()))?);
    }
    Ok(counts)
}

/// Parses lines such as ` 88.12    0.012345          12      1234        56 futex`.
fn parse_strace(text: &str) -> BTreeMap<&'static str, u64> {
    let mut counts = BTreeMap::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let name = words.last().and_then(|last| COUNTED.iter().find(|name| *name == last));
        if let (Some(name), Some(count)) = (name, words.get(3).and_then(|word| word.parse().ok())) {
            counts.insert(*name, count);
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_perf_are_read_and_a_missing_one_is_an_error() {
        let line = |name: &str| format!("7,,syscalls:sys_enter_{name},100,100.00,,\n");
        let text: String = COUNTED.iter().map(|name| line(name)).collect();
        assert_eq!(parse_perf(&text).unwrap()["futex"], 7);
        assert!(parse_perf(&text.replace("7,,syscalls:sys_enter_futex", "<not counted>,,x")).is_err());
    }

    #[test]
    fn counts_of_strace_are_read_from_its_table() {
        let text = "% time     seconds  usecs/call     calls    errors syscall\n\
                    ------ ----------- ----------- --------- --------- ----------------\n \
                    88.12    0.012345          12      1234        56 futex\n \
                    10.00    0.001000          10       100           write\n\
                    ------ ----------- ----------- --------- --------- ----------------\n\
                    100.00    0.013345                  1334        56 total\n";
        assert_eq!(parse_strace(text), BTreeMap::from([("futex", 1234), ("write", 100)]));
    }
}
