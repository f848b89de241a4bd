//! Three nodes on one segment, with the API server.

use std::collections::BTreeMap;
use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tempfile::TempDir;
use test_apiserver::ApiServer;

use crate::namespace::wire::inside;
use crate::support::cgroup::Cgroup;
use crate::support::held::Held;
use crate::support::image;
use crate::support::tls::Ca;

const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Address of the API server, on the switch.
pub(crate) const API: (IpAddr, u16) = (IpAddr::V4(Ipv4Addr::new(10, 78, 0, 254)), 6443);

/// Token of an administrator.
const OPERATOR: &str = "operator";

/// Files of a volume, by name.
pub(crate) type Files = BTreeMap<String, Vec<u8>>;

/// Nodes, with what a cluster has of its own. The fields are dropped in this order.
pub(crate) struct Lab {
    pub(crate) nodes: Vec<Node>,
    pub(crate) api: ApiServer,
    pub(crate) ca: Ca,
    switch: Held,
    dir: TempDir,
    started: AtomicU32,
}

/// A host with its own network, mounts and processes.
pub(crate) struct Node {
    held: Held,
    _cgroup: Cgroup,
    pub(crate) dir: TempDir,
    pub(crate) name: String,
    pub(crate) address: IpAddr,
}

impl Lab {
    /// Makes the nodes and serves the API.
    pub(crate) fn make() -> Self {
        let dir = TempDir::new().unwrap();
        unpack(&image::archive(dir.path()), dir.path());
        let up = format!(
            "ip link set lo up && ip link add br0 type bridge && ip link set br0 up && \
             ip address add {}/24 dev br0",
            API.0
        );
        let switch = Held::start(&["--net"], &up);
        let nodes: Vec<Node> = (1..=3).map(|number| Node::make(number, &switch)).collect();
        let netns = Path::new("/proc").join(switch.inner().to_string()).join("ns/net");
        let ca = Ca::new(dir.path().join("ca"));
        let tls = ca.server(&API.0.to_string());
        let api = inside(&netns, || ApiServer::start_at(API.into(), Some(tls)));
        api.set_tokens(&[OPERATOR]);
        for node in &nodes {
            let ready = json!({"conditions": [{"type": "Ready", "status": "True"}]});
            api.put("/api/v1/nodes", json!({"metadata": {"name": node.name}, "status": ready}));
        }
        let config = json!({
            "clusters": [{"name": "lab", "cluster": {
                "server": api.url(), "certificate-authority": ca.certificate(),
            }}],
            "users": [{"name": "operator", "user": {"token": OPERATOR}}],
            "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": "operator"}}],
            "current-context": "lab",
        });
        fs::write(dir.path().join("kubeconfig"), config.to_string()).unwrap();
        let lab = Self { nodes, api, ca, switch, dir, started: AtomicU32::new(0) };
        lab.name_members(true);
        fs::write(lab.resolv_conf(), "nameserver 127.0.0.1\n").unwrap();
        lab
    }

    /// Files of a ConfigMap or a Secret, if it exists.
    pub(crate) fn files(&self, namespace: &str, kind: &str, name: &str) -> Option<Files> {
        let object = self.api.get(&format!("/api/v1/namespaces/{namespace}/{kind}/{name}"))?;
        let content = |value: &Value| {
            let text = value.as_str().unwrap();
            if kind == "secrets" { STANDARD.decode(text).unwrap() } else { text.into() }
        };
        let data = object["data"].as_object().into_iter().flatten();
        Some(data.map(|(key, value)| (key.clone(), content(value))).collect())
    }

    /// Shell command of an operator at the root of the checkout, with Debian's kubectl.
    pub(crate) fn shell(&self, command: &str) -> Command {
        let kubectl = ipam_manifests::kubectl();
        assert!(
            kubectl.exists(),
            "{} is missing; first: cargo xtask test --only packages",
            kubectl.display()
        );
        let mut shell = self.switch.inside(&["-n"]);
        shell.args(["sh", "-ec", command]).current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."));
        shell.env_clear().env("PATH", format!("{}:{PATH}", kubectl.parent().unwrap().display()));
        shell.env("HOME", self.dir.path()).env("KUBECONFIG", self.dir.path().join("kubeconfig"));
        shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        shell
    }

    /// Lets the names of members lead to their nodes, or lead nowhere, as without the pods of the name
    /// service.
    pub(crate) fn name_members(&self, is_known: bool) {
        let mut hosts = String::from("127.0.0.1 localhost\n");
        for (number, node) in self.nodes.iter().enumerate().filter(|_| is_known) {
            hosts.push_str(&format!("{} ipamd-{number}.ipamd.ipamd-system.svc\n", node.address));
        }
        // Containers have the file itself mounted.
        fs::write(self.hosts(), hosts).unwrap();
    }

    pub(crate) fn hosts(&self) -> PathBuf {
        self.dir.path().join("hosts")
    }

    pub(crate) fn resolv_conf(&self) -> PathBuf {
        self.dir.path().join("resolv.conf")
    }

    /// Root directory of the image.
    pub(crate) fn rootfs(&self) -> PathBuf {
        self.dir.path().join("rootfs")
    }

    /// Number for the next container.
    pub(crate) fn number(&self) -> u32 {
        self.started.fetch_add(1, Ordering::Relaxed)
    }
}

impl Node {
    fn make(number: u8, switch: &Held) -> Self {
        let (dir, cgroup) = (TempDir::new().unwrap(), Cgroup::make());
        let name = format!("w{number}");
        for own in ["opt", "cni"] {
            fs::create_dir(dir.path().join(own)).unwrap();
        }
        let held = Held::machine(&name, dir.path(), &cgroup);
        let address = IpAddr::V4(Ipv4Addr::new(10, 78, 0, number));
        let port = format!("port{number}");
        let cable = format!(
            "ip link add {port} type veth peer name eth0 netns {} && ip link set {port} master br0 up",
            held.inner()
        );
        let connected = switch.inside(&["-n"]).args(["sh", "-ec", &cable]).output().unwrap();
        assert!(connected.status.success(), "{connected:?}");
        let node = Self { held, _cgroup: cgroup, dir, name, address };
        node.run(&format!("ip address add {address}/24 dev eth0 && ip link set eth0 up"));
        node
    }

    /// A command on the node.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = self.held.inside(&["-m", "-n", "-u", "-p"]);
        command.args(words).env_clear().env("PATH", PATH).stdin(Stdio::null());
        command
    }

    /// Runs a script on the node, which must succeed; returns its output.
    #[track_caller]
    pub(crate) fn run(&self, script: &str) -> String {
        let output = self.command(&["sh", "-ec", script]).output().unwrap();
        assert!(output.status.success(), "{}# {script}: {output:?}", self.name);
        String::from_utf8(output.stdout).unwrap()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        for entry in fs::read_dir(self.dir.path()).unwrap().map(Result::unwrap) {
            if entry.path().extension().is_some_and(|extension| extension == "log") {
                let text = fs::read_to_string(entry.path()).unwrap();
                let lines: Vec<&str> = text.lines().collect();
                println!("--- {} {}", self.name, entry.file_name().display());
                println!("{}", lines[lines.len().saturating_sub(20)..].join("\n"));
            }
        }
    }
}

/// Unpacks the only layer of an archive into the folder `rootfs`.
fn unpack(archive: &Path, folder: &Path) {
    let tar = |archive: &Path, folder: &Path| {
        fs::create_dir_all(folder).unwrap();
        let status = Command::new("tar").arg("-xf").arg(archive).arg("-C").arg(folder).status().unwrap();
        assert!(status.success());
    };
    let layout = folder.join("layout");
    tar(archive, &layout);
    let read = |path: &Path| -> Value { serde_json::from_slice(&fs::read(path).unwrap()).unwrap() };
    let blob = |digest: &Value| layout.join("blobs").join(digest.as_str().unwrap().replace(':', "/"));
    let manifest = read(&blob(&read(&layout.join("index.json"))["manifests"][0]["digest"]));
    tar(&blob(&manifest["layers"][0]["digest"]), &folder.join("rootfs"));
    fs::remove_dir_all(layout).unwrap();
    fs::remove_file(archive).unwrap();
}
