//! What the OpenAPI document says, tried on a real member by a fuzzer that reads it (schemathesis, from PyPI, into
//! a virtual environment of its own).

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::packages;
use crate::workspace::{Workspace, call};

/// How long the fuzzer may try.
const SECONDS: u64 = 45;
/// What it holds against the document. Whatever is answered must be what is written there; what breaks the
/// schema must be refused; nothing may be a failure of the server's.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,\
                      response_schema_conformance,response_headers_conformance,negative_data_rejection,\
                      unsupported_method";
/// How long the member may take to lead itself.
const PATIENCE: Duration = Duration::from_secs(30);

/// Starts a member and lets the fuzzer at it.
pub(crate) fn run(workspace: &Workspace, ipamd: &Path) -> Result<()> {
    let fuzzer = fuzzer(workspace)?;
    let dir = workspace.target.join("tmp").join(format!("contract-{}", std::process::id()));
    fs::create_dir_all(&dir)?;
    let member = Member::start(ipamd, &dir)?;
    let document = format!("http://{}/openapi.json", member.address);
    let seconds = SECONDS.to_string();
    let tried = call(
        Command::new(fuzzer)
            .arg("--config-file")
            .arg(workspace.root.join("deploy/xtask/schemathesis.toml"))
            // One worker: with more, Python 3.11 loses count of its own recursion.
            .args(["run", &document, "--max-time", &seconds, "--workers", "1", "--checks", CHECKS])
            .args(["--phases", "coverage,fuzzing", "--no-color", "--warnings", "off"])
            .current_dir(&dir),
    );
    let alive = member.is_ready();
    drop(member);
    if tried.is_err() || alive.is_err() {
        println!("the member's log: {}", dir.join("log").display());
        tried?;
        alive?;
    }
    fs::remove_dir_all(&dir).context("the directory of the run can't be removed")
}

/// The fuzzer's program, installed if it isn't there: exactly the versions that are written down.
fn fuzzer(workspace: &Workspace) -> Result<PathBuf> {
    let list = workspace.root.join("deploy/xtask/schemathesis.txt");
    let wanted = fs::read_to_string(&list)?;
    let home = workspace.target.join("tools/schemathesis");
    let (program, installed) = (home.join("bin/st"), home.join("installed.txt"));
    if program.exists() && fs::read_to_string(&installed).is_ok_and(|text| text == wanted) {
        return Ok(program);
    }
    packages::ensure_python()?;
    if home.exists() {
        fs::remove_dir_all(&home)?;
    }
    call(Command::new("python3").args(["-m", "venv"]).arg(&home))?;
    let quiet = ["install", "--quiet", "--disable-pip-version-check", "--requirement"];
    call(Command::new(home.join("bin/pip")).args(quiet).arg(&list))?;
    fs::write(installed, wanted)?;
    Ok(program)
}

/// One member, alone in its cluster; it ends with this value.
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
        // It may have ended by itself.
        let _ended = self.process.kill();
        let _status = self.process.wait();
    }
}

/// An unused address on loopback.
fn free_port() -> Result<SocketAddr> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}
