//! Agents that are killed between any two changes of the kernel.

use super::rack::{Host, Rack};
use crate::support::until;
use serde_json::json;

use crate::support::ask::put;

/// Configuration of a host besides its neighbours: addresses, routes and links, without counters.
fn shown(host: &Host) -> String {
    host.run(
        "ip -o address show | grep -v link | sed 's/valid_lft.*//; s/tentative//; s/ \\+/ /g' | sort; \
         ip route show | sort; ip -6 route show | grep -v fe80 | sort; cat /sys/class/net/*/mtu",
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn n5_12_an_agent_that_is_killed_between_any_two_changes_heals() {
    let rack = Rack::make(1, 10).await;
    let client = rack.cluster.ask();
    // Two configurations, which take turns: gateways, routes and MTU.
    let set = async |is_first: bool| {
        let (gateway, other, mtu) =
            if is_first { ("10.99.0.1", "10.99.0.3", 1400) } else { ("10.99.0.2", "10.99.0.4", 1300) };
        let routes = json!([{"destination": "10.50.0.0/16", "gateway": other}]);
        let mut four = json!({"name": "lan", "cidr": "10.99.0.0/16", "gateway": gateway, "mtu": mtu});
        let mut six = json!({"name": "lan6", "cidr": "2001:db8:99::/64"});
        if is_first {
            four["routes"] = routes;
            six["gateway"] = json!("2001:db8:99::fff1");
        }
        put(&client, "subnets", four).await;
        put(&client, "subnets", six).await;
    };
    set(true).await;
    let mut host = rack.host("h1");
    host.run(
        "ip link set eth1 up && ip address add 10.99.0.200/16 dev eth1 && \
         ip route add 192.0.2.0/24 via 10.99.0.9",
    );
    host.start_agent(&rack);
    host.is_served().await;
    let first = shown(&host);
    assert!(
        first.contains("via 2001:db8:99::fff1") && first.contains("10.50.0.0/16 via 10.99.0.3"),
        "{first}"
    );
    host.kill_agent();
    set(false).await;
    host.forget_status();
    host.start_agent(&rack);
    host.is_served().await;
    let second = shown(&host);
    assert!(!second.contains("fff1") && second.contains("default via 10.99.0.2"), "{second}");

    let mut points = 0;
    for point in 1.. {
        let before = points;
        for is_first in [true, false] {
            host.kill_agent();
            set(is_first).await;
            host.forget_status();
            host.start_agent_killed_at(&rack, point);
            points += usize::from(is_killed(&mut host).await);
            let now = shown(&host);
            assert!(now.contains("10.99.0.200/16") && now.contains("via 10.99.0.9"), "{point}: {now}");
            host.kill_agent();
            host.forget_status();
            host.start_agent(&rack);
            host.is_served().await;
            assert_eq!(shown(&host), if is_first { first.as_str() } else { second.as_str() }, "{point}");
        }
        if points == before {
            break;
        }
    }
    assert!(points > 8, "{points}");
}

/// Waits until the agent is killed, or until it is served; returns true if it was killed.
async fn is_killed(host: &mut Host) -> bool {
    until("the agent is killed, or serves", async || {
        let status = host.status();
        match host.ended() {
            Some(_) => Ok(true),
            None if status["source"] == "server" && status["state"] == "applied" => Ok(false),
            None => Err(host.logged()),
        }
    })
    .await
}
