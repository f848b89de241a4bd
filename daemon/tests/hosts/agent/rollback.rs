//! Changes that cut a host off.

use std::net::SocketAddr;
use std::path::Path;

use serde_json::json;
use tokio::net::{TcpListener, TcpStream};

use super::rack::Rack;
use crate::namespace::wire::listener_inside;
use crate::support::ask::put;
use crate::support::held::Held;

/// Address of the servers, behind the router.
const SERVERS: ([u8; 4], u16) = ([10, 98, 0, 1], 7440);

/// Connects a router to the rack, behind which the first member is.
fn router(rack: &Rack) -> Held {
    let router = Held::start(&["--net"], "ip link set lo up && ip address add 10.98.0.1/32 dev lo");
    rack.at_switch(&format!(
        "ip link add router type veth peer name eth0 netns {} && ip link set router master br0 up",
        router.inner()
    ));
    let setup = router
        .inside(&["-n"])
        .args(["sh", "-ec", "ip link set eth0 up && ip address add 10.99.0.1/16 dev eth0"])
        .status();
    assert!(setup.unwrap().success());
    let netns = Path::new("/proc").join(router.inner().to_string()).join("ns/net");
    let listener = listener_inside(&netns, SocketAddr::from(SERVERS));
    listener.set_nonblocking(true).unwrap();
    let listener = TcpListener::from_std(listener).unwrap();
    let server = rack.cluster.members[0].client;
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            tokio::spawn(async move {
                if let Ok(mut server) = TcpStream::connect(server).await {
                    let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
                }
            });
        }
    });
    router
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn n5_14_a_wrong_gateway_is_rolled_back_and_reported() {
    let rack = Rack::make(1, 10).await;
    let client = rack.cluster.ask();
    let subnet = |gateway: &str| json!({"name": "lan", "cidr": "10.99.0.0/16", "gateway": gateway});
    put(&client, "subnets", subnet("10.99.0.1")).await;
    let _router = router(&rack);
    let interface = "[[interface]]\nname = \"eth1\"\nipv4_pools = [\"lan\"]\n";
    rack.configure(&["http://10.98.0.1:7440".to_owned()], "", interface);
    let mut host = rack.host("h1");
    // The way to the servers until the host has its own address.
    host.run(
        "ip link set eth1 up && ip address add 10.99.0.200/16 dev eth1 && \
         ip route add 10.98.0.1 via 10.99.0.1",
    );
    host.start_agent(&rack);
    host.is_served().await;
    host.has("eth1", 2).await;
    host.run("ip route delete 10.98.0.1");
    assert!(host.run("ip route show").contains("default via 10.99.0.1 dev eth1 proto 180 metric 512"));

    put(&client, "subnets", subnet("10.99.0.66")).await;
    let status = host.is("rolled-back").await;
    let detail = status["detail"].as_str().unwrap();
    assert!(detail.contains("no server answered") && detail.contains("gateway 10.99.0.66"), "{detail}");
    let routes = host.run("ip route show");
    assert!(routes.contains("default via 10.99.0.1 ") && !routes.contains("10.99.0.66"), "{routes}");
    // It was applied, and not only refused.
    assert!(host.logged().contains("add route 0.0.0.0/0 via 10.99.0.66"), "{}", host.logged());
    assert_eq!(host.addresses("eth1").len(), 2);
    let shown = host.agent_host(&rack, &["status"]);
    assert_eq!(shown.status.code(), Some(7), "{shown:?}");

    // An agent that ends meanwhile goes on with the former configuration.
    put(&client, "subnets", subnet("10.99.0.1")).await;
    host.is_served().await;
    assert!(host.run("ip route show").contains("default via 10.99.0.1 "));
}
