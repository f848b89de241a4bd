//! RPM packages: files, owners and scripts of the Debian packages (acceptance, line 13). A daily run leaves
//! these tests out (`.config/nextest.toml`).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::{package, prepared, root, run, text};

const NAMES: [&str; 2] = ["ipamd", "ipam-agent"];

/// All artifacts of a version with RPM packages.
fn built(version: &str) -> TempDir {
    let output = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_ipam-release"));
    command.arg("--root").arg(root()).arg("--binaries").arg(prepared("IPAMD_STRIPPED"));
    command.args(["--rpm", "--compression", "gzip", "--release", version]);
    command.args(["--time", &prepared("IPAMD_TIME").display().to_string()]);
    run(command.arg("--output").arg(output.path()));
    output
}

fn rpm_of(name: &str, version: &str, folder: &Path) -> PathBuf {
    folder.join(format!("{name}-{version}-1.{}.rpm", std::env::consts::ARCH))
}

/// Mode, owner and path of each file and link, and the target of a link.
fn files_of_deb(name: &str) -> BTreeSet<String> {
    let listed = run(Command::new("dpkg-deb").arg("--contents").arg(package(name)));
    let fields = listed.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let files = fields.filter(|fields| !fields[0].starts_with('d'));
    // Mode, owner, size, date, time, path.
    files.map(|fields| format!("{} {} {}", fields[0], fields[1], fields[5..].join(" "))).collect()
}

/// Mode, owner and path of each file and link of an RPM package, and the target of a link.
fn files_of_rpm(rpm: &Path) -> BTreeSet<String> {
    let format = "[%{FILEMODES:perms} %{FILEUSERNAME}/%{FILEGROUPNAME} .%{FILENAMES} -> %{FILELINKTOS}\\n]";
    let listed = run(Command::new("rpm").args(["--query", "--queryformat", format, "--package"]).arg(rpm));
    let files = listed.lines().filter(|line| !line.starts_with('d'));
    files.map(|line| line.trim_end_matches(" -> ").to_owned()).collect()
}

#[test]
fn p5_13_rpm_packages_have_the_files_owners_and_scripts_of_the_debian_packages() {
    let version = env!("CARGO_PKG_VERSION");
    let artifacts = built(version);
    for name in NAMES {
        let rpm = rpm_of(name, version, artifacts.path());
        assert_eq!(files_of_rpm(&rpm), files_of_deb(name));
        let scripts = run(Command::new("rpm").args(["--query", "--scripts", "--package"]).arg(&rpm));
        let control = tempfile::tempdir().unwrap();
        run(Command::new("dpkg-deb").arg("--control").arg(package(name)).arg(control.path()));
        for script in ["preinst", "postinst", "prerm", "postrm"] {
            let content = std::fs::read_to_string(control.path().join(script)).unwrap();
            assert!(scripts.contains(content.trim_end()), "{name}: {script} is not in {scripts}");
        }
    }
}

/// Changes of packages on this machine below an overlay: `$1` has the older packages, `$2` the newer ones.
const CHANGES: &str = r#"
    work=$(mktemp -d)
    mount -t tmpfs tmpfs "$work" && mkdir "$work/upper" "$work/work" "$work/root"
    mount -t overlay overlay -o "lowerdir=/,upperdir=$work/upper,workdir=$work/work" "$work/root"
    mount -t proc proc "$work/root/proc"
    mkdir "$work/root/packages" && cp "$1"/*.rpm "$2"/*.rpm "$work/root/packages"
    exec chroot "$work/root" bash -euxo pipefail -c '
        # No package of Debian satisfies a dependency of RPM.
        change() { rpm --nodeps "$@"; }
        cd /packages
        change --install ipamd-0.0.9-*.rpm ipam-agent-0.0.9-*.rpm
        ipamd --version && /usr/lib/cni/ipam-cni --version
        test "$(stat -c %U:%G:%a /etc/ipamd/tls)" = root:ipamd:750
        test "$(stat -c %U:%a /var/backups/ipamd)" = ipamd:700
        test -L /etc/systemd/system/multi-user.target.wants/ipamd.service
        echo "log = \"info\"" > /etc/ipamd/ipamd.toml
        change --upgrade ipamd-0.1.0-*.rpm ipam-agent-0.1.0-*.rpm
        test "$(rpm --query --queryformat "%{VERSION}" ipamd)" = 0.1.0
        ! change --upgrade --oldpackage ipamd-0.0.9-*.rpm
        test "$(rpm --query --queryformat "%{VERSION}" ipamd)" = 0.1.0
        IPAMD_ALLOW_DOWNGRADE=yes change --upgrade --oldpackage ipamd-0.0.9-*.rpm
        grep -q info /etc/ipamd/ipamd.toml
        change --erase ipamd ipam-agent
        test ! -e /usr/bin/ipamd -a ! -e /usr/lib/ipamd -a ! -e /usr/share/doc/ipam-agent
        test ! -L /usr/lib/cni/ipam-cni -a ! -L /etc/systemd/system/multi-user.target.wants/ipamd.service
        test -e /etc/ipamd/ipamd.toml'
"#;

#[test]
fn p5_13_rpm_packages_are_installed_upgraded_and_removed() {
    let (older, newer) = (built("0.0.9"), built("0.1.0"));
    let mut command = Command::new("unshare");
    command.args(["--mount", "--net", "--pid", "--fork", "--kill-child", "bash", "-euo", "pipefail", "-c"]);
    let output = command.args([CHANGES, "bash"]).args([older.path(), newer.path()]).output().unwrap();
    let said = text(&output);
    assert!(output.status.success(), "{said}");
    for sentence in
        ["Write /etc/ipamd/ipamd.toml", "Write /etc/ipamd/agent.toml", "this downgrade is refused"]
    {
        assert!(said.contains(sentence), "{said}");
    }
}
