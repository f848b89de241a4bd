//! Installation of the plugin on a node, as the DaemonSet runs it.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;
use tempfile::TempDir;

const PLUGIN: &str = env!("CARGO_BIN_EXE_ipam-cni");
/// Plugin processes that run during an installation.
const RUNNING: usize = 20;
/// Installations of each version.
const ROUNDS: usize = 10;

fn install(program: &Path, flags: &[&str]) -> Output {
    Command::new(program).arg("install").args(flags).env_clear().output().unwrap()
}

/// A program with the same behavior and another content.
fn other_version(dir: &Path) -> PathBuf {
    let path = dir.join("other");
    let mut content = fs::read(PLUGIN).unwrap();
    content.extend(b"another version");
    fs::write(&path, content).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// An ADD that waits for its network configuration.
fn start(program: &Path) -> Child {
    let mut command = Command::new(program);
    command.env_clear().env("CNI_COMMAND", "ADD").env("CNI_CONTAINERID", "c1").env("CNI_IFNAME", "eth0");
    command.env("CNI_NETNS", "/run/netns/c1").env("CNI_PATH", "/opt/cni/bin");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
}

/// Ends an ADD that waits; it must be able to answer.
fn finish(mut add: Child) {
    add.stdin.take().unwrap().write_all(b"no network").unwrap();
    let answer: Value = serde_json::from_slice(&add.wait_with_output().unwrap().stdout).unwrap();
    assert_eq!(answer.get("code"), Some(&6.into()), "{answer}");
}

#[test]
fn h6_10_an_installation_replaces_the_plugin_while_20_of_them_run() {
    let dir = TempDir::new().unwrap();
    let bin = dir.path().join("bin");
    let to = ["--dir", bin.to_str().unwrap()];
    let versions = [other_version(dir.path()), PLUGIN.into()];
    let contents = versions.each_ref().map(|version| fs::read(version).unwrap());
    let installed = bin.join("ipam-cni");
    assert!(install(&versions[0], &to).status.success());
    let running: Vec<Child> = (0..RUNNING).map(|_| start(&installed)).collect();
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let looked = scope.spawn(|| {
            let mut looks = 0;
            while !is_done.load(Ordering::Relaxed) {
                let content = fs::read(&installed).unwrap();
                assert!(contents.contains(&content), "{} bytes are no version", content.len());
                let version = Command::new(&installed).env("CNI_COMMAND", "VERSION").output().unwrap();
                assert!(version.status.success(), "{version:?}");
                looks += 1;
            }
            looks
        });
        let installers = versions.each_ref().map(|version| {
            scope.spawn(move || {
                for _ in 0..ROUNDS {
                    let output = install(version, &to);
                    assert!(output.status.success(), "{output:?}");
                }
            })
        });
        for installer in installers {
            installer.join().unwrap();
        }
        is_done.store(true, Ordering::Relaxed);
        assert!(looked.join().unwrap() > 0);
    });
    running.into_iter().for_each(finish);
    assert!(install(&versions[1], &to).status.success());
    assert_eq!(fs::read(&installed).unwrap(), contents[1]);
    assert_eq!(fs::read_dir(&bin).unwrap().count(), 1, "no draft is left");
    let before = fs::metadata(&installed).unwrap();
    let again = install(&versions[1], &to);
    assert!(
        again.status.success() && String::from_utf8_lossy(&again.stdout).contains("unchanged"),
        "{again:?}"
    );
    let after = fs::metadata(&installed).unwrap();
    assert_eq!((before.ino(), before.mtime_nsec()), (after.ino(), after.mtime_nsec()));
    assert_eq!(after.permissions().mode() & 0o7777, 0o755);
}

/// Directories with a network configuration and for the installed one.
struct Networks(TempDir);

impl Networks {
    fn of(text: &str) -> Self {
        let networks = Self(TempDir::new().unwrap());
        fs::create_dir(networks.0.path().join("from")).unwrap();
        fs::write(networks.0.path().join("from/10-lan.conflist"), text).unwrap();
        networks
    }

    fn flags(&self) -> [String; 4] {
        let dir = |name| self.0.path().join(name).to_str().unwrap().to_owned();
        ["--networks".to_owned(), dir("from"), "--network-dir".to_owned(), dir("net.d")]
    }

    fn installed(&self) -> PathBuf {
        self.0.path().join("net.d/10-lan.conflist")
    }
}

const NETWORK: &str = r#"{"cniVersion": "1.0.0", "name": "lan", "plugins": [
    {"type": "macvlan", "master": "eth1", "ipam": {"type": "ipam-cni", "socket": "/run/agent.sock"}}]}"#;

#[test]
fn network_configurations_appear_once_the_agent_serves() {
    let networks = Networks::of(NETWORK);
    let socket = networks.0.path().join("agent.sock");
    let mut command = Command::new(PLUGIN);
    command.arg("install").args(networks.flags()).arg("--after-agent").arg(&socket).arg("--stay").env_clear();
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut output = std::io::BufReader::new(child.stdout.take().unwrap());
    assert!(!networks.installed().exists());
    let _agent = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut output, &mut line).unwrap();
    assert!(line.ends_with("10-lan.conflist: installed\n"), "{line}");
    assert_eq!(fs::read_to_string(networks.installed()).unwrap(), NETWORK);
    assert_eq!(child.try_wait().unwrap(), None, "it stays");
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert!(child.wait().unwrap().success());
    assert!(networks.installed().exists(), "the network stays when the pod ends");
}

#[test]
fn a_network_configuration_that_cannot_work_is_not_installed() {
    for text in ["{", r#"{"cniVersion": "1.0.0", "name": "lan", "plugins": [{"type": "macvlan"}]}"#] {
        let networks = Networks::of(text);
        let output = install(Path::new(PLUGIN), &networks.flags().each_ref().map(String::as_str));
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("10-lan.conflist"), "{output:?}");
        assert!(!networks.installed().exists());
    }
}

#[test]
fn without_an_agent_nothing_is_removed_and_the_node_is_not_ready() {
    let dir = TempDir::new().unwrap();
    let (bin, socket) = (dir.path().join("bin"), dir.path().join("agent.sock"));
    assert!(install(Path::new(PLUGIN), &["--dir", bin.to_str().unwrap()]).status.success());
    let mut command = Command::new(PLUGIN);
    let output =
        command.arg("uninstall").arg("--dir").arg(&bin).arg("--agent").arg(&socket).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("Nothing was removed"), "{output:?}");
    assert!(bin.join("ipam-cni").exists());
    let ready = Command::new(PLUGIN).arg("ready").arg("--socket").arg(&socket).output().unwrap();
    assert_eq!(ready.status.code(), Some(1));
}

#[test]
fn a_directory_that_cannot_be_written_is_refused_with_a_remedy() {
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    for (target, says) in
        [("/proc/nope", "Create its directory"), (file.to_str().unwrap(), "Name a directory"), ("/sys", "")]
    {
        let output = install(Path::new(PLUGIN), &["--dir", target]);
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(1) && text.contains(says), "{target}: {text}");
        assert!(text.starts_with(&format!("ipam-cni: {target}/ipam-cni: ")), "{text}");
    }
}
