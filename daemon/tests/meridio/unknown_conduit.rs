//! Calls for a conduit that is not there yet.

use serde_json::json;

use super::clients::{Child, Client, IPV4};
use super::trench::Trench;
use crate::support::ask::get;
use crate::support::until;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn m6_4_calls_wait_for_their_conduit_on_each_member_or_end_with_their_deadline() {
    let trench = Trench::plain(3).up().await;
    let client = Client::go();
    let child = |conduit: &str, name: &str| Child::new(conduit, "node-1", name, IPV4);
    let mut late = child("conduit-z", "x").operation("allocate");
    late["deadline_ms"] = json!(300);
    let ended = client.ask(&trench.server(1), late).await;
    assert_eq!(ended.code, "DEADLINE_EXCEEDED", "{}", ended.text);
    let servers: Vec<_> = (0..3).map(|at| trench.server(at)).collect();
    let mut waiting = Vec::new();
    for (at, server) in servers.iter().enumerate() {
        let mut operation = child("conduit-a", &format!("c{at}")).operation("allocate");
        operation["deadline_ms"] = json!(110_000);
        waiting.push(client.send(server, operation).await);
    }
    // Each call has been refused once by then, and waits.
    until("no more entries are written", async || {
        let before: serde_json::Value = get(&trench.cluster.ask(), "/v1/cluster").await.unwrap();
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        let after: serde_json::Value = get(&trench.cluster.ask(), "/v1/cluster").await.unwrap();
        let (before, after) = (&before["applied"], &after["applied"]);
        // A heartbeat of log time may be among them.
        let few = after.as_u64().unwrap() - before.as_u64().unwrap() <= 1;
        few.then_some(()).ok_or_else(|| format!("{before} and {after}"))
    })
    .await;
    // A conduit of another name wakes no call for good.
    trench.conduit("conduit-b").await;
    trench.conduit("conduit-a").await;
    let mut addresses = Vec::new();
    for call in waiting {
        addresses.push(call.last().await.prefix());
    }
    addresses.sort();
    assert_eq!(addresses, ["169.255.16.1/24", "169.255.16.2/24", "169.255.16.3/24"]);
}
