//! Hosts on one switch, with a network, a name, processes and the directories that the page writes to. They
//! are namespaces without names, and end with the process that holds them.

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

use crate::support::held::Held;
use crate::support::programs;

/// Every host of the page, in the order of their addresses.
pub(crate) const HOSTS: [&str; 6] = ["desk", "n1", "n2", "n3", "n4", "w1"];
/// Directories of a host's own; all others are this machine's.
const OWN: [&str; 8] = ["etc", "opt", "root", "run", "srv", "usr/local/bin", "var/lib", "var/log"];
/// Files in `/etc` that programs need, besides those that the page writes.
const KNOWN: [&str; 3] = ["passwd", "group", "ld.so.cache"];
/// No module for host names: a program that calls getaddrinfo, which a static one must not, finds no host.
const NSSWITCH: &str = "passwd: files\ngroup: files\nhosts: none\n";
/// A member's disk: small, so that a test can fill it.
const DISK_BYTES: u64 = 512 << 20;
/// Longer than any block of the page may take on a busy machine.
const PATIENCE_SECONDS: &str = "120";

/// A switch and its hosts.
pub(crate) struct Lab {
    hosts: Vec<Host>,
    _switch: Held,
    dir: TempDir,
}

struct Host {
    name: &'static str,
    held: Held,
}

impl Lab {
    /// Makes all hosts. Needs root.
    pub(crate) fn make() -> Self {
        let dir = TempDir::new().unwrap();
        let up = "ip link set lo up && ip link add br0 type bridge && ip link set br0 up";
        let switch = Held::start(&["--net"], up);
        let hosts = (1..).zip(HOSTS).map(|(number, name)| Host::make(name, number, dir.path(), &switch));
        let hosts = hosts.collect();
        Self { hosts, _switch: switch, dir }
    }

    /// Runs a script with bash on a host, as root in /root, and stops at the first command that fails.
    pub(crate) fn run(&self, host: &str, script: &str) -> Output {
        let host = self.hosts.iter().find(|one| one.name == host).expect("a host of the lab");
        let mut command = host.held.inside(&["-m", "-n", "-u", "-p"]);
        command.args([
            "timeout",
            PATIENCE_SECONDS,
            "bash",
            "-euo",
            "pipefail",
            "-c",
            &format!("cd /root\n{script}"),
        ]);
        command.env_clear().env("HOME", "/root").env("LAB", self.dir.path()).env("USER", "root");
        command.env("PATH", "/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin");
        // Background processes write to a file of their own and keep no stream open.
        command.stdin(Stdio::null()).output().unwrap()
    }

    /// Writes a file of a host; a path without a slash at the front is below /root.
    pub(crate) fn write(&self, host: &str, path: &str, text: &str) {
        let root = self.dir.path().join(host);
        let path = match path.strip_prefix('/') {
            Some(path) => root.join(path),
            None => root.join("root").join(path),
        };
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Log of the members.
    pub(crate) fn logs(&self) -> String {
        let files = HOSTS.iter().flat_map(|host| [(host, "ipamd.log"), (host, "ipam-agent.log")]);
        let logs = files.filter_map(|(host, file)| {
            let log = fs::read_to_string(self.dir.path().join(host).join("var/log").join(file)).ok()?;
            let lines: Vec<&str> = log.lines().collect();
            Some(format!("--- {host}\n{}\n", lines[lines.len().saturating_sub(30)..].join("\n")))
        });
        logs.collect()
    }
}

impl Host {
    fn make(name: &'static str, number: u8, lab: &Path, switch: &Held) -> Self {
        let root = lab.join(name);
        for own in OWN {
            fs::create_dir_all(root.join(own)).unwrap();
        }
        furnish(&root, name);
        let mut setup = format!("hostname {name} && ip link set lo up");
        for own in OWN {
            setup.push_str(&format!(" && mount --bind {} /{own}", root.join(own).display()));
        }
        setup.push_str(&format!(" && mount -t tmpfs -o size={DISK_BYTES} disk /var/lib"));
        let held = Held::start(&["--net", "--mount", "--uts", "--pid", "--mount-proc"], &setup);
        let inner = held.inner();
        let port = format!("port-{name}");
        check(switch.inside(&["-n"]).args(["ip", "link", "add", &port, "type", "veth"]).args([
            "peer",
            "name",
            "eth0",
            "netns",
            &inner.to_string(),
        ]));
        check(switch.inside(&["-n"]).args(["ip", "link", "set", &port, "master", "br0", "up"]));
        let address = format!("{}/24", address(number));
        check(held.inside(&["-n"]).args(["ip", "address", "add", &address, "dev", "eth0"]));
        check(held.inside(&["-n"]).args(["ip", "link", "set", "eth0", "up"]));
        Self { name, held }
    }
}

fn address(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, 0, number)
}

/// Puts the initial files into the directories of a host: the names of the others, and on the desk a checkout.
fn furnish(root: &Path, name: &str) {
    for known in KNOWN {
        let _ = fs::copy(Path::new("/etc").join(known), root.join("etc").join(known));
    }
    fs::write(root.join("etc/nsswitch.conf"), NSSWITCH).unwrap();
    let mut names = String::from("127.0.0.1 localhost\n");
    for (number, host) in (1..).zip(HOSTS) {
        names.push_str(&format!("{} {host}\n", address(number)));
    }
    fs::write(root.join("etc/hosts"), names).unwrap();
    fs::create_dir_all(root.join("etc/systemd/system")).unwrap();
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let unit = |name| ("deploy/systemd", here.join("../deploy/systemd").join(name));
    let shipped = [programs::ipamd(), programs::ipamctl(), programs::ipam_cni(), programs::ipam_agent()];
    let checkout = shipped.into_iter().map(|program| ("target/dist", program));
    let checkout = checkout.chain([unit("ipamd.service"), unit("ipam-agent.service")]);
    for (folder, program) in checkout.filter(|_| name == "desk") {
        let folder = root.join("root").join(folder);
        fs::create_dir_all(&folder).unwrap();
        let file: PathBuf = folder.join(program.file_name().unwrap());
        fs::hard_link(&program, &file).or_else(|_| fs::copy(&program, &file).map(drop)).unwrap();
    }
    for shim in ["systemctl", "scp"] {
        let to = root.join("usr/local/bin").join(shim);
        fs::copy(here.join("tests/namespace_operating/bin").join(shim), to).unwrap();
    }
}

fn check(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}
