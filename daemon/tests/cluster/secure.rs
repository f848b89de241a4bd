//! A cluster with TLS everywhere, as an operator sets it up, and certificates renewed while it works.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use ipam_api::client::{Client, Options};

use crate::support::ask::{allocate, allocate_request, make_pools};
use crate::support::tls::{Ca, connect};
use crate::support::{Cluster, programs, until};

fn ipamctl(cluster: &Cluster, arguments: &[&str]) -> std::process::Output {
    let mut command = Command::new(programs::ipamctl());
    command.env_clear().args(["--server", &cluster.urls().join(",")]).args(arguments);
    command.output().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_clients_and_the_command_line_speak_tls_with_each_other() {
    let (cluster, ca) = Cluster::secure(3);
    let mut cluster = cluster.all_up().await;
    make_pools(&cluster.ask()).await;
    for at in 0..3 {
        // A member that doesn't lead passes it on, over TLS.
        allocate(&cluster.at(at), &allocate_request(&format!("h{at}"), &["web"])).await.unwrap();
    }
    cluster.settled().await;
    // A returning member finds the others again.
    cluster.members[0].kill();
    cluster.start(0);
    cluster.ready().await;
    assert_eq!(cluster.settled().await.addresses.allocated, 3);
    assert!(cluster.members.iter().all(|member| !member.logged().contains("expires within")));
    let ca_file = ca.certificate();
    let shown = ipamctl(&cluster, &["--ca-file", ca_file.to_str().unwrap(), "pool", "show", "web"]);
    assert!(shown.status.success(), "{}", String::from_utf8_lossy(&shown.stderr));
    // Monitoring sees their expiry in time.
    let metrics = cluster.ask().send(ipam_api::client::Call::get("/metrics")).await.unwrap();
    let metrics = String::from_utf8(metrics.body).unwrap();
    // They are good for a year.
    let left_s = |at_s: u64| at_s - ipam_api::time::Timestamp::now().0 / 1000;
    for shown_to in ["clients", "members"] {
        let name = format!("ipamd_certificate_expiry_timestamp_seconds{{shown_to=\"{shown_to}\"}} ");
        let at_s = metrics.lines().find_map(|line| line.strip_prefix(&name));
        let at_s: u64 = at_s.unwrap_or_else(|| panic!("{metrics}")).parse().unwrap();
        assert!((360..367).contains(&(left_s(at_s) / (24 * 3600))), "{at_s}");
    }
    let unbelieved = ipamctl(&cluster, &["--timeout", "2s", "pool", "show", "web"]);
    let printed = String::from_utf8_lossy(&unbelieved.stderr);
    assert_eq!(unbelieved.status.code(), Some(5), "{printed}");
    assert!(printed.contains("CA that isn't trusted"), "{printed}");
    for member in &cluster.members {
        assert!(!member.logged().contains("PRIVATE KEY"));
    }
}

/// Clients that send requests until they are stopped.
struct Load {
    stop: Arc<AtomicBool>,
    answered: Arc<AtomicUsize>,
    tasks: Vec<tokio::task::JoinHandle<()>>,
}

impl Load {
    /// Every request makes a new connection and so meets the present certificate; none may fail.
    fn on(cluster: &Cluster) -> Self {
        let (stop, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let tasks = (0..4).map(|worker| {
            let (urls, options) = (cluster.urls(), cluster.members[0].options());
            let (stop, answered) = (stop.clone(), answered.clone());
            tokio::spawn(async move {
                for round in 0.. {
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                    let client = Client::with(&urls, &options).unwrap();
                    allocate(&client, &allocate_request(&format!("w{worker}-{round}"), &["web"]))
                        .await
                        .unwrap();
                    answered.fetch_add(1, Ordering::Relaxed);
                }
            })
        });
        Self { tasks: tasks.collect(), stop, answered }
    }

    /// Waits until this many more have been answered.
    async fn more(&self, count: usize) {
        let wanted = self.answered.load(Ordering::Relaxed) + count;
        until("more requests are answered", async || {
            assert!(!self.tasks.iter().any(tokio::task::JoinHandle::is_finished), "a request has failed");
            let answered = self.answered.load(Ordering::Relaxed);
            if answered >= wanted { Ok(()) } else { Err(format!("{answered} of {wanted}")) }
        })
        .await;
    }

    async fn end(self) {
        self.stop.store(true, Ordering::Relaxed);
        for task in self.tasks {
            task.await.unwrap();
        }
    }
}

/// The certificate that a member shows.
async fn shown(cluster: &Cluster, ca: &Ca, at: usize) -> Vec<u8> {
    let stream = connect(cluster.members[at].client, "localhost", &ca.certificate(), None).await.unwrap();
    stream.get_ref().1.peer_certificates().unwrap()[0].to_vec()
}

/// Sends SIGHUP to a member, and waits for its log line.
async fn reload(cluster: &Cluster, at: usize, says: &str) {
    let count = || cluster.members[at].logged().matches(says).count();
    let before = count();
    cluster.members[at].hang_up();
    until(says, async || if count() > before { Ok(()) } else { Err(cluster.members[at].tail()) }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn certificates_are_renewed_under_load_without_a_failed_request() {
    let (cluster, ca) = Cluster::secure(3);
    let mut cluster = cluster.all_up().await;
    make_pools(&cluster.ask()).await;
    let load = Load::on(&cluster);
    load.more(20).await;
    for at in 0..3 {
        let (name, address) = (cluster.members[at].name.clone(), cluster.members[at].client.ip().to_string());
        let before = shown(&cluster, &ca, at).await;
        ca.member(&name, &address);
        assert_eq!(shown(&cluster, &ca, at).await, before, "nothing is read before it is said");
        reload(&cluster, at, "what=\"peer_tls\"").await;
        assert_ne!(shown(&cluster, &ca, at).await, before);
        load.more(20).await;
    }
    // Members present the new certificates on new connections.
    cluster.members[2].kill();
    cluster.start(2);
    cluster.ready().await;
    load.more(20).await;
    load.end().await;
    cluster.settled().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broken_certificate_is_refused_at_a_reload_and_at_a_start() {
    let (cluster, ca) = Cluster::secure(1);
    let mut cluster = cluster.all_up().await;
    let holder = cluster.members[0].tls.clone().unwrap();
    let before = shown(&cluster, &ca, 0).await;
    let (certificate, key) =
        (std::fs::read(&holder.certificate).unwrap(), std::fs::read(&holder.key).unwrap());
    let others = ca.member("n9", "127.0.0.1");
    for (certificate, key) in [
        (b"garbage".to_vec(), key.clone()),
        (certificate.clone(), b"garbage".to_vec()),
        (certificate.clone(), std::fs::read(&others.key).unwrap()),
        (Vec::new(), key.clone()),
    ] {
        std::fs::write(&holder.certificate, certificate).unwrap();
        std::fs::write(&holder.key, key).unwrap();
        reload(&cluster, 0, "reload: refused; the old one stays what=\"peer_tls\"").await;
        assert_eq!(shown(&cluster, &ca, 0).await, before);
    }
    let expired = ca.expired("localhost");
    std::fs::copy(&expired.certificate, &holder.certificate).unwrap();
    std::fs::copy(&expired.key, &holder.key).unwrap();
    reload(&cluster, 0, "reload: refused; the old one stays what=\"tls\"").await;
    assert_eq!(shown(&cluster, &ca, 0).await, before);
    // Another member's would do for clients, and no member would believe it.
    std::fs::copy(&others.certificate, &holder.certificate).unwrap();
    std::fs::copy(&others.key, &holder.key).unwrap();
    reload(&cluster, 0, "it must be for n1.member.ipamd.internal").await;
    cluster.members[0].kill();
    cluster.start(0);
    assert_eq!(cluster.members[0].exit().await.code(), Some(2));
    assert!(cluster.members[0].logged().contains("it must be for n1.member.ipamd.internal"));
    // Put back, it is itself again.
    std::fs::write(&holder.certificate, certificate).unwrap();
    std::fs::write(&holder.key, key).unwrap();
    cluster.start(0);
    cluster.ready().await;
    assert!(!cluster.members[0].logged().contains("PRIVATE KEY"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_filter_changes_at_a_reload() {
    let mut cluster = Cluster::of(1);
    cluster.start_all();
    cluster.ready().await;
    let config = cluster.config();
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, text.replace("log = \"info\"", "log = \"debug\"")).unwrap();
    reload(&cluster, 0, "reload: read again what=\"log\"").await;
    until("something is said at debug", async || {
        let _ = Client::with(&cluster.urls(), &Options::default());
        let _ = tokio::net::TcpStream::connect(cluster.members[0].client).await;
        let _ = crate::support::raw::send(cluster.members[0].client, b"nonsense\r\n\r\n").await;
        if cluster.members[0].logged().contains("DEBUG") { Ok(()) } else { Err("nothing".to_owned()) }
    })
    .await;
    std::fs::write(&config, "log = \"a=b=c\"").unwrap();
    reload(&cluster, 0, "reload: refused; the old one stays what=\"log\"").await;
    std::fs::write(&config, "nonsense").unwrap();
    reload(&cluster, 0, "everything stays as it was").await;
    cluster.ready_at(0).await;
}
