//! One member: a real process with its directory, its addresses and its log.

use std::ffi::OsString;
use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use ipam_api::client::{Call, Client, Options};
use rustix::process::{Pid, Signal, kill_process};

use super::tls::Holder;
use super::{LONG, clocks, programs, until};

/// Lines of a member's log that a failure shows.
const TAIL: usize = 40;

/// A member that may or may not be up.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) client: SocketAddr,
    pub(crate) peer: SocketAddr,
    pub(crate) data_dir: PathBuf,
    pub(crate) log: PathBuf,
    /// Certificate, if it uses TLS on all ports.
    pub(crate) tls: Option<Holder>,
    /// File with its wall clock, in the format of libfaketime; none for the machine's clock.
    pub(crate) clock: Option<PathBuf>,
    /// Path of its `ipamd`.
    pub(crate) program: PathBuf,
    /// True if it is started without a peer port.
    pub(crate) alone: bool,
    /// True if it answers peers at a port of the network without TLS.
    pub(crate) insecure: bool,
    /// Configuration besides that of every member.
    pub(crate) config: String,
    /// Flags besides those of every member.
    pub(crate) flags: Vec<&'static str>,
    /// Environment of the process besides that of every member.
    pub(crate) environment: Vec<(&'static str, OsString)>,
    /// Servers and token file of a join; none for a founder.
    pub(crate) join: Option<(Vec<String>, Option<PathBuf>)>,
    process: Option<Child>,
}

impl Member {
    pub(crate) fn new(name: &str, client: SocketAddr, peer: SocketAddr, dir: &Path) -> Self {
        let (data_dir, log) = (dir.join(name), dir.join(format!("{name}.log")));
        let program = programs::ipamd();
        let name = name.to_owned();
        Self {
            name,
            client,
            peer,
            data_dir,
            log,
            tls: None,
            join: None,
            clock: None,
            program,
            alone: false,
            insecure: false,
            config: String::new(),
            flags: Vec::new(),
            environment: Vec::new(),
            process: None,
        }
    }

    /// `ipamd serve` with this member's settings, and `peers` as the founding members.
    pub(crate) fn command(&self, config: &Path, peers: &[(String, String)]) -> Command {
        let mut command = match &self.clock {
            Some(clock) => clocks::serve_by(clock),
            None => serve_with(&self.program),
        };
        command.arg("--config").arg(self.config_file(config)).args(["--name", &self.name]);
        command.arg("--data-dir").arg(&self.data_dir);
        command.args(["--client-listen", &self.client.to_string()]);
        command.arg("--client-socket").arg(self.socket());
        command.args(&self.flags).envs(self.environment.iter().cloned());
        if self.alone {
            return command;
        }
        command.args(["--peer-listen", &self.peer_address()]);
        command.args(self.insecure.then_some("--insecure"));
        if let Some(Holder { ca, certificate, key }) = &self.tls {
            for (flag, file) in [
                ("--tls-certificate", certificate),
                ("--tls-key", key),
                ("--tls-client-ca", ca),
                ("--peer-tls-certificate", certificate),
                ("--peer-tls-key", key),
                ("--peer-tls-ca", ca),
            ] {
                command.arg(flag).arg(file);
            }
        }
        if let Some((servers, token)) = &self.join {
            command.env("IPAMD_JOIN", servers.join(","));
            command.envs(token.iter().map(|file| ("IPAMD_JOIN_TOKEN_FILE", file)));
            return command;
        }
        for (name, peer) in peers {
            command.args(["--member", &format!("{name}={peer}")]);
        }
        command
    }

    /// The configuration of every member, or a file with that and its own.
    fn config_file(&self, shared: &Path) -> PathBuf {
        if self.config.is_empty() {
            return shared.to_owned();
        }
        let path = self.log.with_extension("toml");
        let text = std::fs::read_to_string(shared).unwrap();
        std::fs::write(&path, format!("{text}\n{}", self.config)).unwrap();
        path
    }

    pub(crate) fn start(&mut self, config: &Path, peers: &[(String, String)]) {
        assert!(self.process.is_none(), "{} is up already", self.name);
        let log = File::options().create(true).append(true).open(&self.log).unwrap();
        self.process = Some(self.command(config, peers).stderr(log).spawn().unwrap());
    }

    pub(crate) fn is_up(&self) -> bool {
        self.process.is_some()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.as_ref().unwrap().id()
    }

    /// Exit status of a process that ended by itself.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.process.as_mut()?.try_wait().unwrap()
    }

    pub(crate) fn url(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.client)
    }

    /// Its address for peers: a port with TLS, a socket without; the socket moves with the port.
    pub(crate) fn peer_address(&self) -> String {
        if self.tls.is_some() || self.insecure {
            return self.peer.to_string();
        }
        let name = format!("{}-{}", self.name, self.peer.port());
        format!("unix:{}", self.log.with_file_name("peers").join(name).display())
    }

    /// Path of its client socket: reachable from any network namespace.
    pub(crate) fn socket(&self) -> PathBuf {
        self.log.with_extension("sock")
    }

    /// A client of this member alone.
    pub(crate) fn ask(&self) -> Client {
        Client::with(&[self.url()], &self.options()).unwrap()
    }

    /// Options with which a client trusts it.
    pub(crate) fn options(&self) -> Options {
        Options { ca_file: self.tls.as_ref().map(|holder| holder.ca.clone()), ..Options::default() }
    }

    pub(crate) async fn is_ready(&self) -> Result<(), String> {
        let call = Call::get("/readyz").within(Duration::from_millis(200));
        self.ask().send(call).await.map(drop).map_err(|problem| format!("{}: {problem}", self.name))
    }

    /// Waits until it reports itself as not ready, with this reason. A late answer of a busy machine doesn't
    /// count.
    pub(crate) async fn not_ready(&self, why: &str) {
        until(&format!("{} isn't ready", self.name), async || {
            let call = Call::get("/readyz").within(Duration::from_secs(1));
            match self.ask().send(call).await {
                Err(problem) if problem.detail.contains(why) => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await;
    }

    /// Sends it kill -9, if it is up, and doesn't wait for its end.
    pub(crate) fn shoot(&self) {
        if self.is_up() {
            self.signal(Signal::KILL);
        }
    }

    /// kill -9.
    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            process.wait().unwrap();
        }
    }

    /// Sends SIGTERM, without waiting for the exit.
    pub(crate) fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Sends SIGHUP: it reloads its settings.
    pub(crate) fn hang_up(&self) {
        self.signal(Signal::HUP);
    }

    /// Stops the process where it is, as a frozen machine does, until it is resumed.
    pub(crate) fn pause(&self) {
        self.signal(Signal::STOP);
        // One thread receives the signal and stops the others, which on a busy machine run on until then.
        let begun = Instant::now();
        while !self.has_stopped() {
            assert!(begun.elapsed() < LONG, "{} does not stop", self.name);
            sleep(Duration::from_millis(1));
        }
    }

    /// True if no thread runs before a resume, or the process has ended.
    fn has_stopped(&self) -> bool {
        let states = || {
            let threads = std::fs::read_dir(format!("/proc/{}/task", self.pid())).into_iter().flatten();
            threads.flatten().filter_map(|thread| {
                let stat = std::fs::read_to_string(thread.path().join("stat")).ok()?;
                stat.rsplit(") ").next()?.chars().next()
            })
        };
        // The first stopped thread makes all others stop, those in `D` when their disk has answered.
        states().all(|state| state == 'Z')
            || states().any(|state| state == 'T') && states().all(|state| "TZD".contains(state))
    }

    /// Lets a paused process go on.
    pub(crate) fn resume(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.pid()).unwrap()).unwrap();
        // A process that ended by itself is noticed by the waiting test.
        let _ = kill_process(pid, signal);
    }

    /// Waits for the process to end by itself.
    pub(crate) async fn exit(&mut self) -> ExitStatus {
        let what = format!("{} ends", self.name);
        let status = until(&what, async || self.ended().ok_or_else(|| "it runs".to_owned())).await;
        self.process = None;
        status
    }

    pub(crate) fn logged(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Last message for people on standard error. A thread that is still ending may log after it: closing the
    /// log's files on a failed disk reports the error again.
    pub(crate) fn last_line(&self) -> String {
        let log = self.logged();
        let printed = log.lines().rev().find(|line| line.starts_with("ipamd: "));
        printed.unwrap_or_else(|| panic!("it said nothing: {}", self.tail())).to_owned()
    }

    /// The end of its log.
    pub(crate) fn tail(&self) -> String {
        let log = self.logged();
        let lines: Vec<&str> = log.lines().collect();
        let from = lines.len().saturating_sub(TAIL);
        format!("--- {} ({} lines, the last ones)\n{}\n", self.name, lines.len(), lines[from..].join("\n"))
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.kill();
    }
}

/// `ipamd serve` with nothing of this process's environment. It ends with this process, however that ends.
pub(crate) fn serve() -> Command {
    serve_with(&programs::ipamd())
}

/// The same with another build.
pub(crate) fn serve_with(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.args(["serve", "--stop-with-parent"]).env_clear();
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    command
}
