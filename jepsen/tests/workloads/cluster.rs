//! Three real members on a loopback address of their own.

use std::fs::{self, File};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use ipam_api::client::{Call, Client};
use ipam_jepsen::workload::{Server, Servers};

const MEMBERS: usize = 3;
const READY: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(20);
/// Leases end soon after the begin of a leadership. On a machine that is busy the leader stays.
const SETTINGS: &str =
    "[raft]\nlease_grace_ms = 500\nheartbeat_ms = 100\nelection_min_ms = 1000\nelection_max_ms = 1500\n";

/// Running members. They are killed when this is dropped.
pub(crate) struct Cluster {
    members: Vec<(String, SocketAddr, Child)>,
}

impl Cluster {
    /// Starts the members with their data in a directory.
    pub(crate) fn start(dir: &Path) -> Result<Self> {
        let program = program()?;
        // All of 127/8 is this machine's: an address for each cluster keeps them apart.
        let [_, x, y, z, ..] = *uuid::Uuid::new_v4().as_bytes();
        let ip = IpAddr::V4(Ipv4Addr::new(127, 64 + x % 64, y, z));
        let ports = free_ports(ip)?;
        let names: Vec<String> = (1..=MEMBERS).map(|number| format!("n{number}")).collect();
        let config = dir.join("ipamd.toml");
        fs::write(&config, SETTINGS)?;
        let mut cluster = Self { members: Vec::new() };
        for (name, client) in names.iter().zip(ports) {
            let mut command = Command::new(&program);
            command.args(["serve", "--stop-with-parent", "--name", name]);
            command.arg("--config").arg(&config).arg("--data-dir").arg(dir.join(name));
            command.args(["--client-listen", &client.to_string()]);
            for peer in &names {
                command
                    .arg("--member")
                    .arg(format!("{peer}=unix:{}", dir.join("peers").join(peer).display()));
            }
            command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
            let log = File::create(dir.join(format!("{name}.log")))?;
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).process_group(0);
            let process = command.spawn().with_context(|| program.display().to_string())?;
            cluster.members.push((name.clone(), client, process));
        }
        Ok(cluster)
    }

    /// Waits until all members are ready.
    pub(crate) async fn ready(&mut self) -> Result<()> {
        let begun = Instant::now();
        for (name, address, process) in &mut self.members {
            let client = Client::new(&[format!("http://{address}")])?;
            while let Err(error) = client.send(Call::get("/readyz").within(LOOK * 10)).await {
                if let Some(status) = process.try_wait()? {
                    bail!("{name} has ended: {status}");
                }
                if begun.elapsed() > READY {
                    return Err(error).with_context(|| format!("{name} does not become ready"));
                }
                tokio::time::sleep(LOOK).await;
            }
        }
        Ok(())
    }

    /// A client of each member, with its name.
    pub(crate) fn each(&self) -> Result<Vec<(String, Client)>> {
        let client = |(name, address, _): &(String, SocketAddr, Child)| {
            anyhow::Ok((name.clone(), Client::new(&[format!("http://{address}")])?))
        };
        self.members.iter().map(client).collect()
    }

    /// Servers of a session.
    pub(crate) fn servers(&self) -> Result<Servers> {
        let urls: Vec<String> =
            self.members.iter().map(|(_, address, _)| format!("http://{address}")).collect();
        let each = self.each()?.into_iter().map(|(name, client)| {
            let client: Arc<dyn Server> = Arc::new(client);
            (name, client)
        });
        Ok(Servers { all: Arc::new(Client::new(&urls)?), each: each.collect() })
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for (name, _, process) in &mut self.members {
            if let Err(error) = process.kill().and_then(|()| process.wait()) {
                eprintln!("{name}: {error}");
            }
        }
    }
}

/// Ports that are free once this returns.
fn free_ports(ip: IpAddr) -> Result<Vec<SocketAddr>> {
    let listeners = (0..MEMBERS).map(|_| TcpListener::bind((ip, 0))).collect::<Result<Vec<_>, _>>()?;
    Ok(listeners.iter().map(TcpListener::local_addr).collect::<Result<_, _>>()?)
}

fn program() -> Result<PathBuf> {
    let dir = match std::env::var_os("IPAM_JEPSEN_BIN_DIR") {
        Some(dir) => PathBuf::from(dir),
        None => {
            let test = std::env::current_exe()?;
            test.ancestors().nth(2).context("no directory above this test")?.to_owned()
        }
    };
    let program = dir.join("ipamd");
    if !program.exists() {
        bail!("{} is missing; build it, or set IPAM_JEPSEN_BIN_DIR", program.display());
    }
    Ok(program)
}
