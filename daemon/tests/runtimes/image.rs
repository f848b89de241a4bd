//! The container image in containerd: imported, and run with no more rights than the manifests give
//! (acceptance of packages, line 7).

use std::process::Output;

use serde_json::{Value, json};

use super::containerd::start;
use super::node::Node;
use crate::support::image::{IMAGE, archive};
use crate::support::programs;

/// Snapshotter for a file system in memory.
const SNAPSHOTS: [&str; 2] = ["--snapshotter", "native"];
/// Limit of the image with the programs that ship.
const BYTES_MAX: u64 = 40 << 20;
/// Mount of the root directory of the image.
const ROOT: &str = "/opt/image";

/// The image in a containerd.
struct Imported {
    node: Node,
    /// Configuration that containerd makes for a container of the image.
    spec: Value,
}

impl Imported {
    /// Runs a program of the image with a read-only root and without capabilities. All else is as containerd
    /// configures it.
    fn run(&self, name: &str, args: &[&str]) -> Output {
        let mut spec = self.spec.clone();
        spec["process"]["args"] = json!(args);
        spec["process"]["capabilities"] = json!({});
        spec["root"] = json!({"path": ROOT, "readonly": true});
        // The control groups of the tests have no controllers.
        spec["linux"].as_object_mut().unwrap().remove("resources");
        spec["mounts"].as_array_mut().unwrap().retain(|mount| mount["type"] != "cgroup");
        spec["linux"]["cgroupsPath"] = format!("/default/{name}").into();
        std::fs::write(self.node.opt().join(format!("{name}.json")), spec.to_string()).unwrap();
        self.node.output(&["ctr", "run", "--rm", "--config", &format!("/opt/{name}.json"), name])
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p5_7_containerd_runs_the_image_as_its_user_with_a_read_only_root() {
    let node = Node::make().await;
    let bytes = std::fs::metadata(archive(&node.opt())).unwrap().len();
    println!("{bytes} bytes");
    assert!(programs::shipped().is_none() || bytes < BYTES_MAX, "{bytes} bytes");
    let mut daemon = start(&node).await;
    node.run(&[&["ctr", "images", "import"], &SNAPSHOTS[..], &["/opt/ipamd.oci.tar"]].concat());
    assert_eq!(node.run(&["ctr", "images", "ls", "--quiet"]), IMAGE);
    node.run(&[&["ctr", "containers", "create"], &SNAPSHOTS[..], &[IMAGE, "kept"]].concat());
    let info: Value = serde_json::from_str(&node.run(&["ctr", "containers", "info", "kept"])).unwrap();
    assert_eq!(info["Spec"]["process"]["user"]["uid"], 65532, "{info}");
    assert_eq!(info["Spec"]["process"]["args"], json!(["/ipamd", "serve"]), "{info}");
    assert_eq!(info["Labels"]["org.opencontainers.image.licenses"], "Apache-2.0", "{info}");
    node.run(&["mkdir", ROOT]);
    node.run(&[&["ctr", "images", "mount", "--rw"], &SNAPSHOTS[..], &[IMAGE, ROOT]].concat());
    let image = Imported { node, spec: info["Spec"].clone() };
    for program in ["ipamd", "ipamctl", "ipam-agent", "ipam-cni"] {
        let printed = image.run(program, &[&format!("/{program}"), "--version"]);
        assert!(String::from_utf8_lossy(&printed.stdout).contains(env!("CARGO_PKG_VERSION")), "{printed:?}");
    }
    // The name of the plugin of kubectl is a link.
    let help = image.run("kubectl", &["/kubectl-ipam", "--help"]);
    assert!(String::from_utf8_lossy(&help.stdout).contains("Usage: kubectl ipam"), "{help:?}");
    assert!(!image.run("shell", &["/bin/sh", "-c", "true"]).status.success());
    let refused = image.run("refused", &["/ipamctl", "cluster", "ca", "init", "/new"]);
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && text.contains("Read-only file system"), "{refused:?}");
    image.node.kill(&["containerd"]).await;
    daemon.wait().unwrap();
}
