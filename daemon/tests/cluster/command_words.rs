//! Every option of `ipamctl` has an effect, and its output is correct.

use serde_json::{Value, json};

use crate::cluster::command_line::ipamctl;
use crate::support::Cluster;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scope_options_narrow_lists_and_are_never_ignored() {
    let cluster = Cluster::up(1).await;
    let servers = cluster.urls();
    let done = async |line: &str| ipamctl(&servers, line).await.ends(0).stdout;
    done("network create q-net").await;
    done("subnet create lan --cidr 10.1.0.0/24").await;
    done("subnet create q-lan --cidr 10.1.0.0/24 --network q-net").await;
    done("pool create web --subnet lan").await;
    done("pool create qq --subnet q-lan --network q-net").await;
    ipamctl(&servers, "pool create q2 --subnet q-lan --network default").await.ends(2);
    done("allocate --endpoint host/a --pool web -n selns").await;
    done("allocate --endpoint host/b --pool w*").await;
    done("allocate --endpoint host/c --pool qq --realm prod-eu --network q-net").await;
    done("node create worker-3 --realm prod-eu").await;
    done("node create worker-4").await;
    done("namespace create shop --realm prod-eu").await;
    for (line, names) in [
        ("-n selns endpoint list -o name", "host/selns/a\n"),
        ("--realm prod-eu endpoint list -o name", "host/prod-eu/default/c\n"),
        ("endpoint list -n default --realm default -o name", "host/b\n"),
        ("allocation list --namespace selns --field endpoint.name -o csv", "endpoint.name\na\n"),
        ("allocation list --realm prod-eu --field endpoint.name -o csv", "endpoint.name\nc\n"),
        ("allocation list --network q-net --field endpoint.name -o csv", "endpoint.name\nc\n"),
        ("node list --realm prod-eu -o name", "prod-eu/worker-3\n"),
        ("namespace list --realm default -o name", ""),
        ("pool list --network q-net -o name", "qq\n"),
    ] {
        assert_eq!(done(line).await, names, "{line}");
    }
    assert_eq!(done("endpoint list -o name").await.lines().count(), 3);
    ipamctl(&servers, "pool list -n selns").await.ends(2);
    for line in ["pool show qq --network default", "allocate --endpoint host/d --pool qq --network default"] {
        let refused = ipamctl(&servers, line).await.ends(2);
        assert!(refused.stderr.contains("pool qq is in network q-net"), "{refused:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn programs_get_one_document_whatever_happens() {
    let cluster = Cluster::up(1).await;
    let servers = cluster.urls();
    let done = async |line: &str| ipamctl(&servers, line).await.ends(0);
    done("subnet create lan --cidr 10.1.0.0/24").await;
    done("pool create web --subnet lan").await;
    done("allocate --endpoint host/a --pool web --address 10.1.0.7").await;
    let held = ipamctl(&servers, "pool set web --exclude 10.1.0.7 --yes -o json").await.ends(1);
    let problem: Value = serde_json::from_str(&held.stderr).unwrap();
    assert_eq!((held.stdout.as_str(), &problem["code"]), ("", &json!("in-use")), "{problem}");
    assert!(problem["help"].as_str().unwrap().contains("ipamctl allocation list --pool web"), "{problem}");
    let twice = ipamctl(&servers, "pool set web --label a=b --label a- -o json").await.ends(2);
    assert_eq!(serde_json::from_str::<Value>(&twice.stderr).unwrap()["code"], "invalid-field");
    done("release --endpoint host/a -o json").await.json();
    let tried = done("pool delete web -o json --dry-run").await.json();
    assert_eq!((&tried["name"], &tried["deleted"]), (&json!("web"), &json!(false)));
    for (line, name) in [("pool delete web -o json", "web"), ("subnet delete lan -o json", "lan")] {
        let gone = done(line).await.json();
        assert_eq!((&gone["name"], &gone["deleted"]), (&json!(name), &json!(true)), "{gone}");
    }
    assert_eq!(done("network create lab -o json").await.json()["name"], "lab");
    assert!(done("network delete lab --confirm lab -o yaml").await.stdout.contains("deleted: true"));
    done("token create ci --role viewer -o json").await.json();
    assert_eq!(done("token delete ci -o json --yes").await.json()["deleted"], true);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hint_after_a_release_works_or_is_not_there() {
    let cluster = Cluster::up(1).await;
    let servers = cluster.urls();
    let done = async |line: &str| ipamctl(&servers, line).await.ends(0);
    done("subnet create lan --cidr 10.1.0.0/24").await;
    done("subnet create lan6 --cidr 2001:db8:1::/64").await;
    done("pool create web --subnet lan").await;
    done("pool create web6 --subnet lan6").await;
    done("reservation create printers --address 10.1.0.9").await;
    done("allocate --endpoint host/lab/both --pool web --address 10.1.0.7 --pool web6").await;
    done("allocate --endpoint host/lease --pool web --address 10.1.0.8 --ttl 8h --node n1").await;
    done("allocate --endpoint host/printer --address 10.1.0.9 --adopt").await;
    for (address, works) in [("10.1.0.7", false), ("10.1.0.8", true), ("10.1.0.9", true)] {
        let released = done(&format!("release {address}")).await;
        let hint = released.stderr.trim().split_once("back again: ipamctl ");
        assert_eq!(hint.is_some(), works, "{released:?}");
        let Some((_, line)) = hint else { continue };
        let again = done(line).await;
        assert!(again.stdout.contains(&format!("{address}/24")), "{line}: {again:?}");
        assert_eq!(
            line.contains("--ttl 8h --node n1") || line.contains("--node n1 --ttl 8h"),
            address == "10.1.0.8"
        );
        assert_eq!(line.contains("--adopt"), address == "10.1.0.9", "{line}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_what_has_been_is_known() {
    let cluster = Cluster::up(1).await;
    let servers = cluster.urls();
    ipamctl(&servers, "subnet create lan --cidr 10.1.0.0/24").await.ends(0);
    let future = ipamctl(&servers, "who-has 10.1.0.7 --at 2999-01-01T00:00:00Z").await.ends(2);
    assert!(future.stderr.contains("is in the future"), "{future:?}");
    let before = ipamctl(&servers, "who-has 10.1.0.7 --at 2001-01-01T00:00:00Z").await.ends(0);
    assert!(before.stdout.contains("unknown") && before.stdout.contains("begins at"), "{before:?}");
}
