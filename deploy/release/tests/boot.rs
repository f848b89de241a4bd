//! Hosts that boot: systemd as the first process, on a network of the test.

use std::io::{Read as _, Write as _};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::host::Host;
use crate::{run, text};

/// Time limit of each step on a busy machine.
const LONG: Duration = Duration::from_secs(240);
const LOOK: Duration = Duration::from_millis(100);

/// Ethernet of the hosts: a bridge in a namespace. Dropping the value ends the bridge.
pub(crate) struct Network {
    switch: Child,
    hosts: Vec<String>,
}

impl Network {
    /// A network for hosts of these names. Host number I has the address `10.77.0.I`.
    pub(crate) fn of(names: &[&str]) -> Self {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "unshare", "--net", "bash", "-euc"]);
        command.arg("ip link add br0 type bridge; ip link set br0 up; echo; exec sleep infinity");
        let mut switch = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut ready = [0];
        switch.stdout.take().unwrap().read_exact(&mut ready).unwrap();
        Self { switch, hosts: names.iter().map(|name| (*name).to_owned()).collect() }
    }

    /// Connects a host to the bridge, by the id of its first process.
    fn connect(&self, name: &str, first: u32) {
        let number = self.hosts.iter().position(|host| host == name).unwrap() + 1;
        let plug = format!(
            "ip link add {name} type veth peer name eth0 netns {first}; ip link set {name} master br0 up
             nsenter --target {first} --net bash -euc \
               'ip link set eth0 up; ip address add 10.77.0.{number}/24 dev eth0'"
        );
        let switch = format!("--target={}", self.switch.id());
        run(Command::new("nsenter").args([&switch, "--net", "bash", "-euc", &plug]));
    }

    /// Names and addresses, for `/etc/hosts`.
    fn names(&self) -> String {
        let lines = self.hosts.iter().zip(1..).map(|(name, number)| format!("10.77.0.{number} {name}\n"));
        "127.0.0.1 localhost\n".to_owned() + &lines.collect::<String>()
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        let _ended = self.switch.kill().and_then(|()| self.switch.wait());
    }
}

/// Host whose systemd runs. Dropping the value kills the host.
pub(crate) struct Booted {
    /// Owner of the host's files.
    _host: Host,
    manager: Child,
    /// Process 1 of the host.
    first: u32,
}

impl Booted {
    /// Boots a host on a network.
    pub(crate) fn new(host: Host, network: &Network, name: &str) -> Self {
        host.write("etc/hosts", &network.names());
        host.write("etc/hostname", &format!("{name}\n"));
        let boot = "mount -t overlay overlay -o \"$1\" \"$2\" &&
            exec systemd-nspawn --quiet --directory=\"$2\" --boot --register=no --keep-unit \
            --private-network --console=pipe --resolv-conf=off --timezone=off --link-journal=no \
            --hostname=\"$3\" --machine=\"$3-$4\"";
        // With its process namespace all processes of the host end, also if the test is killed.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "unshare", "--mount", "--pid", "--mount-proc", "--kill-child"]);
        command.args(["bash", "-euc", boot, "bash"]);
        command.arg(host.overlay()).arg(host.root()).arg(name).arg(std::process::id().to_string());
        // Plugins set addresses and rules of interfaces below /proc/sys/net.
        command.env("SYSTEMD_NSPAWN_API_VFS_WRITABLE", "network");
        let log = std::fs::File::create(host.root().with_file_name("boot.log")).unwrap();
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        let mut booted = Self { _host: host, manager: command.spawn().unwrap(), first: 0 };
        booted.first = booted.eventually("the first process", |booted| booted.find_first());
        network.connect(name, booted.first);
        let is_up = "systemctl is-system-running --wait | grep --quiet --line-regexp running";
        booted.eventually("a running system", |booted| booted.run(is_up).status.success().then_some(()));
        booted
    }

    /// The grandchild that is process 1 of the host, below the container manager.
    fn find_first(&self) -> Option<u32> {
        let [manager] = children(self.manager.id())[..] else { return None };
        let is_systemd = |id: &u32| {
            std::fs::read_to_string(format!("/proc/{id}/comm")).is_ok_and(|name| name.trim() == "systemd")
        };
        children(manager).into_iter().find(is_systemd)
    }

    fn inside(&self, script: &str) -> Command {
        let mut command = Command::new("nsenter");
        command
            .arg(format!("--target={}", self.first))
            .args(["--mount", "--uts", "--ipc", "--net", "--pid", "--root", "--wdns=/"]);
        command.args(["/usr/bin/env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root"]);
        command.args(["DEBIAN_FRONTEND=noninteractive", "bash", "-euo", "pipefail", "-c", script]);
        command
    }

    /// Runs a script as root of the host.
    pub(crate) fn run(&self, script: &str) -> Output {
        self.inside(script).output().unwrap()
    }

    /// Runs a script that must succeed; returns its output.
    pub(crate) fn does(&self, script: &str) -> String {
        let output = self.run(script);
        assert!(output.status.success(), "{script}: {}\n{}", text(&output), self.journal());
        text(&output)
    }

    /// Writes a file; its directory exists.
    pub(crate) fn write(&self, path: &str, content: &str) {
        let mut command = self.inside(&format!("cat > {path}"));
        let mut writing = command.stdin(Stdio::piped()).spawn().unwrap();
        writing.stdin.take().unwrap().write_all(content.as_bytes()).unwrap();
        assert!(writing.wait().unwrap().success(), "{path}");
    }

    /// Starts a script that runs at the same time as the test.
    pub(crate) fn begins(&self, script: &str) -> Child {
        self.inside(script).spawn().unwrap()
    }

    /// Last lines of the host's journal.
    fn journal(&self) -> String {
        text(&self.run("journalctl --boot --no-pager --lines=60"))
    }

    /// Waits until `look` returns a value.
    pub(crate) fn eventually<T>(&self, what: &str, mut look: impl FnMut(&Self) -> Option<T>) -> T {
        let begun = Instant::now();
        loop {
            if let Some(found) = look(self) {
                return found;
            }
            assert!(begun.elapsed() < LONG, "no {what}\n{}", self.journal());
            std::thread::sleep(LOOK);
        }
    }
}

impl Drop for Booted {
    fn drop(&mut self) {
        let _ended = self.manager.kill().and_then(|()| self.manager.wait());
    }
}

fn children(process: u32) -> Vec<u32> {
    let listed = std::fs::read_to_string(format!("/proc/{process}/task/{process}/children"));
    listed.unwrap_or_default().split_whitespace().filter_map(|id| id.parse().ok()).collect()
}
