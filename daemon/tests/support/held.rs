//! Namespaces of the kernel, without names: they end with the process that holds them.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use super::cgroup::Cgroup;

/// Unmounts the disks of other tests in a new mount namespace, which begins with a copy of every mount.
///
/// They would stay mounted, and keep their devices, for as long as the namespace lives.
const LET_GO_OF_DISKS: &str = r#"while read -r device place _; do case $device in
/dev/loop*|/dev/mapper/ipamd-disk*|ipamd-disk) umount -l "$place" || :;; esac; done < /proc/mounts"#;

/// Namespaces that live as long as a process in them.
pub(crate) struct Held {
    outer: Child,
    inner: u32,
}

impl Held {
    /// Makes namespaces and sets them up.
    pub(crate) fn start(kinds: &[&str], setup: &str) -> Self {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "unshare", "--fork", "--kill-child"]).args(kinds);
        // The first process of a process namespace inherits orphans, which must not stay as zombies.
        let hold = "exec env --ignore-signal=CHLD sleep infinity";
        // Namespaces of other kinds share the mounts of this machine.
        let let_go = if kinds.contains(&"--mount") { LET_GO_OF_DISKS } else { ":" };
        command.args(["sh", "-c", &format!("{let_go}\n{setup} && echo ready && {hold}")]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut outer = command.spawn().expect("setpriv, of util-linux");
        let mut word = String::new();
        BufReader::new(outer.stdout.as_mut().unwrap()).read_line(&mut word).unwrap();
        if word != "ready\n" {
            let _ = outer.kill();
            let mut why = String::new();
            outer.stderr.take().unwrap().read_to_string(&mut why).unwrap();
            panic!("this test needs namespaces, so root on Linux, and iproute2: {why}");
        }
        let children = format!("/proc/{0}/task/{0}/children", outer.id());
        let inner = fs::read_to_string(children).unwrap().trim().parse().unwrap();
        Self { outer, inner }
    }

    /// Makes the namespaces of a machine with a name, where `opt` and `cni` of a directory are `/opt` and
    /// `/etc/cni`. As with systemd, its containers see later mounts in `/run`.
    pub(crate) fn machine(name: &str, root: &Path, cgroup: &Cgroup) -> Self {
        let (root, cgroup) = (root.display(), cgroup.path().display());
        let setup = [
            format!("hostname {name}"),
            "ip link set lo up".to_owned(),
            format!("mount --bind {cgroup} /sys/fs/cgroup"),
            format!("mount --bind {root}/opt /opt"),
            format!("mount --bind {root}/cni /etc/cni"),
            "mount -t tmpfs run /run".to_owned(),
            "mount -t tmpfs lib /var/lib".to_owned(),
            "mount --make-rshared /run".to_owned(),
        ];
        Self::start(&["--net", "--mount", "--uts", "--pid", "--mount-proc"], &setup.join(" && "))
    }

    /// The process inside, as this machine numbers it.
    pub(crate) fn inner(&self) -> u32 {
        self.inner
    }

    /// A command in some of its namespaces.
    pub(crate) fn inside(&self, which: &[&str]) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["-t", &self.inner.to_string()]).args(which).arg("--");
        command
    }
}

impl Drop for Held {
    /// Ends all processes of a process namespace, and waits for their end.
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_raw(self.inner.cast_signed()).unwrap(), Signal::KILL);
        let _ = self.outer.wait();
    }
}
