//! A service manager that listens at `NOTIFY_SOCKET`, as systemd does for units of `Type=notify`.

use std::os::unix::net::UnixDatagram;

use crate::support::{Cluster, until};

/// Limit of the watchdog, in microseconds.
const WATCHDOG_US: &str = "1500000";
/// Largest notification.
const BYTES_MAX: usize = 4096;

/// Listens for the notifications of one member.
struct Manager {
    socket: UnixDatagram,
    /// Lines since the last look.
    lines: Vec<String>,
}

impl Manager {
    /// Supervises a stopped member from its next start on.
    fn of(cluster: &mut Cluster, at: usize) -> Self {
        let path = cluster.dir.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        socket.set_nonblocking(true).unwrap();
        let environment = [("NOTIFY_SOCKET", path.into_os_string()), ("WATCHDOG_USEC", WATCHDOG_US.into())];
        cluster.members[at].environment.extend(environment);
        Self { socket, lines: Vec::new() }
    }

    fn receive(&mut self) -> &[String] {
        let mut bytes = [0; BYTES_MAX];
        while let Ok(count) = self.socket.recv(&mut bytes) {
            let text = std::str::from_utf8(&bytes[..count]).unwrap();
            self.lines.extend(text.lines().map(str::to_owned));
        }
        &self.lines
    }

    /// Waits for a line with this beginning; returns and forgets all lines up to it.
    async fn hears(&mut self, begins: &str) -> Vec<String> {
        let at = until(&format!("the manager hears {begins}"), async || {
            let lines = self.receive();
            lines.iter().position(|line| line.starts_with(begins)).ok_or_else(|| format!("{lines:?}"))
        })
        .await;
        self.lines.drain(..=at).collect()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_manager_learns_of_quorum_reload_and_stop() {
    let mut cluster = Cluster::of(3);
    let mut manager = Manager::of(&mut cluster, 0);
    cluster.start(0);
    let lines = manager.hears("STATUS=not ready: ").await;
    assert!(!lines.contains(&"READY=1".to_owned()), "one of three is no quorum: {lines:?}");
    // A reload before readiness is none for the manager.
    cluster.members[0].hang_up();
    until("the settings are read again", async || {
        let logged = cluster.members[0].logged();
        if logged.contains("reload: read again") { Ok(()) } else { Err(cluster.members[0].tail()) }
    })
    .await;
    assert!(!manager.receive().iter().any(|line| ["READY=1", "RELOADING=1"].contains(&&**line)));
    cluster.start_all();
    manager.hears("READY=1").await;
    cluster.ready().await;
    cluster.members[0].hang_up();
    manager.hears("RELOADING=1").await;
    manager.hears("READY=1").await;
    cluster.stop(0).await;
    manager.hears("STOPPING=1").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_without_a_quorum_states_the_reason_when_its_start_is_given_up() {
    let mut cluster = Cluster::of(3);
    let mut manager = Manager::of(&mut cluster, 0);
    cluster.start(0);
    manager.hears("STATUS=not ready: ").await;
    cluster.stop(0).await;
    manager.hears("STATUS=stopped before it was ready: ").await;
    assert!(cluster.members[0].logged().contains("stopping before the member was ready"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watchdog_hears_from_a_member_that_runs_and_not_from_a_stopped_one() {
    let (mut stopped, mut running) = (Cluster::of(1), Cluster::of(1));
    let (mut silent, mut other) = (Manager::of(&mut stopped, 0), Manager::of(&mut running, 0));
    stopped.start(0);
    running.start(0);
    for _ in 0..3 {
        silent.hears("WATCHDOG=1").await;
    }
    let member = &stopped.members[0];
    member.pause();
    silent.receive();
    silent.lines.clear();
    // Each three are the limit of the watchdog.
    for _ in 0..4 {
        other.hears("WATCHDOG=1").await;
    }
    assert!(silent.receive().is_empty(), "{:?}", silent.lines);
    member.resume();
    silent.hears("WATCHDOG=1").await;
}
