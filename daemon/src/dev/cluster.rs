//! Members of the demonstration: processes of this same program.

use std::fs::File;
use std::net::SocketAddr;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use ipam_api::client::{Call, Client};
use ipam_api::cluster::Cluster;
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};

use super::console::DevError;
use super::ports;

/// Number of members.
const COUNT: u16 = 3;
/// Time limit of forming the cluster.
const FORM: Duration = Duration::from_secs(30);
/// Time that a member has to stop before it is killed.
const STOP: Duration = Duration::from_secs(15);

/// One member's process.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) name: String,
    pub(super) client: SocketAddr,
    process: Child,
}

/// Processes of the members. They end with this process, even after a kill.
#[derive(Debug, Default)]
pub(super) struct Members(pub(super) Vec<Member>);

impl Members {
    /// Starts all members, each with a directory, a log and a pid file in `dir`.
    pub(super) fn start(&mut self, dir: &Path) -> Result<(), DevError> {
        let program =
            std::env::current_exe().map_err(|error| DevError::new("this program can't be found", error))?;
        let names = (1..=COUNT).map(|number| format!("n{number}"));
        let members: Vec<(String, SocketAddr)> = names.zip(ports::pick(COUNT)?).collect();
        // The members create this directory, which only their user can access.
        let peer = |name: &str| format!("unix:{}", dir.join("peers").join(name).display());
        for (name, client) in &members {
            let log = File::create(dir.join(format!("{name}.log")))
                .map_err(|error| DevError::new(format!("the log of {name} can't be made"), error))?;
            let mut command = Command::new(&program);
            command
                .arg("serve")
                .args(["--name", name.as_str(), "--stop-with-parent", "--config", "/dev/null"])
                .arg("--data-dir")
                .arg(dir.join(name))
                .arg("--client-socket")
                .arg(dir.join(format!("{name}.sock")))
                .args(["--client-listen", &client.to_string()]);
            for (other, _) in &members {
                command.args(["--member", &format!("{other}={}", peer(other))]);
            }
            let process = command
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(log)
                // Ctrl-C must reach this process only, which stops the members one after the other.
                .process_group(0)
                .kill_on_drop(true)
                .spawn()
                .map_err(|error| DevError::new(format!("{name} can't be started"), error))?;
            if let Some(pid) = process.id() {
                std::fs::write(dir.join(format!("{name}.pid")), format!("{pid}\n"))
                    .map_err(|error| DevError::new("a pid file can't be written", error))?;
            }
            self.0.push(Member { name: name.clone(), client: *client, process });
        }
        Ok(())
    }

    /// True if all members still run.
    pub(super) fn are_complete(&self) -> bool {
        self.0.len() == usize::from(COUNT)
    }

    /// The members' addresses for clients.
    pub(super) fn urls(&self) -> Vec<String> {
        self.0.iter().map(|member| format!("http://{}", member.client)).collect()
    }

    /// Waits until every member is ready. Returns the cluster as the first member reports it.
    pub(super) async fn formed(&mut self, dir: &Path) -> Result<Cluster, DevError> {
        let until = Instant::now() + FORM;
        for member in &mut self.0 {
            let client = client(&format!("http://{}", member.client))?;
            loop {
                match member.process.try_wait() {
                    // The terminal's interrupt also ends the demonstration, which receives it later.
                    Ok(Some(status)) if is_interrupted(status) && Instant::now() < until => {}
                    Ok(Some(status)) => return Err(ended(member, dir, status)),
                    Ok(None) | Err(_) => {}
                }
                let call = Call::get("/readyz").within(Duration::from_millis(200));
                match client.send(call).await {
                    Ok(_) => break,
                    Err(problem) if Instant::now() >= until => {
                        let log = dir.join(format!("{}.log", member.name));
                        return Err(DevError(format!(
                            "{} is not ready after {} s: {}; its log is {}",
                            member.name,
                            FORM.as_secs(),
                            problem.detail,
                            log.display()
                        )));
                    }
                    Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
                }
            }
        }
        let first = self.urls().into_iter().next().unwrap_or_default();
        client(&first)?
            .call(Call::get("/v1/cluster"))
            .await
            .map_err(|problem| DevError::new("the cluster can't be asked", problem))
    }

    /// Waits until a member ends by itself. Returns its name and its exit status.
    pub(super) async fn one_ends(&mut self) -> Option<String> {
        let waits = self.0.iter_mut().map(|member| {
            Box::pin(async {
                let status = member.process.wait().await;
                let how = status.map_or_else(|error| error.to_string(), |status| status.to_string());
                (member.name.clone(), how)
            })
        });
        let waits: Vec<_> = waits.collect();
        if waits.is_empty() {
            return None;
        }
        let ((name, how), _, rest) = futures::future::select_all(waits).await;
        drop(rest);
        self.0.retain(|member| member.name != name);
        Some(format!("{name} ended ({how})"))
    }

    /// Stops all members: gracefully, then by force.
    pub(super) async fn stop(&mut self) -> Result<(), DevError> {
        let mut failed = Vec::new();
        for member in &mut self.0 {
            let pid = member.process.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
            if let Some(pid) = pid {
                let _ = kill_process(pid, Signal::TERM);
            }
        }
        for member in &mut self.0 {
            match tokio::time::timeout(STOP, member.process.wait()).await {
                Ok(Ok(status)) if status.success() || is_stopped(status) => {}
                Ok(Ok(status)) => failed.push(format!("{} ended with {status}", member.name)),
                Ok(Err(error)) => failed.push(format!("{} can't be waited for: {error}", member.name)),
                Err(_) => {
                    let _ = member.process.kill().await;
                    failed.push(format!("{} did not stop within {} s", member.name, STOP.as_secs()));
                }
            }
        }
        self.0.clear();
        if failed.is_empty() { Ok(()) } else { Err(DevError(failed.join("; "))) }
    }
}

pub(super) fn client(url: &str) -> Result<Client, DevError> {
    Client::new(&[url]).map_err(|problem| DevError::new(url, problem))
}

/// Returns true for a member that a signal ended during its start, before it waited for signals.
fn is_stopped(status: ExitStatus) -> bool {
    status.signal() == Some(Signal::TERM.as_raw()) || is_interrupted(status)
}

/// Returns true for a member that the terminal's interrupt ended. The member was still in the process group
/// of the demonstration.
fn is_interrupted(status: ExitStatus) -> bool {
    status.signal() == Some(Signal::INT.as_raw())
}

fn ended(member: &Member, dir: &Path, status: ExitStatus) -> DevError {
    let log = std::fs::read_to_string(dir.join(format!("{}.log", member.name))).unwrap_or_default();
    let last = log.lines().last().unwrap_or("its log is empty");
    DevError(format!("{} ended ({status}): {last}", member.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_member_that_the_interrupt_of_the_terminal_ended_is_not_reported() {
        let dir = tempfile::tempdir().unwrap();
        let formed = async |signal: &str| {
            let command = format!("kill -{signal} $$");
            let mut process = Command::new("sh").args(["-c", &command]).spawn().unwrap();
            process.wait().await.unwrap();
            let client = SocketAddr::from(([127, 0, 0, 1], 1));
            let mut members = Members(vec![Member { name: "n1".to_owned(), client, process }]);
            tokio::time::timeout(Duration::from_secs(1), members.formed(dir.path())).await
        };
        assert!(formed("INT").await.is_err(), "it waits for the interrupt of the demonstration");
        let error = formed("KILL").await.unwrap().unwrap_err();
        assert_eq!(error.0, "n1 ended (signal: 9 (SIGKILL)): its log is empty");
    }
}
