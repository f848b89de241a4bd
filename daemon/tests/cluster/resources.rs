//! Lifecycle of a resource: created, read, changed with a precondition, listed, drained, deleted.

use ipam_api::Code;
use ipam_api::client::{Call, Expect};
use ipam_api::resource::{Page, Pool, PoolStatus, Resource};
use serde_json::{Value, json};

use crate::support::Cluster;
use crate::support::ask::{
    addresses, allocate, allocate_request, allocations, get, known, list, make_pools, put, refused,
};
use crate::support::raw::ask;

type View = Resource<Pool, PoolStatus>;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_resource_can_be_sent_back_and_conflicts_are_detected() {
    let cluster = Cluster::up(3).await;
    let client = cluster.ask();
    make_pools(&client).await;
    let to = cluster.members[cluster.follower().await].client;
    let body = json!({"name": "lab", "description": "one"});
    let made = ask(to, "PUT", "/v1/networks/lab", &[], &body).await;
    assert_eq!((made.status, made.headers["location"].as_str()), (201, "/v1/networks/lab"));
    let again = ask(to, "PUT", "/v1/networks/lab", &[], &body).await;
    assert_eq!((again.status, again.headers.get("location")), (200, None));
    assert_eq!(again.headers["etag"], made.headers["etag"], "nothing was changed");

    // The response with one changed word.
    let mut shown: Value = again.json();
    shown["description"] = json!("two");
    let changed = ask(to, "PUT", "/v1/networks/lab", &[], &shown).await;
    assert_eq!(changed.status, 200, "{changed:?}");
    assert_ne!(changed.headers["etag"], made.headers["etag"]);
    // A writer with the older revision gets a conflict.
    shown["description"] = json!("three");
    let late = ask(to, "PUT", "/v1/networks/lab", &[], &shown).await;
    assert_eq!((late.status, late.problem().code), (412, Code::RevisionMismatch));
    let etag = changed.headers["etag"].clone();
    let body = json!({"name": "lab", "description": "four"});
    let old = [("if-match", made.headers["etag"].as_str())];
    assert_eq!(ask(to, "PUT", "/v1/networks/lab", &old, &body).await.status, 412);
    let now = [("if-match", etag.as_str())];
    assert_eq!(ask(to, "PUT", "/v1/networks/lab", &now, &body).await.status, 200);
    assert_eq!(ask(to, "DELETE", "/v1/networks/lab", &now, &Value::Null).await.status, 412);

    // Created once only, with either method.
    let absent = Call::put("/v1/networks/lab").json(&body).unwrap().expect(Expect::Absent);
    refused(client.send(absent).await, Code::AlreadyExists);
    let post = Call::post("/v1/networks").json(&body).unwrap();
    refused(client.send(post).await, Code::AlreadyExists);
    let post = Call::post("/v1/networks").json(&json!({"name": "lab-2"})).unwrap();
    assert_eq!(client.send(post).await.unwrap().status, 201);
    assert_eq!(ask(to, "DELETE", "/v1/networks/lab", &[], &Value::Null).await.status, 204);
    refused(get::<Value>(&client, "/v1/networks/lab").await, Code::NotFound);

    // Of many conditional creations one succeeds.
    let mut racers = Vec::new();
    for at in 0..24 {
        let client = cluster.at(at % 3);
        let body = json!({"name": "race", "description": format!("by {at}")});
        racers.push(tokio::spawn(async move {
            client.send(Call::put("/v1/networks/race").json(&body).unwrap().expect(Expect::Absent)).await
        }));
    }
    let mut won = 0;
    for racer in racers {
        match racer.await.unwrap() {
            Ok(answer) => won += usize::from(answer.status == 201),
            Err(problem) => assert_eq!(problem.code, Code::AlreadyExists),
        }
    }
    assert_eq!(won, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pool_in_use_is_drained_and_goes_with_its_last_address() {
    let cluster = Cluster::up(3).await;
    let client = cluster.ask();
    make_pools(&client).await;
    let first = allocate(&client, &allocate_request("h1", &["web"])).await.unwrap();
    let second = allocate(&client, &allocate_request("h2", &["web", "web6"])).await.unwrap();
    let detail = refused(client.send(Call::delete("/v1/pools/web")).await, Code::InUse);
    assert!(detail.contains('2'), "{detail}");
    refused(client.send(Call::delete("/v1/subnets/web")).await, Code::InUse);

    let draining = client.send(Call::delete("/v1/pools/web?drain=true")).await.unwrap();
    assert_eq!(draining.status, 202);
    let view: View = draining.read().unwrap();
    assert!(view.spec.terminating);
    assert_eq!(view.status.conditions[0].reason, "Terminating");
    // It allocates nothing more, but existing allocations stay and can be requested again.
    refused(allocate(&client, &allocate_request("h3", &["web"])).await, Code::Terminating);
    assert_eq!(
        allocate(&client, &allocate_request("h1", &["web"])).await.unwrap().interfaces,
        first.interfaces
    );

    let id = first.interfaces[0].addresses[0].allocation;
    let gone = client.send(Call::delete(format!("/v1/allocations/{id}"))).await.unwrap();
    assert_eq!(gone.read::<Value>().unwrap()["addresses"], json!([addresses(&first)[0]]));
    refused(client.send(Call::delete(format!("/v1/allocations/{id}"))).await, Code::AllocationChanged);
    let pool: View = get(&client, "/v1/pools/web").await.unwrap();
    assert_eq!(pool.status.counts.allocated, 1);
    client.send(Call::delete("/v1/endpoints/host/default/default/h2")).await.unwrap();
    refused(get::<Value>(&client, "/v1/pools/web").await, Code::NotFound);
    // Both families, as they were allocated together.
    for address in addresses(&second) {
        assert_ne!(known(&client, address).await.state, "allocated");
    }
    assert_eq!(client.send(Call::delete("/v1/subnets/web")).await.unwrap().status, 204);
    assert_eq!(cluster.settled().await.addresses.allocated, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_come_in_pages_that_miss_and_repeat_nothing() {
    let cluster = Cluster::up(3).await;
    let client = cluster.ask();
    make_pools(&client).await;
    for at in 0..25 {
        put(&client, "networks", json!({"name": format!("net-{at:02}")})).await;
        allocate(&client, &allocate_request(&format!("h{at}"), &["web", "web6"])).await.unwrap();
    }
    for (plural, all) in
        [("networks", 26), ("pools", 2), ("subnets", 2), ("endpoints", 25), ("allocations", 50)]
    {
        for limit in [1, 7, 25, 1000] {
            let mut seen: Vec<String> = Vec::new();
            let mut path = format!("/v1/{plural}?limit={limit}");
            loop {
                let at = seen.len() % 3;
                let page: Page<Value> = get(&cluster.at(at), &path).await.unwrap();
                assert!(page.items.len() <= limit);
                seen.extend(page.items.iter().map(|item| {
                    let id = item.get("id").or_else(|| item.get("name"));
                    id.unwrap().to_string()
                }));
                match page.next {
                    Some(next) => {
                        path = format!("/v1/{plural}?limit={limit}&cursor={}", next.replace('/', "%2F"))
                    }
                    None => break,
                }
            }
            let count = seen.len();
            seen.sort_unstable();
            seen.dedup();
            assert_eq!((seen.len(), count), (all, all), "{plural} by {limit}");
        }
    }
    assert_eq!(list::<Value>(&client, "/v1/networks").await.len(), 26);
    assert_eq!(allocations(&client).await.len(), 50);
    // A page is from one state, whose revision it has.
    let page: Page<Value> = get(&client, "/v1/pools").await.unwrap();
    assert!(page.revision > 0 && page.next.is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_is_in_one_state_and_the_counts_add_up() {
    let cluster = Cluster::up(1).await;
    let client = cluster.ask();
    let subnet = json!({"name": "lan", "cidr": "10.1.0.0/28", "gateway": "10.1.0.1"});
    put(&client, "subnets", subnet).await;
    let pool = json!({"name": "lan", "subnet": "lan", "exclude": ["10.1.0.4"], "cooling_ms": 3_600_000});
    put(&client, "pools", pool).await;
    put(&client, "reservations", json!({"name": "kept", "addresses": ["10.1.0.5"]})).await;
    let given = addresses(&allocate(&client, &allocate_request("h1", &["lan"])).await.unwrap())[0];
    let freed = addresses(&allocate(&client, &allocate_request("h2", &["lan"])).await.unwrap())[0];
    client.send(Call::delete("/v1/endpoints/host/default/default/h2")).await.unwrap();
    for (address, state) in [
        ("10.1.0.0", "excluded"),
        ("10.1.0.1", "excluded"),
        (given.to_string().as_str(), "allocated"),
        (freed.to_string().as_str(), "cooling"),
        ("10.1.0.4", "excluded"),
        ("10.1.0.5", "reserved"),
        ("10.1.0.9", "free"),
        ("10.1.0.15", "excluded"),
        ("10.1.0.16", "unmanaged"),
        ("2001:db8::1", "unmanaged"),
    ] {
        assert_eq!(known(&client, address.parse().unwrap()).await.state, state, "{address}");
    }
    let holder = known(&client, given).await.allocation.unwrap();
    assert_eq!(holder.endpoint.to_string(), "host/h1");
    let pool: View = get(&client, "/v1/pools/lan").await.unwrap();
    let counts = pool.status.counts;
    assert_eq!((counts.size, counts.allocated, counts.cooling, counts.reserved), (16, 1, 1, 1));
    let sum = counts.allocated + counts.cooling + counts.quarantined + counts.reserved + counts.excluded;
    assert_eq!(sum + counts.free, counts.size);
}
