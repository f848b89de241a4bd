//! Namespaces with the network managers of Debian in `/usr`, and with two Ethernet interfaces.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use ipam_api::render::{Format, RenderedFile, render};
use ipam_api::resource::Interface;
use tempfile::TempDir;

use crate::support::held::Held;
use crate::support::{programs, until};

const PATH: &str = "/usr/sbin:/usr/bin:/sbin:/bin";

/// MAC address of `eth0`, which the case `mac` names.
const MAC: &str = "02:00:00:00:00:05";

/// The cases that the golden files have too.
pub(super) fn cases() -> BTreeMap<String, Vec<Interface>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../api/testdata/render/cases.json");
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// Folder of cargo's output, and of the tools.
pub(super) fn target() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
}

/// Folder of the unpacked packages.
fn tools() -> PathBuf {
    let tools = target().join("tools/hosts");
    assert!(
        tools.join("unpacked.txt").exists(),
        "{} has no network managers; first: cargo xtask test --only packages",
        tools.display()
    );
    tools
}

/// The namespaces. What is written in `/etc`, `/run` and `/var/lib` ends with them.
pub(super) struct Room {
    held: Held,
    _dir: TempDir,
}

impl Room {
    pub(super) fn make() -> Self {
        let (tools, dir) = (tools(), TempDir::new().unwrap());
        let (tools, own) = (tools.display(), dir.path().display());
        let setup = [
            format!("mount -t tmpfs own {own} && mkdir {own}/etc {own}/work"),
            format!("mount -t overlay tools -o lowerdir={tools}/usr:/usr /usr"),
            format!(
                "mount -t overlay tools -o lowerdir={tools}/etc:/etc \
                 -o upperdir={own}/etc,workdir={own}/work /etc"
            ),
            "mount -t tmpfs run /run && mount -t tmpfs lib /var/lib".to_owned(),
            // Read-only as in a container, so that daemons don't wait for udev.
            "mount -t sysfs -o ro sysfs /sys".to_owned(),
            "rm -rf /etc/network /etc/netplan /etc/systemd/network /etc/NetworkManager".to_owned(),
            "mkdir -p /run/network /run/dbus /var/lib/NetworkManager".to_owned(),
            // Without hooks of other packages.
            "for hook in pre-up up down post-down; do mkdir -p /etc/network/if-$hook.d; done".to_owned(),
            "ldconfig".to_owned(),
            // Users that the scripts of packages would have made.
            "for user in messagebus systemd-network; do id $user > /run/id 2>&1 || useradd -r $user; done"
                .to_owned(),
            "ip link set lo up".to_owned(),
            format!("ip link add eth0 address {MAC} mtu 9000 type veth peer name p0 mtu 9000"),
            "ip link add eth1 type veth peer name p1".to_owned(),
            "ip link set eth0 mtu 1500 && ip link set p0 up && ip link set p1 up".to_owned(),
        ];
        let kinds = ["--net", "--mount", "--uts", "--pid", "--mount-proc"];
        Self { held: Held::start(&kinds, &setup.join(" && ")), _dir: dir }
    }

    /// Path of a file inside, as this machine names it.
    pub(super) fn path(&self, inside: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root{inside}", self.held.inner()))
    }

    /// Writes a file with its mode and its folders.
    pub(super) fn write(&self, file: &RenderedFile) {
        let path = self.path(&file.path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, &file.content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(file.mode)).unwrap();
    }

    /// Renders a case and writes its files.
    pub(super) fn furnish(&self, format: Format, interfaces: &[Interface]) -> Vec<RenderedFile> {
        let files = render(format, interfaces).unwrap();
        files.iter().for_each(|file| self.write(file));
        files
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = self.held.inside(&["-m", "-n", "-u", "-p"]);
        command.args(words).env_clear().env("PATH", PATH).env("LC_ALL", "C.UTF-8").stdin(Stdio::null());
        command
    }

    /// Runs a command, in any way that it ends.
    pub(super) fn output(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }

    /// Runs a command, which must succeed; returns its output.
    #[track_caller]
    pub(super) fn run(&self, words: &[&str]) -> String {
        let output = self.output(words);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words:?}: {}\n{error}", output.status);
        String::from_utf8(output.stdout).unwrap()
    }

    /// Starts a daemon, which ends with the namespaces; its output goes to `/run/log`.
    pub(super) fn start(&self, words: &[&str]) -> Child {
        let log = fs::File::create(self.path("/run/log")).unwrap();
        self.command(words).stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap()
    }

    /// Output of the daemon so far.
    pub(super) fn log(&self) -> String {
        fs::read_to_string(self.path("/run/log")).unwrap()
    }

    /// Runs an agent that has to configure `eth0`, and waits until it refuses that for a manager.
    pub(super) async fn agent_refuses(&self, manager: &str) {
        let config = "servers = [\"http://127.0.0.1:9\"]\nnode = \"h1\"\nstate_dir = \"/run/agent\"\n\
                      socket = \"/run/agent/socket\"\n[host]\nmachine_id_file = \"/run/machine-id\"\n\
                      [[interface]]\nname = \"eth0\"\nipv4_pools = [\"lan\"]\n";
        fs::create_dir_all(self.path("/run/agent")).unwrap();
        fs::write(self.path("/run/agent.toml"), config).unwrap();
        fs::write(self.path("/run/machine-id"), "00000000000000000000000000000013\n").unwrap();
        let program = programs::ipam_agent();
        let words = [program.to_str().unwrap(), "serve", "--config", "/run/agent.toml"];
        drop(self.start(&words));
        until(&format!("the agent refuses an interface of {manager}"), async || {
            let status = fs::read_to_string(self.path("/run/agent/host-status.json")).unwrap_or_default();
            let is_refused = status.contains(&format!("eth0 is managed by {manager}"));
            if is_refused { Ok(()) } else { Err(format!("{status}\n{}", self.log())) }
        })
        .await;
    }

    /// True if the kernel has VLAN devices.
    pub(super) fn has_vlans(&self) -> bool {
        let made =
            self.output(&["ip", "link", "add", "link", "p1", "name", "p1.9", "type", "vlan", "id", "9"]);
        if made.status.success() {
            self.run(&["ip", "link", "delete", "p1.9"]);
        }
        made.status.success()
    }
}
