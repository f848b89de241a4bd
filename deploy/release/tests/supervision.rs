//! The daemon under systemd: limit of a start, readiness, reload, watchdog (line 6 of the acceptance).

use crate::boot::{Booted, Network};
use crate::host::Host;

/// Directory for further settings of the unit.
const DROP_IN: &str = "/run/systemd/system/ipamd.service.d";
/// Command that succeeds in a healthy cluster.
const HEALTHY: &str = "ipamctl --server unix:/run/ipamd/server/ipamd.sock status --wait 1m";

/// Replaces the further settings of the unit.
fn configure(host: &Booted, settings: &str) {
    host.does(&format!("mkdir -p {DROP_IN}"));
    host.write(&format!("{DROP_IN}/test.conf"), &format!("[Service]\n{settings}"));
    host.does("systemctl daemon-reload");
}

/// Value of a property of the unit.
fn property(host: &Booted, name: &str) -> String {
    host.does(&format!("systemctl show --property={name} --value ipamd")).trim().to_owned()
}

/// Waits for a text in the journal of the unit.
fn wait_for_log(host: &Booted, text: &str) {
    host.eventually(text, |host| {
        let said = host.run("journalctl --unit=ipamd --no-pager").stdout;
        String::from_utf8_lossy(&said).contains(text).then_some(())
    });
}

#[test]
fn p5_6_systemd_learns_of_a_quorum_and_of_a_stuck_daemon() {
    let network = Network::of(&["n1"]);
    let host = Booted::new(Host::new(), &network, "n1");
    host.does("dpkg --install /packages/ipamd.deb");
    a_start_without_a_quorum_fails_with_the_reason(&host);
    a_start_returns_with_a_quorum(&host);
    a_reload_keeps_the_process(&host);
    the_watchdog_restarts_a_stuck_daemon(&host);
}

/// Starts one of three founding members; the others do not exist.
fn a_start_without_a_quorum_fails_with_the_reason(host: &Booted) {
    let mut settings = String::new();
    for name in ["n1", "n2", "n3"] {
        let peer = format!("unix:/var/lib/ipamd/{name}.sock");
        settings += &format!("[[initial_members]]\nname = \"{name}\"\npeer = \"{peer}\"\n");
    }
    host.write("/etc/ipamd/ipamd.toml", &settings);
    // On a slow machine, the daemon needs some seconds before the wait for n2 begins.
    configure(host, "TimeoutStartSec=30\nRestart=no\n");
    assert!(!host.run("systemctl start ipamd").status.success());
    assert_eq!(property(host, "Result"), "timeout");
    wait_for_log(host, "stopping before the member was ready: waiting for an answer of n2");
    host.does("rm -r /var/lib/ipamd/*");
}

/// Starts the only member of a cluster, with the unit of the package.
fn a_start_returns_with_a_quorum(host: &Booted) {
    host.write("/etc/ipamd/ipamd.toml", "client_socket = \"/run/ipamd/server/ipamd.sock\"\n");
    configure(host, "");
    host.does("systemctl start ipamd");
    assert_eq!(property(host, "StatusText"), "ready");
    host.does(HEALTHY);
}

fn a_reload_keeps_the_process(host: &Booted) {
    let process = property(host, "MainPID");
    host.does("systemctl reload ipamd");
    wait_for_log(host, "reload: read again");
    assert_eq!(property(host, "MainPID"), process);
}

fn the_watchdog_restarts_a_stuck_daemon(host: &Booted) {
    // A healthy daemon on a slow machine answers within this time, a stopped one never does.
    configure(host, "WatchdogSec=10\n");
    host.does("systemctl restart ipamd");
    let process = property(host, "MainPID");
    host.does(&format!("kill -STOP {process}"));
    wait_for_log(host, "Watchdog timeout");
    host.eventually("restart", |host| (property(host, "NRestarts") != "0").then_some(()));
    host.eventually("healthy cluster", |host| host.run(HEALTHY).status.success().then_some(()));
    assert_ne!(property(host, "MainPID"), process);
}
