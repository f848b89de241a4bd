//! Cluster of three hosts that boot with the packages, and a node with containers (lines 3, 5, 6, 10, 11).

use std::process::Command;

use crate::boot::{Booted, Network};
use crate::host::Host;
use crate::{prepared, run};

const MEMBERS: [&str; 3] = ["n1", "n2", "n3"];
const NODE: &str = "w1";
/// Versions before and after the version of the packages.
const OLDER: &str = "0.0.9";
const NEWER: &str = "9.0.0";
/// Number of ADDs that end between two steps of an upgrade.
const ADDS: u64 = 3;

/// Network of the node's containers: the package's plugin behind Debian's `bridge`.
pub(crate) const CONTAINERS: &str = r#"{
  "cniVersion": "1.0.0", "name": "lan", "type": "bridge", "bridge": "lan0",
  "ipam": {"type": "ipam-cni", "socket": "/run/ipamd/agent.sock", "ipv4_pools": ["web"]}
}"#;

/// Creates and deletes containers until `/root/stop` exists. Failures are in `/root/failed`.
const LOAD: &str = "
export CNI_IFNAME=eth0 CNI_PATH=/usr/lib/cni
number=0
until [ -e /root/stop ]; do
  number=$((number + 1))
  export CNI_CONTAINERID=c$number CNI_NETNS=/run/netns/c$number
  ip netns add c$number
  for word in ADD DEL; do
    CNI_COMMAND=$word /usr/lib/cni/bridge < /root/lan.conf > /root/said 2>&1 ||
      { echo \"$word c$number\"; cat /root/said; } >> /root/failed
  done
  ip netns delete c$number
  echo $number > /root/done.new
  mv /root/done.new /root/done
done";

/// Directory for further settings of the timer of backups.
const SOON: &str = "/run/systemd/system/ipamd-backup.timer.d";

/// Program `ipamctl` that damages each backup.
const DAMAGE: &str = r#"#!/bin/sh
/usr/bin/ipamctl "$@" || exit
for last; do :; done
case "$*" in *--verify*) ;; *) truncate --size=-1 "$last" ;; esac
"#;

/// Hosts with the older packages, one cluster, and a node of it.
struct Site {
    members: Vec<Booted>,
    node: Booted,
    _network: Network,
}

impl Site {
    fn new() -> Self {
        let network = Network::of(&[MEMBERS[0], MEMBERS[1], MEMBERS[2], NODE]);
        let with = |name: &str, package: &str, versions: &[&str]| {
            let host = Host::new();
            versions.iter().for_each(|version| drop(host.with_version(package, version)));
            Booted::new(host, &network, name)
        };
        let members: Vec<Booted> = MEMBERS.iter().map(|name| with(name, "ipamd", &[OLDER, NEWER])).collect();
        let node = with(NODE, "ipam-agent", &[OLDER]);
        let desk = certificates(&MEMBERS);
        for (name, host) in MEMBERS.iter().zip(&members) {
            host.does(&format!("dpkg --install /packages/ipamd-{OLDER}.deb"));
            for (file, at) in [
                (format!("{name}.member.crt"), "member.crt"),
                (format!("{name}.member.key"), "member.key"),
                ("ca.crt".to_owned(), "ca.crt"),
            ] {
                let content = std::fs::read_to_string(desk.path().join("ca").join(file)).unwrap();
                host.write(&format!("/etc/ipamd/tls/{at}"), &content);
            }
            host.does("chown root:ipamd /etc/ipamd/tls/* && chmod 640 /etc/ipamd/tls/*");
            host.write("/etc/ipamd/ipamd.toml", &settings(name, &MEMBERS));
            host.does("ipamd check-config > /dev/null");
        }
        let ca = std::fs::read_to_string(desk.path().join("ca/ca.crt")).unwrap();
        node.write("/root/ca.crt", &ca);
        Self { members, node, _network: network }
    }

    /// Starts all members. No start ends before the cluster is founded, which needs all members.
    fn start(&self) {
        let [first, others @ ..] = &self.members[..] else { panic!("no member") };
        let mut starts = vec![first.begins("systemctl start ipamd")];
        first.eventually("reason of the wait", |host| {
            let shown = host.run("systemctl show --property=StatusText --value ipamd");
            crate::text(&shown).contains("waiting for an answer of n2").then_some(())
        });
        first.does("test \"$(systemctl show --property=ActiveState --value ipamd)\" = activating");
        starts.extend(others.iter().map(|host| host.begins("systemctl start ipamd")));
        assert!(starts.iter_mut().all(|start| start.wait().unwrap().success()));
        self.admin("status --wait 1m");
    }

    /// `ipamctl` as root of the first member.
    fn admin(&self, words: &str) -> String {
        self.members[0].does(&format!("ipamctl --server unix:/run/ipamd/server/ipamd.sock {words}"))
    }

    /// Installs the older agent on the node, which joins.
    fn join(&self) {
        self.admin("subnet create lan --cidr 10.10.0.0/16 --gateway 10.10.0.1");
        self.admin("pool create web --subnet lan --range 10.10.0.10-10.10.0.250");
        self.admin("token node --ttl 1h --node default/w1 --to-file /root/join.token");
        let token = self.members[0].does("cat /root/join.token");
        self.node.does(&format!("dpkg --install /packages/ipam-agent-{OLDER}.deb"));
        self.node.does("install -D -m 644 /root/ca.crt /etc/ipamd/tls/ca.crt");
        self.node.write("/etc/ipamd/join.token", &token);
        self.node.write(
            "/etc/ipamd/agent.toml",
            "servers = [\"https://n1:7440\", \"https://n2:7440\", \"https://n3:7440\"]\n\
             ca_file = \"/etc/ipamd/tls/ca.crt\"\njoin_token_file = \"/etc/ipamd/join.token\"\n",
        );
        self.node.write("/root/lan.conf", CONTAINERS);
        self.node.does("chmod 600 /etc/ipamd/join.token && systemctl start ipam-agent");
        self.node.eventually("agent that serves", |node| {
            node.run("ipam-agent doctor").status.success().then_some(())
        });
    }

    /// Number of containers that were created and deleted.
    fn done(&self) -> u64 {
        let shown = self.node.run("cat /root/done").stdout;
        String::from_utf8(shown).unwrap().trim().parse().unwrap_or(0)
    }

    /// Waits until more containers were created and deleted.
    fn more(&self) {
        let before = self.done();
        self.node.eventually("further ADDs", |_| (self.done() >= before + ADDS).then_some(()));
    }
}

/// Certificates of a cluster, in directory `ca`.
pub(crate) fn certificates(members: &[&str]) -> tempfile::TempDir {
    let desk = tempfile::tempdir().unwrap();
    let ipamctl = prepared("IPAMD_STRIPPED").join("ipamctl");
    let issue = |words: &[&str]| {
        drop(run(Command::new(&ipamctl).args(["cluster", "ca"]).args(words).current_dir(&desk)))
    };
    issue(&["init", "./ca"]);
    members.iter().for_each(|name| issue(&["issue", "./ca", "member", name, "--address", name]));
    desk
}

/// Settings of one of the first members.
pub(crate) fn settings(name: &str, members: &[&str]) -> String {
    let mut settings = format!(
        "client_listen = \"0.0.0.0:7440\"\nclient_url = \"https://{name}:7440\"\n\
         client_socket = \"/run/ipamd/server/ipamd.sock\"\npeer_listen = \"0.0.0.0:7441\"\n"
    );
    for (section, authority) in [("tls", "client_ca"), ("peer_tls", "ca")] {
        settings += &format!(
            "[{section}]\ncertificate = \"/etc/ipamd/tls/member.crt\"\nkey = \"/etc/ipamd/tls/member.key\"\n\
             {authority} = \"/etc/ipamd/tls/ca.crt\"\n"
        );
    }
    for name in members {
        settings += &format!("[[initial_members]]\nname = \"{name}\"\npeer = \"{name}:7441\"\n");
    }
    settings
}

#[test]
fn p5_3_p5_5_p5_10_p5_11_three_hosts_form_a_cluster_and_an_upgrade_under_load_fails_no_add() {
    let site = Site::new();
    site.start();
    site.join();
    only_documented_listeners(&site);
    a_backup_is_written_and_verified(&site);
    let mut load = site.node.begins(LOAD);
    site.more();
    for member in &site.members {
        let said = member.does("dpkg --install /packages/ipamd.deb");
        assert!(said.contains("The cluster is healthy; restarting this member."), "{said}");
        // The old file of a program that still runs would be shown as deleted.
        member.does("! readlink /proc/$(systemctl show --property=MainPID --value ipamd)/exe | grep deleted");
        site.more();
    }
    let said = site.node.does("dpkg --install /packages/ipam-agent.deb");
    assert!(!said.contains("Write /etc"), "{said}");
    site.more();
    site.node.does("touch /root/stop");
    assert!(load.wait().unwrap().success());
    site.node.does("! cat /root/failed 2>/dev/null");
    containerd_attaches_a_container(&site);
    an_upgrade_in_an_unhealthy_cluster_restarts_nothing(&site);
}

/// Line 10: Debian's containerd calls Debian's `bridge`, which calls the plugin of the package.
fn containerd_attaches_a_container(site: &Site) {
    let container = serde_json::json!({
        "ociVersion": "1.0.2",
        "process": {
            "user": {"uid": 0, "gid": 0}, "cwd": "/", "env": ["PATH=/usr/sbin:/usr/bin"],
            "args": ["ip", "-brief", "-4", "address", "show", "eth0"],
        },
        "root": {"path": "/root/rootfs", "readonly": true},
        "mounts": [
            {"destination": "/proc", "type": "proc", "source": "proc"},
            {"destination": "/usr", "type": "bind", "source": "/usr", "options": ["rbind", "ro"]},
        ],
        "linux": {
            "namespaces": [{"type": "pid"}, {"type": "network"}, {"type": "mount"}],
            "cgroupsPath": "/default/c1",
        },
    });
    site.node.write("/root/container.json", &container.to_string());
    site.node.does(
        "mkdir -p /root/rootfs /etc/cni/net.d
         for name in bin lib lib64; do ln -s usr/$name /root/rootfs/$name; done
         ln -s /usr/lib/cni/bridge /opt/cni/bin/bridge
         cp /root/lan.conf /etc/cni/net.d/lan.conf",
    );
    // systemd-nspawn mounts control groups of version 1 read-only, and runc needs one that it can write.
    let start = "exec unshare --mount bash -c '
        mount -t cgroup2 cgroup2 /sys/fs/cgroup && exec containerd 2>/root/containerd.log'";
    let mut daemon = site.node.begins(start);
    site.node.eventually("containerd", |node| node.run("ctr version").status.success().then_some(()));
    let run = "ctr run --rm --cni --config /root/container.json c1 || { cat /root/containerd.log; false; }";
    let said = site.node.does(run);
    assert!(said.contains("10.10.0."), "{said}");
    let address = said.split_whitespace().find_map(|word| word.strip_suffix("/16")).unwrap().to_owned();
    let history = site.admin(&format!("who-has {address}"));
    assert!(history.contains("default-c1"), "{history}");
    site.node.eventually("released address", |_| {
        let said = site.admin(&format!("who-has {address}"));
        matches!(said.split_whitespace().nth(1), Some("cooling" | "free")).then_some(())
    });
    site.node.does("kill $(pidof containerd)");
    daemon.wait().unwrap();
}

/// Line 5: no listeners except those of the settings and the manual.
fn only_documented_listeners(site: &Site) {
    for member in &site.members {
        let listeners =
            member.does("ss --no-header --listening --tcp --udp --numeric | awk '{print $1, $5}' | sort");
        assert_eq!(listeners, "tcp 0.0.0.0:7440\ntcp 0.0.0.0:7441\n");
    }
    assert_eq!(site.node.does("ss --no-header --listening --tcp --udp --numeric"), "");
}

/// Line 11: the timer runs the service, which keeps verified backups only.
fn a_backup_is_written_and_verified(site: &Site) {
    let member = &site.members[1];
    member.does(&format!("mkdir {SOON}"));
    member.write(
        &format!("{SOON}/soon.conf"),
        "[Timer]\nOnCalendar=\nOnCalendar=*:*:0/2\nRandomizedDelaySec=0\nAccuracySec=1s\n",
    );
    member.does("systemctl daemon-reload && systemctl enable --now ipamd-backup.timer");
    member.eventually("backup by the timer", |member| {
        member.run("ls /var/backups/ipamd/ipamd-*.backup").status.success().then_some(())
    });
    member.does("test -n \"$(systemctl show --property=LastTriggerUSec --value ipamd-backup.timer)\"");
    member.does(&format!(
        "rm -r {SOON}
         systemctl daemon-reload
         systemctl restart ipamd-backup.timer
         for file in /var/backups/ipamd/ipamd-*.backup; do ipamctl cluster backup --verify $file; done
         systemctl list-timers | grep ipamd-backup.timer
         systemctl reset-failed ipamd-backup.service"
    ));
    // The names of backups contain seconds.
    member.eventually("second backup", |member| {
        member.does(
            "echo IPAMD_BACKUP_KEEP=1 > /etc/default/ipamd-backup && systemctl start ipamd-backup.service",
        );
        member
            .run("journalctl --unit=ipamd-backup | grep 'is deleted; 1 files are kept'")
            .status
            .success()
            .then_some(())
    });
    member.does("test \"$(ls /var/backups/ipamd | wc -l)\" = 1");
    member.write("/usr/local/bin/ipamctl", DAMAGE);
    member.does(
        "chmod 755 /usr/local/bin/ipamctl
         systemctl reset-failed ipamd-backup.service
         systemctl start ipamd-backup.service || true
         test \"$(systemctl show --property=Result --value ipamd-backup.service)\" = exit-code
         test \"$(ls /var/backups/ipamd | wc -l)\" = 1
         rm /usr/local/bin/ipamctl
         systemctl reset-failed ipamd-backup.service",
    );
    member.eventually("reason of the failure", |member| {
        let damaged = "journalctl --unit=ipamd-backup | grep 'the backup is damaged'";
        member.run(damaged).status.success().then_some(())
    });
}

fn an_upgrade_in_an_unhealthy_cluster_restarts_nothing(site: &Site) {
    let [first, second, ..] = &site.members[..] else { panic!("no member") };
    second.does("systemctl stop ipamd");
    let process = "systemctl show --property=MainPID --value ipamd";
    let before = first.does(process);
    let said = first.does(&format!("dpkg --install /packages/ipamd-{NEWER}.deb"));
    assert!(said.contains("The cluster is not healthy, so this member still runs version 0.1.0"), "{said}");
    assert_eq!(first.does(process), before);
    second.does("systemctl start ipamd");
    site.admin("status --wait 1m");
    first.does("systemctl restart ipamd");
    site.admin("status --wait 1m");
}
