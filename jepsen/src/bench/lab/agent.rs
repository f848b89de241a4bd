//! Node agent with its own directory.

use std::fs::{self, File};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

/// Time in which the socket of an agent accepts connections.
const PATIENCE: Duration = Duration::from_secs(30);
/// Pause between two polls.
const LOOK: Duration = Duration::from_millis(20);

/// Agent of one node. Dropping it kills its process.
#[derive(Debug)]
pub(in crate::bench) struct Agent {
    dir: PathBuf,
    process: Child,
}

impl Agent {
    /// Starts an agent with default settings, and waits until it serves its socket.
    pub(in crate::bench) async fn start(
        dir: &Path,
        program: &Path,
        servers: &[String],
        node: &str,
    ) -> Result<Self> {
        fs::create_dir_all(dir)?;
        let (socket, state, config) = (dir.join("agent.sock"), dir.join("state"), dir.join("agent.toml"));
        let text =
            format!("servers = {servers:?}\nnode = \"{node}\"\nsocket = {socket:?}\nstate_dir = {state:?}\n");
        fs::write(&config, text)?;
        let log = File::create(dir.join("log"))?;
        // ipam-agent has no option to end with its parent process.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]).arg(program).arg("serve").arg("--config").arg(config);
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).process_group(0);
        let process = command.spawn().context("ipam-agent can't be started (setpriv of util-linux)")?;
        let agent = Self { dir: dir.to_owned(), process };
        let begun = Instant::now();
        while tokio::net::UnixStream::connect(&socket).await.is_err() {
            if begun.elapsed() > PATIENCE {
                bail!("ipam-agent does not serve: {}", fs::read_to_string(dir.join("log"))?);
            }
            tokio::time::sleep(LOOK).await;
        }
        Ok(agent)
    }

    /// Socket for plugins.
    pub(in crate::bench) fn socket(&self) -> PathBuf {
        self.dir.join("agent.sock")
    }

    /// Process of the agent.
    pub(in crate::bench) fn pid(&self) -> u32 {
        self.process.id()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let ended = self.process.kill().and_then(|()| self.process.wait());
        if let Err(error) = ended {
            eprintln!("ipam-agent: {error}");
        }
    }
}
