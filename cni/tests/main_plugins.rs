//! The plugin under real main plugins (`bridge`, `ptp`, `macvlan`), which accept its output.
//!
//! Needs root, `ip`, `nsenter`, `unshare` and the plugins of containernetworking-plugins. Where they are
//! missing it fails and says so: a test that passes without having run is worth less than none.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::support::plugin::Outcome;
use crate::support::server::{Server, ServerBehavior};
use serde_json::{Value, json};

const FOLDERS: [&str; 2] = ["/usr/lib/cni", "/opt/cni/bin"];

/// A network namespace, kept by a process that ends with the test.
struct Namespace {
    keeper: Child,
}

impl Namespace {
    /// A new one with a loopback, or nothing where that isn't allowed.
    fn new() -> Option<Self> {
        let mut command = Command::new("unshare");
        command.args(["--net", "cat"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut keeper = command.spawn().ok()?;
        // The echoed line has passed through the namespace's process: it exists now.
        let mut byte = [0];
        keeper.stdin.as_mut()?.write_all(b".").ok()?;
        keeper.stdout.as_mut()?.read_exact(&mut byte).ok()?;
        let namespace = Self { keeper };
        namespace.run(&["ip", "link", "set", "lo", "up"]);
        Some(namespace)
    }

    fn path(&self) -> String {
        format!("/proc/{}/ns/net", self.keeper.id())
    }

    fn enter(&self, words: &[&str]) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net={}", self.path())).args(words);
        command
    }

    #[track_caller]
    fn run(&self, words: &[&str]) -> String {
        let output = self.enter(words).output().unwrap();
        assert!(output.status.success(), "{words:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}

/// A host and a container, and what runs between them.
struct Stage {
    plugins: PathBuf,
    host: Namespace,
    container: Namespace,
}

impl Stage {
    fn new() -> Self {
        let plugins = FOLDERS.iter().map(Path::new).find(|folder| folder.join("bridge").exists());
        let spaces = Namespace::new().zip(Namespace::new());
        let Some((plugins, (host, container))) = plugins.zip(spaces) else {
            panic!(
                "no CNI plugins in {FOLDERS:?} (apt-get install containernetworking-plugins), or no right to \
                 make network namespaces (run as root)"
            );
        };
        // One end of a cable stands in for a network card.
        host.run(&["ip", "link", "add", "uplink", "type", "veth", "peer", "name", "switch"]);
        host.run(&["ip", "link", "set", "uplink", "up"]);
        host.run(&["ip", "link", "set", "switch", "up"]);
        Self { plugins: plugins.to_owned(), host, container }
    }

    fn run(&self, command: &str, conf: &Value) -> Outcome {
        let kind = conf.get("type").and_then(Value::as_str).unwrap();
        let ours = Path::new(env!("CARGO_BIN_EXE_ipam-cni")).parent().unwrap();
        let mut child = self
            .host
            .enter(&[self.plugins.join(kind).to_str().unwrap()])
            .env("CNI_COMMAND", command)
            .env("CNI_CONTAINERID", "c1")
            .env("CNI_IFNAME", "eth0")
            .env("CNI_NETNS", self.container.path())
            .env("CNI_PATH", format!("{}:{}", ours.display(), self.plugins.display()))
            .env("CNI_ARGS", "IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=web-0;K8S_POD_UID=u")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(conf.to_string().as_bytes()).unwrap();
        child.wait_with_output().unwrap().into()
    }
}

#[test]
fn main_plugins_configure_what_the_plugin_prints() {
    let stage = Stage::new();
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("agent.sock");
    // Over the agent's socket: a namespace has no way to the server's port.
    let agent = Server::on_socket(ServerBehavior::Proper, &socket);
    let ipam = json!({
        "type": "ipam-cni", "socket": socket.to_str().unwrap(), "ipv4_pools": "p4", "ipv6_pools": "p6"
    });
    for (kind, version) in [
        ("bridge", "0.2.0"),
        ("bridge", "0.4.0"),
        ("bridge", "1.0.0"),
        ("ptp", "0.3.1"),
        ("macvlan", "0.1.0"),
        ("macvlan", "0.3.0"),
        ("macvlan", "1.0.0"),
    ] {
        let mut conf = json!({
            "cniVersion": version, "name": "lan", "type": kind, "ipam": ipam,
            "bridge": "br0", "isDefaultGateway": true,
        });
        if kind == "macvlan" {
            conf.as_object_mut().unwrap().insert("master".to_owned(), json!("uplink"));
        }
        let what = format!("{kind} {version}");
        let given = stage.run("ADD", &conf);
        assert_eq!(given.code, Some(0), "{what}: {given:?}");
        let addresses = stage.container.run(&["ip", "-oneline", "address", "show", "dev", "eth0"]);
        assert!(addresses.contains("10.1.2.2/29"), "{what}: {addresses}");
        assert!(addresses.contains("2001:db8:1::2/64"), "{what}: {addresses}");
        let routes = stage.container.run(&["ip", "route"]);
        assert!(routes.contains("default via 10.1.2.1 dev eth0"), "{what}: {routes}");
        assert!(routes.contains("10.9.0.0/16 via 10.1.2.1"), "{what}: {routes}");
        let routes = stage.container.run(&["ip", "-6", "route"]);
        assert!(routes.contains("default via 2001:db8:1::1"), "{what}: {routes}");
        assert_eq!(agent.model().endpoints(), ["pod/shop/web-0"], "{what}");
        // The interface of ptp doesn't exist yet when it asks for addresses.
        if kind != "ptp" {
            let announces = stage.container.run(&["cat", "/proc/sys/net/ipv6/conf/eth0/ndisc_notify"]);
            assert_eq!(announces.trim(), "1", "{what}");
        }

        if version >= "0.4.0" {
            let mut check = conf.clone();
            check.as_object_mut().unwrap().insert("prevResult".to_owned(), given.result());
            stage.run("CHECK", &check).succeeds_in_silence();
        }
        stage.run("DEL", &conf).succeeds_in_silence();
        assert!(agent.model().addresses().is_empty(), "{what}");
        stage.run("DEL", &conf).succeeds_in_silence();
    }
}
