//! Health and allocations over the unix socket.

use super::clients::{Child, Client, IPV4, Server};
use super::trench::Trench;
use crate::support::{Cluster, until};

const SERVICES: [&str; 4] = ["Startup", "Readiness", "Liveness", "IPAM"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn m6_15_the_socket_reports_four_services_and_liveness_without_a_leader() {
    let mut cluster = Cluster::of(3);
    let path = cluster.dir.path().join("health.sock");
    cluster.members.truncate(3);
    let mut trench = Trench::with(cluster, None, "");
    trench.cluster.members[0].config += &format!("socket = {path:?}\n");
    let mut trench = trench.up().await;
    let server = Server { target: format!("unix:{}", path.display()), tls: None, spiffe: None };
    let clients = Client::all();
    for client in &clients {
        for service in SERVICES {
            until(&format!("{} sees that {service} serves", client.name), async || {
                let health = client.health(&server, service).await;
                (health.status == "SERVING").then_some(()).ok_or_else(|| format!("{health:?}"))
            })
            .await;
        }
    }
    // The socket serves the calls of the port, too.
    trench.conduit("conduit-a").await;
    let child = Child::new("conduit-a", "node-1", "bridge", IPV4);
    assert_eq!(clients[0].allocate(&server, &child).await.prefix(), "169.255.0.1/24");
    for at in 1..3 {
        trench.cluster.members[at].kill();
    }
    until("the member without a leader is not ready", async || {
        let health = clients[0].health(&server, "Readiness").await;
        (health.status == "NOT_SERVING").then_some(()).ok_or_else(|| format!("{health:?}"))
    })
    .await;
    for (service, expected) in
        [("Startup", "SERVING"), ("Liveness", "SERVING"), ("", "SERVING"), ("IPAM", "NOT_SERVING")]
    {
        assert_eq!(clients[1].health(&server, service).await.status, expected, "{service}");
    }
    trench.cluster.start_all();
    trench.cluster.ready().await;
    until("the member is ready again", async || {
        let health = clients[1].health(&server, "Readiness").await;
        (health.status == "SERVING").then_some(()).ok_or_else(|| format!("{health:?}"))
    })
    .await;
}
