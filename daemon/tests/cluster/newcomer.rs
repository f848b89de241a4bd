//! First steps of a user: words that are typed, and what the command line answers.

use serde_json::json;

use super::command_line::ipamctl;
use crate::support::Cluster;

/// Lists whose items exist in the test, and the columns that have no order: sets, and computed values.
const LISTS: [(&str, &[&str]); 9] = [
    ("network", &["LABELS", "DESCRIPTION"]),
    ("subnet", &["LABELS", "ROUTES", "DNS", "DESCRIPTION"]),
    ("pool", &["USE", "RANGES", "LABELS"]),
    ("reservation", &["ADDRESSES", "LABELS", "DESCRIPTION"]),
    ("node", &["LABELS", "DESCRIPTION"]),
    ("namespace", &["IPV4 POOLS", "IPV6 POOLS", "LABELS", "DESCRIPTION"]),
    ("endpoint", &["ADDRESSES", "INTERFACES", "NODE"]),
    ("allocation", &[]),
    ("token", &["LIMITED TO", "DESCRIPTION"]),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn first_steps() {
    let cluster = Cluster::up(1).await;
    let servers = cluster.urls();
    let done = async |line: &str| ipamctl(&servers, line).await.ends(0);
    done("subnet create lan --cidr 10.1.0.0/28 --gateway 10.1.0.1").await;
    done("pool create web --subnet lan --range 10.1.0.2-10.1.0.5").await;
    done("pool create db --subnet lan --range 10.1.0.6-10.1.0.7 --gateway 10.1.0.14").await;
    done("reservation create printers --range 10.1.0.13").await;
    done("node create worker-3").await;
    done("namespace create shop").await;
    done("token create ci --role viewer -q").await;
    done("allocate --endpoint host/a --pool web").await;
    done("allocate --endpoint host/b --pool db").await;

    // Each column of a table sorts its list.
    for (noun, without) in LISTS {
        let table = done(&format!("{noun} list -o wide")).await.stdout;
        let titles =
            table.lines().next().unwrap().split("  ").map(str::trim).filter(|title| !title.is_empty());
        for title in titles.filter(|title| !without.contains(title)) {
            done(&format!("{noun} list --sort-by {}", title.replace(' ', "_"))).await;
        }
    }

    // A changed gateway names the holders that keep the old one.
    let set = done("subnet set lan --gateway 10.1.0.12").await.stderr;
    assert!(set.contains("keep gateway 10.1.0.1 until they are recreated: host/a (10.1.0.2)"), "{set}");
    assert!(!set.contains("host/b") && set.contains("ipamctl allocation list --subnet lan"), "{set}");
    assert!(done("allocation list --subnet lan").await.stdout.contains("host/a"));
    let set = done("pool set db --gateway 10.1.0.11").await.stderr;
    assert!(set.contains("keep gateway 10.1.0.14 until they are recreated: host/b (10.1.0.6)"), "{set}");
    let same = done("pool set db --gateway 10.1.0.11").await.stderr;
    assert!(!same.contains("keep gateway"), "{same}");

    // A pool that is being deleted has nothing to allocate, and the way back is named.
    let deleted = done("pool delete web --yes").await.stderr;
    assert!(deleted.contains("undo: ipamctl pool set web --no-drain"), "{deleted}");
    let list = done("pool list --sort-by name").await.stdout;
    let row: Vec<&str> = list.lines().last().unwrap().split_whitespace().collect();
    assert_eq!(&row[..5], ["web", "10.1.0.0/28", "4", "-", "1"], "{list}");
    let shown = done("pool show web").await.stdout;
    assert!(shown.contains("unassigned 3") && !shown.contains("free"), "{shown}");
    done("pool set web --no-drain").await;

    // Errors name the resource of a file and types of JSON, and commands of other systems lead to ours.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pools.yaml");
    std::fs::write(&file, "kind: pool\nname: new\nsubnet: lan\nranges: [10.1.0.2]\n").unwrap();
    let refused = ipamctl(&servers, &format!("apply -f {}", file.display())).await.ends(1).stderr;
    assert!(
        refused.contains("pool new of ") && !refused.contains("steps[") && !refused.contains("step 0"),
        "{refused}"
    );
    let many = format!("[{}]", "0, ".repeat(250_000));
    std::fs::write(&file, format!("a: {many}\n")).unwrap();
    let refused = ipamctl(&servers, &format!("apply -f {}", file.display())).await.ends(2).stderr;
    assert!(refused.contains("limits of a YAML file") && !refused.contains("Nodes {"), "{refused}");
    for (line, words) in [
        ("restore prod.ipamd", "ipamd restore FILE"),
        ("cluster restore prod.ipamd", "ipamd restore FILE"),
        ("cluster add n4", "ipamctl token member"),
        ("upgrade", "Roll back in the same way"),
        ("export", "-o yaml"),
    ] {
        let refused = ipamctl(&servers, line).await.ends(2).stderr;
        assert!(refused.contains(words) && !refused.contains("similar"), "{line}: {refused}");
    }
    assert!(done("address list").await.stderr.contains("ipamctl allocation list"));

    let body = json!({"endpoint": "host/a", "interfaces": [{"name": "eth0"}]});
    let refused = allocation_refused(&cluster, &body).await;
    assert!(refused.contains("expected an object") && !refused.contains("struct"), "{refused}");
}

/// The detail of a refused allocation.
async fn allocation_refused(cluster: &Cluster, body: &serde_json::Value) -> String {
    let call = ipam_api::client::Call::post("/v1/allocations").json(body).unwrap();
    cluster.ask().send(call).await.unwrap_err().detail
}
