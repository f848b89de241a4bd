//! Recorded addresses: reservations that document the addresses of a host, over HTTP and with `ipamctl`.

use serde_json::{Value, json};

use crate::cluster::command_line::ipamctl;
use crate::support::Cluster;
use crate::support::ask::{make_pools, put};
use crate::support::raw::ask;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn addresses_outside_all_pools_are_recorded_for_a_host() {
    let cluster = Cluster::up(1).await;
    make_pools(&cluster.ask()).await;
    let servers = cluster.urls();
    let done = async |line: &str| ipamctl(&servers, line).await.ends(0);
    done("reservation create ipmi --address 192.0.2.7-192.0.2.8 --endpoint host/db-07").await;
    let who = done("who-has 192.0.2.8").await.stdout;
    assert!(who.contains("recorded for host/db-07") && who.contains("reservation  ipmi"), "{who}");
    assert!(!who.contains("CONFLICT"), "{who}");
    // Nothing is allocated, and yet the host is known.
    let shown = done("endpoint show host/db-07").await.stdout;
    assert!(shown.contains("holds nothing") && shown.contains("192.0.2.7-192.0.2.8"), "{shown}");
    ipamctl(&servers, "endpoint show host/db-07 -o json").await.ends(3);
    ipamctl(&servers, "endpoint show host/db-99").await.ends(3);
    done("allocate --endpoint host/db-07 --pool web").await;
    let shown = done("endpoint show host/db-07").await.stdout;
    assert!(shown.contains("192.0.2.7-192.0.2.8") && shown.contains("10.7."), "{shown}");
    let shown = done("endpoint show host/db-07 -o json").await.json();
    assert_eq!(shown["status"]["recorded"][0]["reservation"], "ipmi", "{shown}");

    let taken =
        ipamctl(&servers, "reservation create x --address 192.0.2.8 --endpoint host/db-08").await.ends(1);
    assert!(taken.stderr.contains("ipmi") && taken.stderr.contains("host/db-07"), "{taken:?}");
    done("reservation set ipmi --endpoint host/db-08").await;
    assert!(done("reservation show ipmi").await.stdout.contains("host/db-08"));
    done("reservation set ipmi --no-endpoint").await;
    assert!(!done("who-has 192.0.2.8").await.stdout.contains("recorded for"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_conflict_of_a_recorded_address_is_hidden() {
    let cluster = Cluster::up(1).await;
    let client = cluster.ask();
    make_pools(&client).await;
    let to = cluster.members[0].client;
    let record = |name: &str, address: &str| {
        let endpoint = json!({"kind": "host", "name": name});
        json!({"name": "bmc", "addresses": [address], "endpoint": endpoint})
    };
    let adopt = |name: &str, address: &str| {
        json!({"endpoint": {"kind": "host", "name": name}, "adopt": true,
               "interfaces": [{"name": "eth0", "addresses": [address]}]})
    };
    let holder = ask(to, "POST", "/v1/allocations", &[], &adopt("printer", "10.7.0.9")).await;
    assert_eq!(holder.status, 201);
    let refused = ask(to, "PUT", "/v1/reservations/bmc", &[], &record("db-07", "10.7.0.9")).await;
    let problem = refused.problem();
    assert_eq!((refused.status, problem.code.to_string().as_str()), (409, "address-taken"), "{problem:?}");
    assert!(problem.detail.contains("host/printer"), "{problem:?}");

    put(&client, "reservations", record("db-07", "10.7.0.10")).await;
    let own = ask(to, "POST", "/v1/allocations", &[], &adopt("db-07", "10.7.0.10")).await;
    assert_eq!(own.status, 201, "its own host may have it");
    let shown = async || -> Value { ask(to, "GET", "/v1/reservations/bmc", &[], &Value::Null).await.json() };
    assert_eq!(shown().await["status"], json!({"held": 1}));
    assert_eq!(
        ask(to, "DELETE", "/v1/endpoints/host/default/default/db-07", &[], &Value::Null).await.status,
        200
    );
    let foreign = ask(to, "POST", "/v1/allocations", &[], &adopt("switch", "10.7.0.10")).await;
    assert_eq!(foreign.status, 201, "an adoption reports a fact");
    assert_eq!(shown().await["status"], json!({"held": 1, "conflicts": ["10.7.0.10"]}));
    let address: Value = ask(to, "GET", "/v1/addresses/10.7.0.10", &[], &Value::Null).await.json();
    assert_eq!(address["recorded_for"]["name"], "db-07", "{address}");
    assert_eq!(address["allocation"]["endpoint"]["name"], "switch", "{address}");
    assert_eq!(address["reservation"], "bmc", "{address}");
    let servers = cluster.urls();
    let who = ipamctl(&servers, "who-has 10.7.0.10").await.ends(0).stdout;
    assert!(who.contains("host/switch") && who.contains("host/db-07   CONFLICT"), "{who}");
    let shown = ipamctl(&servers, "reservation show bmc").await.ends(0).stdout;
    assert!(shown.contains("CONFLICT") && shown.contains("10.7.0.10"), "{shown}");
    let list: Value = ask(to, "GET", "/v1/reservations?endpoint=host/db-07", &[], &Value::Null).await.json();
    assert_eq!(list["items"].as_array().unwrap().len(), 1, "{list}");
    let none: Value = ask(to, "GET", "/v1/reservations?endpoint=host/switch", &[], &Value::Null).await.json();
    assert_eq!(none["items"], json!([]));

    let wide = record("db-07", "192.0.2.0/23");
    let refused = ask(to, "PUT", "/v1/reservations/bmc", &[], &wide).await;
    assert_eq!(refused.problem().code.to_string(), "limit-exceeded");
}
