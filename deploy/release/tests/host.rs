//! Host of a test: Debian's base system below an overlay of its own, in namespaces of its own.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

use crate::{package, package_in, prepared, text};

/// Host whose changes end with the test. Each script has namespaces of its own.
pub(crate) struct Host {
    base: PathBuf,
    dir: TempDir,
}

impl Host {
    /// A host with the base system, and all artifacts in `/packages`.
    pub(crate) fn new() -> Self {
        Self::on(prepared("IPAMD_BASE"))
    }

    /// The same with another base system.
    pub(crate) fn on(base: PathBuf) -> Self {
        let dir = TempDir::new().unwrap();
        for folder in ["upper", "work", "root"] {
            std::fs::create_dir(dir.path().join(folder)).unwrap();
        }
        let host = Self { base, dir };
        std::fs::create_dir(host.path("packages")).unwrap();
        for name in ["ipamd", "ipam-agent"] {
            let file = package(name);
            std::fs::copy(&file, host.path("packages").join(format!("{name}.deb"))).unwrap();
        }
        host
    }

    /// A file of the host's own, for writing before a script.
    pub(crate) fn path(&self, inside: &str) -> PathBuf {
        self.dir.path().join("upper").join(inside)
    }

    /// Writes a file with its folders.
    pub(crate) fn write(&self, inside: &str, content: &str) {
        let path = self.path(inside);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    /// Mount point of the host's root.
    pub(crate) fn root(&self) -> PathBuf {
        self.dir.path().join("root")
    }

    /// Options that mount the host's root.
    pub(crate) fn overlay(&self) -> String {
        let at = |name: &str| self.dir.path().join(name);
        format!(
            "lowerdir={},upperdir={},workdir={}",
            self.base.display(),
            at("upper").display(),
            at("work").display()
        )
    }

    /// Runs a script as root of the host, without a network.
    pub(crate) fn run(&self, script: &str) -> Output {
        let mount = "mount -t overlay overlay -o \"$1\" \"$2\" && mount -t proc proc \"$2/proc\" &&
            exec chroot \"$2\" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
            DEBIAN_FRONTEND=noninteractive bash -euo pipefail -c \"$3\"";
        let mut command = Command::new("unshare");
        command.args(["--mount", "--net", "--uts", "--ipc", "--pid", "--fork", "--kill-child"]);
        command.args(["bash", "-euc", mount, "bash", &self.overlay()]).arg(self.root()).arg(script);
        command.output().unwrap()
    }

    /// Writes the host's root to the image of a disk.
    pub(crate) fn write_disk(&self, image: &Path) {
        let write = "mount -t overlay overlay -o \"$1\" \"$2\" && exec mke2fs -q -t ext4 -d \"$2\" \"$3\" 2G";
        let mut command = Command::new("unshare");
        command.args(["--mount", "bash", "-euc", write, "bash", &self.overlay()]).arg(self.root()).arg(image);
        crate::run(&mut command);
    }

    /// Runs a script that must succeed; returns its output.
    pub(crate) fn does(&self, script: &str) -> String {
        let output = self.run(script);
        assert!(output.status.success(), "{script}: {}", text(&output));
        text(&output)
    }

    /// Runs a script that must fail; returns its output.
    pub(crate) fn refuses(&self, script: &str) -> String {
        let output = self.run(script);
        assert!(!output.status.success(), "{script}: {}", text(&output));
        text(&output)
    }

    /// All paths of the host, without what dpkg and the tests keep.
    pub(crate) fn files(&self) -> String {
        self.does(
            "find / -xdev \\( -path /proc -o -path /packages -o -path /var/lib/dpkg -o -path /var/log \
             -o -path /var/cache -o -path /tmp -o -path /run/adduser -o -path /etc/passwd- \
             -o -path /etc/group- -o -path /etc/shadow- -o -path /etc/gshadow- \\) \
             -prune -o -print | sort",
        )
    }

    /// Builds a package of another version; returns its path on the host. An older package has the content of
    /// the earlier release, if the stage has one.
    pub(crate) fn with_version(&self, name: &str, version: &str) -> String {
        let tree = self.dir.path().join(format!("{name}-{version}"));
        let run = |command: &mut Command| crate::run(command);
        let previous = std::env::var_os("IPAMD_PREVIOUS").map(PathBuf::from);
        let content = match previous.filter(|_| version < env!("CARGO_PKG_VERSION")) {
            Some(folder) => package_in(&folder, name),
            None => package(name),
        };
        let own = run(Command::new("dpkg-deb").arg("--field").arg(&content).arg("Version"));
        run(Command::new("dpkg-deb").arg("--raw-extract").arg(&content).arg(&tree));
        for file in ["control", "preinst"] {
            replace(&tree.join("DEBIAN").join(file), own.trim(), version);
        }
        let file = format!("packages/{name}-{version}.deb");
        run(Command::new("dpkg-deb").args(["-Znone", "--build"]).arg(&tree).arg(self.path(&file)));
        format!("/{file}")
    }
}

fn replace(path: &Path, from: &str, to: &str) {
    let text = std::fs::read_to_string(path).unwrap();
    assert!(text.contains(from), "{}", path.display());
    std::fs::write(path, text.replace(from, to)).unwrap();
}
