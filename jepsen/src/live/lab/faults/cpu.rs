//! Limits of CPU time, by control groups of either version.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::live::lab::Lab;

/// Mount point of the controller of version 1.
const V1: &str = "/sys/fs/cgroup/cpu";
/// Mount point of version 2.
const V2: &str = "/sys/fs/cgroup";
/// Period of the scheduler.
const PERIOD_US: u64 = 100_000;
/// Time limit for the kernel to release a group.
const RELEASE: Duration = Duration::from_secs(2);

/// Prefix of the paths of this process's groups.
pub(in crate::live::lab) fn prefix() -> PathBuf {
    let top = if is_v1() { V1 } else { V2 };
    Path::new(top).join(format!("ipam-jepsen-{}-", std::process::id()))
}

fn is_v1() -> bool {
    Path::new(V1).join("cpu.shares").exists()
}

/// Group to which processes return: that of this process.
fn home() -> Result<PathBuf> {
    let groups = fs::read_to_string("/proc/self/cgroup").context("/proc/self/cgroup")?;
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        let path = path.trim_start_matches('/');
        if is_v1() && controllers.split(',').any(|one| one == "cpu") {
            return Ok(Path::new(V1).join(path));
        }
        if !is_v1() && controllers.is_empty() {
            return Ok(Path::new(V2).join(path));
        }
    }
    bail!("this process is in no control group")
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("{}: {text}", path.display()))
}

impl Lab {
    fn group(&self, member: &str) -> PathBuf {
        let mut group = self.groups.clone().into_os_string();
        group.push(member);
        group.into()
    }

    pub(in crate::live::lab) fn limit_cpu(&mut self, members: &[String], percent: u8) -> Result<Vec<String>> {
        let quota = u64::from(percent) * PERIOD_US / 100;
        let mut evidence = Vec::new();
        for name in members {
            let Some(process) = self.member(name)?.process_id() else { continue };
            let group = self.group(name);
            if !is_v1() {
                write(&Path::new(V2).join("cgroup.subtree_control"), "+cpu")?;
            }
            fs::create_dir_all(&group).with_context(|| group.display().to_string())?;
            if is_v1() {
                write(&group.join("cpu.cfs_period_us"), &PERIOD_US.to_string())?;
                write(&group.join("cpu.cfs_quota_us"), &quota.to_string())?;
            } else {
                write(&group.join("cpu.max"), &format!("{quota} {PERIOD_US}"))?;
            }
            write(&group.join("cgroup.procs"), &process.to_string())?;
            evidence.push(format!("{name}: {percent} percent of a CPU"));
        }
        Ok(evidence)
    }

    pub(in crate::live::lab) async fn release_cpu(&mut self, members: &[String]) -> Result<Vec<String>> {
        let home = home()?;
        let mut evidence = Vec::new();
        for name in members {
            let group = self.group(name);
            let Ok(stat) = fs::read_to_string(group.join("cpu.stat")) else { continue };
            let throttled = stat.lines().find_map(|line| line.strip_prefix("nr_throttled "));
            if let Some(periods) = throttled.filter(|periods| *periods != "0") {
                evidence.push(format!("{name}: throttled periods: {periods}"));
            }
            let begun = Instant::now();
            loop {
                for process in fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default().lines() {
                    // The process may have ended.
                    let _moved = fs::write(home.join("cgroup.procs"), process);
                }
                match fs::remove_dir(&group) {
                    Ok(()) => break,
                    Err(error) if begun.elapsed() > RELEASE => {
                        return Err(error).with_context(|| group.display().to_string());
                    }
                    Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
                }
            }
        }
        Ok(evidence)
    }
}
