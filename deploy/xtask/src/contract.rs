//! Contract tests: a fuzzer (schemathesis, from PyPI) checks a member against the OpenAPI document.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::python;
use crate::workspace::{Workspace, call};

/// Duration of the fuzzing, in seconds.
const SECONDS: u64 = 40;
/// Checks of the fuzzer. Every response must be documented; requests that violate the schema must be refused;
/// no response may be a server error.
const CHECKS: &str = "schema_valid_requests_are_accepted,schema_invalid_requests_are_refused,not_a_server_error,\
                      status_code_conformance,content_type_conformance,response_schema_conformance,\
                      response_headers_conformance,unsupported_method";
/// Time limit for the member to elect itself.
const PATIENCE: Duration = Duration::from_secs(30);

/// Starts a member, and runs the generated client and the fuzzer against it.
pub(crate) fn run(workspace: &Workspace, ipamd: &Path) -> Result<()> {
    let (generator, fuzzer) =
        (python::environment(workspace, "client")?, python::environment(workspace, "schemathesis")?);
    let dir = workspace.target.join("tmp").join(format!("contract-{}", std::process::id()));
    fs::create_dir_all(&dir)?;
    let member = Member::start(ipamd, &dir)?;
    let tried = try_client(workspace, &generator, &dir, member.address)
        .and_then(|()| fuzz(workspace, &fuzzer, &dir, member.address));
    let alive = member.is_ready();
    drop(member);
    if tried.is_err() || alive.is_err() {
        println!("the member's log: {}", dir.join("log").display());
        tried?;
        alive?;
    }
    fs::remove_dir_all(&dir).context("the directory of the run can't be removed")
}

/// Generates a client, without a warning, and runs the program that uses each of its operations.
fn try_client(workspace: &Workspace, generator: &Path, dir: &Path, member: SocketAddr) -> Result<()> {
    call(
        Command::new(generator.join("bin/openapi-python-client"))
            .args(["generate", "--meta", "none", "--fail-on-warning", "--output-path", "ipamd_client"])
            .args(["--url", &format!("http://{member}/openapi.json")])
            .arg("--config")
            .arg(file(workspace, "client.yaml"))
            .current_dir(dir),
    )?;
    call(
        Command::new(generator.join("bin/python"))
            .arg("-B")
            .arg(file(workspace, "client.py"))
            .arg(format!("http://{member}"))
            .env("PYTHONPATH", dir)
            .current_dir(dir),
    )
}

fn fuzz(workspace: &Workspace, fuzzer: &Path, dir: &Path, member: SocketAddr) -> Result<()> {
    call(
        Command::new(fuzzer.join("bin/st"))
            .arg("--config-file")
            .arg(file(workspace, "schemathesis.toml"))
            .args(["run", &format!("http://{member}/openapi.json"), "--max-time", &SECONDS.to_string()])
            // One worker: with more, Python 3.11 loses count of its own recursion.
            .args(["--workers", "1", "--checks", CHECKS, "--phases", "coverage,fuzzing"])
            .args(["--no-color", "--warnings", "off"])
            .env("SCHEMATHESIS_HOOKS", file(workspace, "accept.py"))
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .current_dir(dir),
    )
}

/// A file of this stage.
fn file(workspace: &Workspace, name: &str) -> PathBuf {
    workspace.root.join("deploy/xtask/contract").join(name)
}

/// Member of a cluster of its own. Dropping the value ends the member.
struct Member {
    process: Child,
    address: SocketAddr,
}

impl Member {
    fn start(ipamd: &Path, dir: &Path) -> Result<Self> {
        let client = free_port()?;
        let process = Command::new(ipamd)
            .args(["serve", "--stop-with-parent", "--name", "n1"])
            .args(["--client-listen", &client.to_string()])
            .arg("--data-dir")
            .arg(dir.join("data"))
            .env_clear()
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(dir.join("log"))?)
            .spawn()
            .context("ipamd can't be started")?;
        let member = Self { process, address: client };
        let begun = Instant::now();
        while let Err(error) = member.is_ready() {
            if begun.elapsed() > PATIENCE {
                return Err(error.context("the member doesn't get ready"));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(member)
    }

    fn is_ready(&self) -> Result<()> {
        let mut stream = TcpStream::connect(self.address)?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        stream.write_all(b"GET /readyz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        match answer.starts_with("HTTP/1.1 200") {
            true => Ok(()),
            false => bail!("{}", answer.lines().last().unwrap_or("no answer")),
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        // The member may have ended by itself.
        let _ended = self.process.kill();
        let _status = self.process.wait();
    }
}

/// Unused address on loopback.
fn free_port() -> Result<SocketAddr> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}
