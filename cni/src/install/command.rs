//! Command lines `ipam-cni install`, `uninstall` and `ready`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use ipam_api::brand::CNI_TYPE;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::agent;
use super::file::{Change, Directory};
use super::removal::Removal;
use crate::manual_run;

/// Usage of the commands.
pub const HELP: &str = "  ipam-cni install --dir DIR        put this program into a directory of CNI plugins
  ipam-cni install --networks DIR --network-dir DIR [--after-agent SOCKET] [--stay]
                                    copy network configurations, once the agent serves its socket
  ipam-cni uninstall --agent SOCKET [--dir DIR] [--networks DIR --network-dir DIR] [--stay]
                                    remove both; refused while containers of the node have addresses
  ipam-cni ready --socket SOCKET    exit with 0 if the node's agent can serve an ADD
";

/// Exit code of a usage error.
const USAGE: u8 = 2;
/// Mode of the installed program.
const PROGRAM: u32 = 0o755;
/// Mode of installed network configurations. They have no secrets, and runtimes of users read them.
const NETWORK: u32 = 0o644;
/// Extensions of files that runtimes read as network configurations.
const ENDINGS: [&str; 3] = ["conf", "conflist", "json"];
/// Time from the start of a plugin process until the agent knows its ADD.
const SETTLE: Duration = Duration::from_secs(1);
/// Path of this program, valid even after its file was replaced.
const SELF: &str = "/proc/self/exe";

/// Reason why a command failed.
#[derive(Debug)]
pub(super) struct Trouble {
    pub(super) text: String,
    code: u8,
}

impl Trouble {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), code: 1 }
    }

    pub(super) fn file(path: &str, error: &io::Error) -> Self {
        let remedy = match error.kind() {
            io::ErrorKind::NotFound => " Create its directory, or name the one that the runtime uses.",
            io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory => " Name a directory.",
            io::ErrorKind::PermissionDenied => " Run the command as root.",
            io::ErrorKind::ReadOnlyFilesystem => " Mount it with write access, or name another directory.",
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                " Free space, and repeat the command."
            }
            _ => "",
        };
        Self::new(format!("{path}: {error}.{remedy}"))
    }

    fn usage(text: impl Into<String>) -> Self {
        Self { text: text.into(), code: USAGE }
    }
}

/// Runs a command line whose first word is one of the commands.
#[must_use]
pub fn answer(command: &str, arguments: &[&str]) -> ExitCode {
    match run(command, arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(trouble) => {
            crate::warn(&trouble.text);
            ExitCode::from(trouble.code)
        }
    }
}

fn run(command: &str, arguments: &[&str]) -> Result<(), Trouble> {
    let flags = Flags::read(arguments)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Trouble::new(format!("can't start: {error}")))?;
    runtime.block_on(async {
        let work = async {
            match command {
                "install" => flags.install().await,
                "uninstall" => flags.uninstall().await,
                _ => flags.ready().await,
            }
        };
        if !flags.stay {
            return work.await;
        }
        // The first process of a container ignores signals without a handler.
        let mut stop = Stop::listen()?;
        if command == "install" {
            // The command may wait for the agent without a limit.
            tokio::select! {
                done = work => done?,
                () = stop.wait() => return Ok(()),
            }
        } else {
            work.await?;
        }
        stop.wait().await;
        Ok(())
    })
}

/// Signals that end the wait of a command.
struct Stop {
    terminate: Signal,
    interrupt: Signal,
}

impl Stop {
    /// Receives the signals from now on.
    fn listen() -> Result<Self, Trouble> {
        let receive =
            |kind| signal(kind).map_err(|error| Trouble::new(format!("can't wait for a signal: {error}")));
        Ok(Self {
            terminate: receive(SignalKind::terminate())?,
            interrupt: receive(SignalKind::interrupt())?,
        })
    }

    async fn wait(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Flags of all commands.
#[derive(Debug, Default, PartialEq, Eq)]
struct Flags {
    dir: Option<PathBuf>,
    networks: Option<PathBuf>,
    network_dir: Option<PathBuf>,
    after_agent: Option<PathBuf>,
    agent: Option<PathBuf>,
    socket: Option<PathBuf>,
    stay: bool,
}

impl Flags {
    fn read(arguments: &[&str]) -> Result<Self, Trouble> {
        let mut flags = Self::default();
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            let (name, attached) = word.split_once('=').unzip();
            let name = name.unwrap_or(word);
            let place = match name {
                "--stay" if attached.is_none() => {
                    flags.stay = true;
                    continue;
                }
                "--dir" => &mut flags.dir,
                "--networks" => &mut flags.networks,
                "--network-dir" => &mut flags.network_dir,
                "--after-agent" => &mut flags.after_agent,
                "--agent" => &mut flags.agent,
                "--socket" => &mut flags.socket,
                _ => {
                    return Err(Trouble::usage(format!("{word:?} is not understood; see {CNI_TYPE} --help")));
                }
            };
            let next = || words.next().copied().filter(|value| !value.starts_with('-'));
            let value = attached.or_else(next).filter(|value| !value.is_empty());
            let value = value.ok_or_else(|| Trouble::usage(format!("{name} needs a path")))?;
            *place = Some(value.into());
        }
        if flags.networks.is_some() != flags.network_dir.is_some() {
            return Err(Trouble::usage("--networks and --network-dir belong together"));
        }
        // Each directory is locked once, so the second lock of the same one would wait forever.
        if flags.dir.is_some() && flags.dir == flags.network_dir {
            return Err(Trouble::usage("--dir and --network-dir must be two directories"));
        }
        Ok(flags)
    }

    /// Source and target of network configurations.
    fn networks(&self) -> Option<(&Path, &Path)> {
        Some((self.networks.as_deref()?, self.network_dir.as_deref()?))
    }

    async fn install(&self) -> Result<(), Trouble> {
        if self.dir.is_none() && self.networks.is_none() {
            return Err(Trouble::usage("name a directory with --dir, or --networks and --network-dir"));
        }
        if let Some(dir) = &self.dir {
            let content = fs::read(SELF).map_err(|error| Trouble::file(SELF, &error))?;
            put(dir, CNI_TYPE, &content, PROGRAM)?;
        }
        let Some((from, to)) = self.networks() else { return Ok(()) };
        // All configurations are checked before the first one is written.
        let names = names(from)?;
        let mut contents = Vec::new();
        for name in &names {
            let path = from.join(name).display().to_string();
            manual_run::check_file(&path, "")
                .map_err(|failure| Trouble::new(format!("{path}: {failure}")))?;
            contents.push(fs::read(&path).map_err(|error| Trouble::file(&path, &error))?);
        }
        if let Some(socket) = &self.after_agent {
            agent::wait_for(socket).await;
        }
        for (name, content) in names.iter().zip(contents) {
            put(to, name, &content, NETWORK)?;
        }
        Ok(())
    }

    async fn uninstall(&self) -> Result<(), Trouble> {
        let usage = || Trouble::usage("name the socket of the node's agent with --agent");
        let networks = self.networks().map(|(from, to)| Ok((to, names(from)?))).transpose()?;
        let agent = self.agent.as_deref().ok_or_else(usage)?;
        let removal = Removal { programs: self.dir.as_deref(), networks, agent, settle: SETTLE };
        let removed = removal.carry_out().await?;
        for path in &removed {
            say(&format!("{path}: removed"));
        }
        if removed.is_empty() {
            say("nothing was left to remove");
        }
        Ok(())
    }

    async fn ready(&self) -> Result<(), Trouble> {
        let usage = || Trouble::usage("name the socket of the node's agent with --socket");
        let socket = self.socket.as_deref().ok_or_else(usage)?;
        let answer = agent::ready(socket).await;
        answer.map_err(|problem| Trouble::new(format!("{}. {}", problem.detail, problem.help)))
    }
}

/// Network configurations in a directory, in the order of their names. A missing directory has none.
fn names(dir: &Path) -> Result<Vec<String>, Trouble> {
    let failed = |error: io::Error| Trouble::file(&dir.display().to_string(), &error);
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(failed)?,
    };
    let mut names = Vec::new();
    for entry in entries {
        let Ok(name) = entry.map_err(failed)?.file_name().into_string() else { continue };
        let ending = Path::new(&name).extension().and_then(|ending| ending.to_str());
        // A mounted ConfigMap has hidden directories beside its files.
        if !name.starts_with('.') && ending.is_some_and(|ending| ENDINGS.contains(&ending)) {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

fn put(dir: &Path, name: &str, content: &[u8], mode: u32) -> Result<(), Trouble> {
    let path = dir.join(name).display().to_string();
    let change = Directory::open(dir).and_then(|directory| directory.put(name, content, mode));
    match change.map_err(|error| Trouble::file(&path, &error))? {
        Change::Written => say(&format!("{path}: installed")),
        Change::None => say(&format!("{path}: unchanged")),
    }
    Ok(())
}

fn say(text: &str) {
    // A closed standard output is no reason to leave the node half installed.
    let _ = crate::write_all(format!("{text}\n").as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_read_or_refused() {
        let flags = Flags::read(&["--dir", "/opt/cni/bin", "--stay"]).unwrap();
        assert_eq!(flags, Flags { dir: Some("/opt/cni/bin".into()), stay: true, ..Flags::default() });
        assert_eq!(Flags::read(&["--dir=/opt/cni/bin", "--stay"]).unwrap(), flags);
        assert_eq!(Flags::read(&["--dir=-a=b"]).unwrap().dir, Some("-a=b".into()));
        for wrong in [
            &["--dir"][..],
            &["--dir", "--stay"],
            &["--dir", ""],
            &["--dir=", "/a"],
            &["--stay=yes"],
            &["--networks", "/a"],
            &["--network-dir", "/a"],
            &["--dir", "/a", "--networks", "/b", "--network-dir", "/a"],
            &["--drи", "/a"],
            &["/opt/cni/bin"],
        ] {
            assert_eq!(Flags::read(wrong).unwrap_err().code, USAGE, "{wrong:?}");
        }
        for (command, arguments) in [("install", &[][..]), ("uninstall", &["--dir", "/a"]), ("ready", &[])] {
            assert_eq!(run(command, arguments).unwrap_err().code, USAGE, "{command}");
        }
    }

    #[test]
    fn only_network_configurations_are_taken() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["10-lan.conflist", "9-a.conf", "x.json", ".hidden.conf", "readme.txt", "conf"] {
            fs::write(dir.path().join(name), "").unwrap();
        }
        assert_eq!(names(dir.path()).unwrap(), ["10-lan.conflist", "9-a.conf", "x.json"]);
        assert_eq!(names(&dir.path().join("none")).unwrap(), Vec::<String>::new());
    }
}
