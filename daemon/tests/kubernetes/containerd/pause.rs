//! Image of the process that holds a sandbox's namespaces: one static program, built for the test.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::json;

/// Name of the image.
pub(super) const IMAGE: &str = "localhost/pause:1";
const SOURCE: &str = "fn main() { loop { std::thread::park() } }";

/// Writes the image as an archive that `ctr images import` reads.
pub(super) fn write_image(archive: &Path) {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::write(at("pause.rs"), SOURCE).unwrap();
    let mut rustc = Command::new("rustc");
    rustc.args(["-C", "target-feature=+crt-static", "-C", "opt-level=s", "-C", "panic=abort"]);
    run(rustc.args(["-C", "strip=symbols", "-o"]).arg(at("pause")).arg(at("pause.rs")));
    tar(dir.path(), &at("layer.tar"), &["pause"]);
    let layer = run(Command::new("sha256sum").arg(at("layer.tar")));
    let layer = format!("sha256:{}", layer.split(' ').next().unwrap());
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    let config = json!({
        "architecture": architecture, "os": "linux",
        "config": {"Entrypoint": ["/pause"]},
        "rootfs": {"type": "layers", "diff_ids": [layer]},
    });
    fs::write(at("config.json"), config.to_string()).unwrap();
    let manifest = json!([{"Config": "config.json", "RepoTags": [IMAGE], "Layers": ["layer.tar"]}]);
    fs::write(at("manifest.json"), manifest.to_string()).unwrap();
    tar(dir.path(), archive, &["manifest.json", "config.json", "layer.tar"]);
}

fn tar(dir: &Path, archive: &Path, names: &[&str]) {
    run(Command::new("tar").arg("-C").arg(dir).arg("-cf").arg(archive).args(names));
}

#[track_caller]
fn run(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}
