//! Conduits as a list: of an NSP service, and of the REST API.

use ipam_api::client::Call;
use ipam_api::resource::{Page, Prefix};
use serde_json::json;

use super::clients::{Child, Client, IPV4, IPV6};
use super::nsp::Nsp;
use super::trench::Trench;
use crate::support::{Cluster, LONG, until};

/// Conduits of the trench in both families, as `conduit-a 169.255.0.0/20`.
async fn conduits(trench: &Trench) -> Vec<String> {
    let call = Call::get("/v1/prefixes").query("realm", "default").within(LONG);
    let page: Page<Prefix> = trench.cluster.ask().call(call).await.unwrap();
    let top = page.items.iter().filter(|prefix| prefix.parent.is_none());
    let shown = |prefix: &Prefix| {
        format!("{} {}", prefix.owner, prefix.cidr.map_or_else(String::new, |cidr| cidr.to_string()))
    };
    let mut all: Vec<String> = top.map(shown).collect();
    all.sort();
    all
}

async fn until_conduits(trench: &Trench, expected: &[&str]) {
    until(&format!("the conduits are {expected:?}"), async || {
        let all = conduits(trench).await;
        (all == expected).then_some(()).ok_or_else(|| format!("{all:?}"))
    })
    .await;
}

const A: [&str; 2] = ["conduit-a 169.255.0.0/20", "conduit-a fd00::/56"];
const B: [&str; 2] = ["conduit-b 169.255.16.0/20", "conduit-b fd00:0:0:100::/56"];
const C: [&str; 2] = ["conduit-c 169.255.32.0/20", "conduit-c fd00:0:0:200::/56"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn m6_5_conduits_that_ended_while_no_member_ran_end_at_the_start() {
    let nsp = Nsp::start(&["conduit-a", "conduit-b"]).await;
    let settings = format!("nsp_service = \"{}\"", nsp.address);
    let mut trench = Trench::with(Cluster::of(3), None, &settings).up().await;
    until_conduits(&trench, &[A, B].concat()).await;
    let client = Client::go();
    for family in [IPV4, IPV6] {
        let child = Child::new("conduit-a", "node-1", "bridge", family);
        client.allocate(&trench.server(0), &child).await.prefix();
    }
    trench.cluster.kill_all();
    nsp.list(&["conduit-b", "conduit-c"]);
    trench.cluster.start_all();
    trench.cluster.ready().await;
    // The new one comes first, so it has no address that a proxy of the other may still use.
    until_conduits(&trench, &[B, C].concat()).await;
    let mut late = Child::new("conduit-a", "node-1", "bridge", IPV4).operation("allocate");
    late["deadline_ms"] = json!(300);
    until("calls for the ended conduit wait in vain", async || {
        let ended = client.ask(&trench.server(0), late.clone()).await;
        (ended.code == "DEADLINE_EXCEEDED").then_some(()).ok_or_else(|| format!("{ended:?}"))
    })
    .await;
    // A running cluster follows as well, also after a new election.
    let leader = trench.cluster.leader().await;
    trench.cluster.members[leader].kill();
    nsp.list(&["conduit-c"]);
    until_conduits(&trench, &C).await;
    nsp.list(&[]);
    until_conduits(&trench, &[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_nsp_service_is_followed_over_mutual_tls_by_its_spiffe_id() {
    let (cluster, ca) = Cluster::secure(1);
    let nsp = Nsp::secure(&["conduit-a"], &ca).await;
    let settings = format!("nsp_service = \"{}\"", nsp.address);
    let trench = Trench::with(cluster, Some(&ca), &settings).up().await;
    until_conduits(&trench, &A).await;
    nsp.list(&["conduit-b"]);
    until_conduits(&trench, &B).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_of_the_rest_api_replaces_the_conduits_of_both_families_in_one_step() {
    let trench = Trench::plain(1).up().await;
    let set = async |names: &[&str]| {
        let step = |(pool, length): (&str, u8)| {
            let prefixes: Vec<_> =
                names.iter().map(|name| json!({"owner": name, "length": length})).collect();
            let body = json!({"pool": pool, "realm": "default", "prefixes": prefixes});
            json!({"method": "PUT", "path": "/v1/prefixes", "body": body})
        };
        let steps: Vec<_> = [("default-ipv4", 20), ("default-ipv6", 56)].map(step).to_vec();
        let call = Call::post("/v1/transactions").json(&json!({"steps": steps})).unwrap();
        trench.cluster.ask().send(call.within(LONG)).await.unwrap();
    };
    set(&["conduit-a", "conduit-b"]).await;
    assert_eq!(conduits(&trench).await, [A, B].concat());
    set(&["conduit-b", "conduit-c"]).await;
    assert_eq!(conduits(&trench).await, [B, C].concat());
    set(&[]).await;
    assert!(conduits(&trench).await.is_empty());
}
