//! The real `ipamctl`: files of resources, labels, fields, tokens and repetitions.

use serde_json::json;

use crate::cluster::command_line::ipamctl;
use crate::support::Cluster;

const FILE: &str = "\
kind: pool
name: web
subnet: lan
ranges: [10.1.0.10-10.1.0.19]
labels: {team: web}
---
kind: subnet
name: lan
cidr: 10.1.0.0/24
gateway: 10.1.0.1
---
kind: pool
name: lab
subnet: lan
ranges: [10.1.0.20-10.1.0.29]
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_are_made_so_in_one_step() {
    let cluster = Cluster::up(3).await;
    let servers = cluster.urls();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("all.yaml");
    let at = file.display();
    let ends = async |line: &str, code: i32| ipamctl(&servers, line).await.ends(code);

    std::fs::write(&file, FILE).unwrap();
    let diff = ends(&format!("diff -f {at}"), 7).await.stdout;
    assert!(diff.contains("+ subnet lan") && diff.contains("+ pool web"), "{diff}");
    ends(&format!("apply -f {at} --manager infra --dry-run"), 0).await;
    ends("pool show web", 3).await;
    let applied = ends(&format!("apply -f {at} --manager infra --comment NET-4711"), 0).await;
    assert!(applied.stderr.contains("3 changes in one transaction at revision"), "{applied:?}");
    ends(&format!("diff -f {at} --manager infra"), 0).await;
    ends(&format!("apply -f {at} --manager infra"), 0).await;

    // What is shown can be sent back.
    let shown = ends("pool list -o yaml", 0).await.stdout;
    std::fs::write(folder.path().join("shown.yaml"), shown).unwrap();
    ends(&format!("diff -f {}/shown.yaml", folder.path().display()), 0).await;

    // Other managers can't change it without `--take-over`.
    let foreign = ends("pool set web --cooling 1m", 1).await;
    assert!(foreign.stderr.contains("managed by") && foreign.stderr.contains("infra"), "{foreign:?}");
    ends("pool set web --cooling 1m --take-over --dry-run", 0).await;
    ends("pool set web --cooling 1m --label team- --label team2=web --manager infra", 0).await;
    let labels = ends("pool show web -o jsonpath={.labels}", 0).await.stdout;
    assert_eq!(labels, "{\"team2\":\"web\"}\n");

    // A transaction with a refused step changes nothing.
    let bad = FILE.replace("10.1.0.20-10.1.0.29", "10.1.0.15-10.1.0.29").replace("name: lab", "name: more");
    std::fs::write(&file, bad).unwrap();
    let refused = ends(&format!("apply -f {at} --manager infra"), 1).await;
    assert!(refused.stderr.contains("overlap: pool more of"), "{refused:?}");
    assert_eq!(ends("pool show web -o jsonpath={.cooling_ms}", 0).await.stdout, "60000\n");

    // Resources that the files no longer have are deleted, or drained if they are in use.
    ends("allocate --endpoint host/h1 --pool lab", 0).await;
    let (web, _) = FILE.rsplit_once("---").unwrap();
    std::fs::write(&file, web).unwrap();
    ends(&format!("apply -f {at} --manager infra --prune"), 2).await;
    ends(&format!("apply -f {at} --manager infra --prune --yes"), 0).await;
    assert_eq!(ends("pool show lab -o jsonpath={.terminating}", 0).await.stdout, "true\n");
    ends("release --endpoint host/h1", 0).await;
    ends("pool show lab", 3).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_are_narrowed_and_writes_are_known_again() {
    let cluster = Cluster::up(3).await;
    let servers = cluster.urls();
    let done = async |line: &str| ipamctl(&servers, line).await.ends(0);
    done("subnet create lan --cidr 10.1.0.0/24").await;
    done("pool create small --subnet lan --range 10.1.0.10-10.1.0.11 --label team=web").await;
    let create =
        "pool create large --subnet lan --range 10.1.0.20-10.1.0.99 --label team=db --idempotency-key k1";
    done(create).await;
    let again = done(create).await;
    assert!(again.stderr.contains("already applied"), "{again:?}");
    done("allocate --endpoint host/h1 --pool small").await;

    assert_eq!(done("pool list -l team=web -o name").await.stdout, "small\n");
    assert_eq!(done("pool list -l team!=web -o name").await.stdout, "large\n");
    assert_eq!(done("pool list --sort-by -free -o name").await.stdout, "large\nsmall\n");
    assert_eq!(done("pool list --sort-by free -o name --limit 1").await.stdout, "small\n");
    let free = done("pool list --field name,status.counts.free --no-headers --sort-by name").await.stdout;
    assert_eq!(free, "large  80\nsmall   1\n");
    assert_eq!(done("pool list --field name -o csv --subnet lan").await.stdout, "name\nlarge\nsmall\n");
    let listed = done("allocation list --field pool,endpoint.name -o json --endpoint host/h1").await.json();
    assert_eq!(listed["items"], json!([{"pool": "small", "endpoint": {"name": "h1"}}]));
    let revision = done("pool list -o jsonpath={.revision}").await.stdout;
    done(&format!("pool list --at-least-revision {}", revision.trim())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_are_made_and_their_secrets_kept() {
    let cluster = Cluster::up(1).await;
    let servers = cluster.urls();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ci.token");
    let done = async |line: &str| ipamctl(&servers, line).await.ends(0);
    let made = done(&format!("token create ci --role viewer --ttl 1h --to-file {}", file.display())).await;
    let secret = std::fs::read_to_string(&file).unwrap();
    assert!(secret.starts_with("ipamd_") && !made.stderr.contains(secret.trim()), "{made:?}");
    assert!(done("token list").await.stdout.contains("ci    viewer"));
    let asking = format!("--token-file {}", file.display());
    done(&format!("{asking} pool list")).await;
    ipamctl(&servers, &format!("{asking} network create lab")).await.ends(1);
    let rotated = done("token rotate ci --yes").await;
    assert!(rotated.stdout.starts_with("ipamd_") && rotated.stdout != secret, "{rotated:?}");
    ipamctl(&servers, &format!("{asking} pool list")).await.ends(1);
    assert!(done("token join --ttl 10m").await.stdout.starts_with("ipamd_"));
    done("token delete ci --yes").await;
    let bundle = folder.path().join("bundle.tar");
    let printed = done(&format!("support bundle {}", bundle.display())).await;
    assert!(printed.stdout.contains("no tokens"), "{printed:?}");
}

/// Output of `kubectl get spidersubnets -o yaml`.
const SPIDER_SUBNETS: &str = "\
apiVersion: v1
items:
- apiVersion: spiderpool.spidernet.io/v2beta1
  kind: SpiderSubnet
  metadata:
    creationTimestamp: \"2026-03-02T09:14:55Z\"
    finalizers: [spiderpool.spidernet.io]
    generation: 1
    labels: {ipam.spidernet.io/subnet-cidr: 10-1-0-0-24, team: web}
    name: lan
    resourceVersion: \"4819\"
    uid: 0b9d1a1e-5c5c-4f43-9a51-7f5b1f7f8f11
  spec:
    excludeIPs: [10.1.0.40]
    gateway: 10.1.0.1
    ipVersion: 4
    ips: [10.1.0.40-10.1.0.99]
    routes: [{dst: 10.99.0.0/16, gw: 10.1.0.2}]
    subnet: 10.1.0.0/24
  status: {allocatedIPCount: 0, totalIPCount: 59}
- apiVersion: spiderpool.spidernet.io/v2beta1
  kind: SpiderSubnet
  metadata: {name: lan-v6}
  spec: {subnet: \"fd00:1::/64\", excludeIPs: [\"fd00:1:0::9\"]}
kind: List
metadata: {resourceVersion: \"\"}
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn spider_subnets_are_taken_over() {
    let cluster = Cluster::up(1).await;
    let servers = cluster.urls();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("spidersubnets.yaml");
    let at = file.display();
    let ends = async |line: &str, code: i32| ipamctl(&servers, line).await.ends(code);
    std::fs::write(&file, SPIDER_SUBNETS).unwrap();

    let diff = ends(&format!("diff -f {at}"), 7).await.stdout;
    assert!(diff.contains("+ subnet lan ") && diff.contains("+ subnet lan-v6 "), "{diff}");
    ends(&format!("apply -f {at}"), 0).await;
    ends(&format!("diff -f {at}"), 0).await;
    let automatic = ends("subnet show lan -o jsonpath={.automatic}", 0).await.json();
    assert_eq!(automatic, json!({"ranges": ["10.1.0.40-10.1.0.99"], "exclude": ["10.1.0.40"]}));
    let labels = ends("subnet show lan -o jsonpath={.labels}", 0).await.json();
    assert_eq!(labels, json!({"team": "web"}));

    // A pool of the application's own begins with the first address that isn't excluded.
    let pod = "allocate --endpoint pod/shop/web-0 --controller apps/Deployment/web --replicas 2 --annotation";
    let given =
        ends(&format!("{pod} ipam.spidernet.io/subnet={{\"ipv4\":[\"lan\"]}} -o json"), 0).await.json();
    assert_eq!(given["interfaces"][0]["addresses"][0]["address"], "10.1.0.41/24", "{given}");
    // Without `ips` no pool may be cut from a subnet.
    let other = pod.replace("web-0", "web-1");
    let refused = ends(&format!("{other} ipam.spidernet.io/subnet={{\"ipv6\":[\"lan-v6\"]}}"), 1).await;
    assert!(refused.stderr.contains("lan-v6"), "{refused:?}");

    std::fs::write(&file, SPIDER_SUBNETS.replace("SpiderSubnet", "SpiderIPPool")).unwrap();
    let refused = ends(&format!("apply -f {at}"), 2).await;
    assert!(refused.stderr.contains("only SpiderSubnet is"), "{refused:?}");
}
