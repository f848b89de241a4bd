//! Packages and tarball on a host of Debian: installation to purge (lines 3, 9 and 14 of the acceptance).

use std::collections::BTreeSet;
use std::path::Path;

use ipam_agent::journal::{Entry, JournalFile, Key, Phase, Record};
use ipam_api::name::{InterfaceName, ObjectName};

use crate::host::Host;

const INSTALL: &str = "dpkg --install /packages/ipamd.deb /packages/ipam-agent.deb";
/// Checks of installed packages.
const INSTALLED: &str = "
    ipamd --version
    ipamctl --version
    ipam-agent --version
    for folder in /usr/lib/cni /opt/cni/bin; do
      test \"$(readlink $folder/ipam-cni)\" = /usr/lib/ipam-agent/ipam-cni
      CNI_COMMAND=VERSION $folder/ipam-cni | grep supportedVersions
    done
    rules=/usr/share/doc/ipamd/examples/monitoring/alerts.yaml
    grep --quiet 'runbook_url: /usr/share/doc/ipamd/docs/deploy/docs/alerts/' $rules
    for page in $(sed -n 's/.*runbook_url: //p' $rules); do
      test -s $page
    done
    for name in ipamd ipam-agent; do
      test -s /usr/share/doc/$name/examples/$name.example.toml
    done
    test \"$(stat -c %U:%a /etc/ipamd/tls)\" = root:750
    test \"$(stat -c %U:%a /var/backups/ipamd)\" = ipamd:700
    getent passwd ipamd";
/// Files of a member that ran on the host, with the timer of backups.
const MEMBER: &str = "
    systemctl enable ipamd-backup.timer
    mkdir -p /run/ipamd/server
    touch /var/lib/systemd/timers/stamp-ipamd-backup.timer /etc/default/ipamd-backup
    touch /etc/ipamd/ipamd.toml /etc/ipamd/tls/ca.crt /etc/ipamd/tls/member.key
    chgrp ipamd /etc/ipamd/tls/member.key";
/// Files of an agent that ran on the host.
const AGENT: &str = "
    mkdir -p /etc/ipamd/tls /run/ipamd /var/lib/ipam-agent
    touch /etc/ipamd/agent.toml /etc/ipamd/join.token /etc/ipamd/tls/ca.crt
    touch /run/ipamd/agent.sock /var/lib/ipam-agent/token";

/// A host, and its files before an installation.
fn prepared_host() -> (Host, String) {
    let host = Host::new();
    // systemd creates this directory at boot.
    host.does("mkdir -p /var/lib/systemd/timers");
    let before = host.files();
    (host, before)
}

/// Fails if the host has files that it did not have before.
fn assert_no_file_is_left(host: &Host, before: &str) {
    let before: BTreeSet<&str> = before.lines().collect();
    let after = host.files();
    let left: Vec<&str> = after.lines().filter(|line| !before.contains(line)).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn p5_3_a_purge_leaves_no_file() {
    let (host, before) = prepared_host();
    for [first, second] in [["ipamd", "ipam-agent"], ["ipam-agent", "ipamd"]] {
        let said = host.does(INSTALL);
        let hints = ["Write /etc/ipamd/ipamd.toml", "Write /etc/ipamd/agent.toml"];
        assert!(hints.iter().all(|hint| said.contains(hint)), "{said}");
        host.does(INSTALLED);
        host.does(&format!("{MEMBER}\n{AGENT}"));
        host.does(&format!("dpkg --purge {first}"));
        // Both packages have certificates there, and no file belongs to a group that was deleted.
        host.does("test -e /etc/ipamd/tls/ca.crt && ! find /etc/ipamd -nogroup | grep .");
        host.does(&format!("dpkg --purge {second}"));
        assert_no_file_is_left(&host, &before);
        host.does("! getent passwd ipamd");
    }
}

#[test]
fn p5_3_a_purge_of_the_agent_alone_leaves_no_file() {
    let (host, before) = prepared_host();
    host.does(&format!("dpkg --install /packages/ipam-agent.deb\n{AGENT}"));
    host.does("dpkg --purge ipam-agent");
    assert_no_file_is_left(&host, &before);
}

#[test]
fn p5_3_a_purge_keeps_the_data_of_a_member_unless_told_otherwise() {
    let host = Host::new();
    host.does(INSTALL);
    host.write("var/lib/ipamd/identity.json", "{\"name\": \"n1\", \"cluster_id\": \"5e0c\"}");
    host.write("etc/ipamd/ipamd.toml", "log = \"info\"\n");
    host.write("etc/ipamd/tls/ca.crt", "");
    let said = host.does("dpkg --purge ipamd");
    assert!(said.contains("belongs to a member of a cluster and is kept"), "{said}");
    assert!(said.contains("IPAMD_PURGE_DATA=yes"), "{said}");
    host.does("test -e /var/lib/ipamd/identity.json && test -e /etc/ipamd/ipamd.toml");
    host.does("dpkg --install /packages/ipamd.deb");
    let said = host.does("IPAMD_PURGE_DATA=yes dpkg --purge ipamd");
    assert!(said.contains("/etc/ipamd/tls is kept for ipam-agent."), "{said}");
    host.does("! test -e /var/lib/ipamd && ! test -e /etc/ipamd/ipamd.toml");
}

#[test]
fn p5_3_a_downgrade_is_refused_with_the_reason() {
    let host = Host::new();
    host.does(INSTALL);
    let member = "ipamd: A member of an older version cannot read entries of a newer feature level.\n\
        ipamd: If 'ipamctl status' shows a level that 0.0.9 knows, repeat with \
        IPAMD_ALLOW_DOWNGRADE=yes.\n";
    let agent = "ipam-agent: An older agent may not read the journal of a newer one.\n\
        ipam-agent: To downgrade nevertheless, repeat with IPAMD_ALLOW_DOWNGRADE=yes.\n";
    for (name, reason) in [("ipamd", member), ("ipam-agent", agent)] {
        let older = host.with_version(name, "0.0.9");
        let said = host.refuses(&format!("dpkg --install {older}"));
        let sentence = "0.0.9 is older than the installed version 0.1.0, so this downgrade is refused.";
        assert!(said.contains(&format!("{name}: {sentence}\n{reason}")), "{said}");
        let show = format!("dpkg-query --show --showformat='${{Version}} ${{Status}}' {name}");
        assert_eq!(host.does(&show), "0.1.0 install ok installed");
        host.does(&format!("IPAMD_ALLOW_DOWNGRADE=yes dpkg --install {older}"));
    }
}

#[test]
fn p5_14_an_upgrade_keeps_settings_and_data() {
    let host = Host::new();
    let older = ["ipamd", "ipam-agent"].map(|name| host.with_version(name, "0.0.9"));
    host.does(&format!("dpkg --install {}", older.join(" ")));
    host.write("etc/ipamd/ipamd.toml", "log = \"info\"\n");
    host.write("var/lib/ipamd/identity.json", "{\"cluster_id\": \"5e0c\"}");
    let said = host.does(INSTALL);
    assert!(!said.contains("Write /etc"), "{said}");
    host.does("grep -q info /etc/ipamd/ipamd.toml && test -e /var/lib/ipamd/identity.json");
    host.does("dpkg-query --show --showformat='${Version}\\n' ipamd ipam-agent | sort -u | grep -x 0.1.0");
}

#[test]
fn p5_3_an_agent_with_attachments_is_not_removed() {
    let host = Host::new();
    host.does(INSTALL);
    host.write("etc/ipamd/agent.toml", "servers = [\"http://127.0.0.1:7440\"]\n");
    journal_with_an_attachment(&host.path("var/lib/ipam-agent"));
    let said = host.refuses("dpkg --remove ipam-agent");
    assert!(said.contains("lan  c0ffee  eth0") && said.contains("so the removal is refused"), "{said}");
    host.does("test -x /usr/lib/cni/ipam-cni");
    host.does("IPAM_AGENT_FORCE_REMOVE=yes dpkg --remove ipam-agent && ! test -e /usr/lib/cni/ipam-cni");
}

/// Writes the journal of an agent whose node runs a container.
fn journal_with_an_attachment(dir: &Path) {
    let key = Key {
        config: ObjectName::new("lan").unwrap(),
        container_id: ObjectName::new("c0ffee").unwrap(),
        interface: InterfaceName::new("eth0").unwrap(),
    };
    let entry = Entry {
        key,
        phase: Phase::Attached,
        boot_id: "b1".to_owned(),
        runtime: String::new(),
        netns: None,
        endpoint: None,
        uid: None,
        allocations: vec![1],
    };
    let (mut file, mut attachments) = JournalFile::open(dir).unwrap();
    attachments.apply(Record::Put(entry));
    file.rewrite(&attachments).unwrap();
}

#[test]
fn p5_3_a_foreign_plugin_is_never_overwritten() {
    let host = Host::new();
    host.write("opt/cni/bin/ipam-cni", "mine\n");
    let said = host.does("dpkg --install /packages/ipam-agent.deb");
    assert!(said.contains("/opt/cni/bin/ipam-cni exists and is kept"), "{said}");
    host.does("dpkg --purge ipam-agent && grep -qx mine /opt/cni/bin/ipam-cni");
}

/// The host has neither Rust nor a package of ipamd.
#[test]
fn p5_9_the_tarball_alone_runs_a_cluster() {
    let host = Host::new();
    let mut files = std::fs::read_dir(crate::artifacts()).unwrap().map(|entry| entry.unwrap().path());
    let tarball = files.find(|path| path.to_str().unwrap().ends_with(".tar.gz")).unwrap();
    std::fs::copy(tarball, host.path("packages/ipamd.tar.gz")).unwrap();
    host.does("! command -v cargo && ! command -v rustc");
    let said = host.does(
        "ip link set lo up
         tar --extract --file /packages/ipamd.tar.gz --directory /root
         /root/ipamd-*/bin/ipamd dev --check",
    );
    assert!(said.contains("through bridge + ipam-cni") && said.contains("check passed"), "{said}");
}
