//! Tests of files against a fake server.

use serde_json::{Value, json};

use crate::tests::{code, pool, pretend, run};

const FILE: &str = "kind: pool\nname: web\nsubnet: lan-10\nranges: [10.10.0.50-10.10.0.229]\n\
    labels: {team: web}\n---\nkind: subnet\nname: lan-12\ncidr: 10.12.0.0/24\n---\n\
    kind: pool\nname: web-c\nsubnet: lan-12\nranges: [10.12.0.10-10.12.0.209]\n";

fn managed(name: &str, held: u64) -> Value {
    let mut pool = pool(name, held);
    pool["managed_by"] = "argocd".into();
    pool
}

/// Answers of a server with the pool `web`, and the pools `old` and `older` of manager argocd.
fn answers(method: &str, path: &str, _: usize) -> Option<(u16, Value)> {
    let mut web = pool("web", 0);
    web.as_object_mut().unwrap().remove("weight");
    let (mut old, mut older) = (managed("old", 11), managed("older", 0));
    for pool in [&mut old, &mut older] {
        pool.as_object_mut().unwrap().remove("weight");
    }
    match (method, path) {
        ("GET", path) if path.starts_with("/v1/pools?") => {
            Some((200, json!({"items": [old, older, web], "revision": 7})))
        }
        ("GET", _) => Some((200, json!({"items": [], "revision": 7}))),
        ("POST", path) if path.contains("dry_run=true") => Some((200, json!({"dry": true}))),
        ("POST", _) => Some((200, json!({"results": [], "revision": 48211970}))),
        _ => None,
    }
}

async fn with_file(text: &str, line: &str) -> (u8, String, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("all.yaml");
    std::fs::write(&file, text).unwrap();
    let (server, seen) = pretend(answers).await;
    let (result, text) = run(&server, &line.replace("FILE", file.to_str().unwrap())).await;
    let seen = seen.lock().unwrap().clone();
    (code(&result), text, seen)
}

fn sent(seen: &[String]) -> Value {
    let line = seen.iter().find(|line| line.starts_with("POST")).unwrap();
    serde_json::from_str(line.split_once(" {").map(|(_, body)| format!("{{{body}")).unwrap().as_str())
        .unwrap()
}

#[tokio::test]
async fn a_difference_is_shown_and_exits_with_seven() {
    let (code, text, seen) = with_file(FILE, "diff -f FILE").await;
    assert_eq!(code, 7);
    assert_eq!(
        text,
        "+ subnet lan-12   10.12.0.0/24, network default\n\
         ~ pool web        ranges   10.10.0.50-10.10.0.199 → 10.10.0.50-10.10.0.229   (+30 addresses)\n\
         + pool web-c      subnet lan-12, 200 addresses\n"
    );
    assert!(seen.iter().all(|line| line.starts_with("GET")));
    let (code, text, _) = with_file(
        "kind: pool\nname: web\nsubnet: lan-10\nranges: [10.10.0.50-10.10.0.199]\nlabels: {team: web}",
        "diff -f FILE",
    )
    .await;
    assert_eq!((code, text.as_str()), (0, ""));
    let (code, text, _) = with_file(FILE, "diff -f FILE -o json").await;
    let plan: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((code, plan["changes"][1]["fields"][0]["field"].as_str()), (7, Some("ranges")));
}

#[tokio::test]
async fn files_go_in_one_step() {
    let (code, text, seen) = with_file(FILE, "apply -f FILE --comment NET-4711 -o json").await;
    assert_eq!(code, 0);
    assert!(text.contains("48211970"));
    let posts: Vec<&String> = seen.iter().filter(|line| !line.starts_with("GET")).collect();
    assert_eq!(posts.len(), 1);
    assert!(
        posts[0].starts_with("POST /v1/transactions change-comment:NET-4711 idempotency-key:"),
        "{}",
        posts[0]
    );
    let sent = sent(&seen);
    assert_eq!(
        sent["if"],
        json!([{"path": "/v1/subnets/lan-12", "absent": true}, {"path": "/v1/pools/web-c", "absent": true}])
    );
    let paths: Vec<&str> =
        sent["steps"].as_array().unwrap().iter().map(|step| step["path"].as_str().unwrap()).collect();
    assert_eq!(paths, ["/v1/subnets/lan-12", "/v1/pools/web", "/v1/pools/web-c"]);
    assert_eq!(sent["steps"][1]["if_match"], "1204");
    assert_eq!(sent["steps"][1]["body"]["ranges"], json!(["10.10.0.50-10.10.0.229"]));
    assert_eq!(sent["steps"][1]["body"].get("meta"), None);
}

#[tokio::test]
async fn a_file_that_was_made_from_an_older_state_does_not_undo_a_newer_one() {
    let (_, _, seen) = with_file("name: web\nsubnet: lan-10\nmeta: {revision: 9}\n", "apply -f FILE").await;
    assert_eq!(sent(&seen)["steps"][0]["if_match"], "9");
}

#[tokio::test]
async fn resources_missing_from_the_files_are_pruned_on_request() {
    let (_, text, _) = with_file(FILE, "diff -f FILE --manager argocd").await;
    assert!(text.contains("! pool old        not in these files (kept; --prune would delete it: 11 in use, so it would drain)\n"), "{text}");
    let (code, _, seen) = with_file(FILE, "apply -f FILE --manager argocd --prune").await;
    assert_eq!(
        (code, seen.iter().any(|line| line.starts_with("POST"))),
        (2, false),
        "it has to be said twice"
    );
    let (code, _, _) = with_file(FILE, "apply -f FILE --manager argocd --prune --dry-run").await;
    assert_eq!(code, 0);
    let (code, _, seen) = with_file(FILE, "apply -f FILE --manager argocd --prune --yes").await;
    assert_eq!(code, 0);
    let steps = sent(&seen)["steps"].clone();
    assert_eq!((&steps[0]["method"], &steps[0]["body"]["terminating"]), (&json!("PUT"), &json!(true)));
    assert_eq!((&steps[1]["method"], &steps[1]["path"]), (&json!("DELETE"), &json!("/v1/pools/older")));
    assert_eq!(steps[2]["body"]["managed_by"], "argocd");
}

#[tokio::test]
async fn a_resource_of_another_manager_is_changed_with_take_over_only() {
    let text = "kind: pool\nname: old\nsubnet: lan-10\n";
    let (code, _, seen) = with_file(text, "apply -f FILE").await;
    assert_eq!((code, seen.iter().any(|line| line.starts_with("POST"))), (1, false));
    let (code, _, seen) = with_file(text, "apply -f FILE --take-over").await;
    assert_eq!(code, 0);
    assert!(seen.last().unwrap().starts_with("POST /v1/transactions?take_over=true "));
}

#[tokio::test]
async fn more_than_one_step_takes_is_refused_with_the_number() {
    let many: String = (0..1025).map(|n| format!("kind: network\nname: n{n}\n---\n")).collect();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("many.yaml");
    std::fs::write(&file, many).unwrap();
    let (server, seen) = pretend(answers).await;
    let (result, _) = run(&server, &format!("apply -f {}", file.display())).await;
    let said = result.unwrap_err().text(false).unwrap();
    assert!(said.contains("1025 changes") && said.contains("1024"), "{said}");
    assert!(seen.lock().unwrap().iter().all(|line| line.starts_with("GET")));
}

#[tokio::test]
async fn a_refused_step_is_said_with_its_file() {
    let (server, _) = pretend(|method, path, before| match method {
        "POST" => {
            let problem = ipam_api::Problem::new(ipam_api::Code::Overlap, "the ranges overlap with pool db");
            let problem = problem.with(|context| context.step = Some(1));
            Some((409, serde_json::to_value(problem).unwrap()))
        }
        _ => answers(method, path, before),
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("all.yaml");
    std::fs::write(&file, FILE).unwrap();
    let (result, _) = run(&server, &format!("apply -f {}", file.display())).await;
    let said = result.unwrap_err().text(false).unwrap();
    let expected = format!("overlap: pool web of {}, document 1: the ranges overlap", file.display());
    assert!(said.starts_with(&expected) && said.contains("Nothing was changed."), "{said}");
}

/// Two SpiderSubnets as `kubectl get spidersubnets -o yaml` prints them, and an ipamd document.
const SPIDER_SUBNETS: &str = r#"apiVersion: v1
items:
- apiVersion: spiderpool.spidernet.io/v2beta1
  kind: SpiderSubnet
  metadata:
    annotations:
      kubectl.kubernetes.io/last-applied-configuration: |
        {"apiVersion":"spiderpool.spidernet.io/v2beta1","kind":"SpiderSubnet"}
    creationTimestamp: "2026-03-02T09:14:55Z"
    deletionGracePeriodSeconds: 0
    deletionTimestamp: "2026-11-02T09:14:55Z"
    finalizers:
    - spiderpool.spidernet.io
    generation: 3
    labels:
      ipam.spidernet.io/subnet-cidr: 10-12-0-0-24
      team: web
    managedFields:
    - apiVersion: spiderpool.spidernet.io/v2beta1
      manager: kubectl
    name: lan-12
    ownerReferences: []
    resourceVersion: "48190233"
    uid: 0b9d1a1e-5c5c-4f43-9a51-7f5b1f7f8f11
  spec:
    excludeIPs:
    - 10.12.0.50
    gateway: 10.12.0.1
    ipVersion: 4
    ips:
    - 10.12.0.40-10.12.0.99
    - 10.12.0.120
    routes:
    - dst: 10.99.0.0/16
      gw: 10.12.0.2
    subnet: 10.12.0.0/24
    vlan: 12
  status:
    allocatedIPCount: 4
    controlledIPPools: '{"auto4-web-eth0-7b5f3":{"ips":["10.12.0.40-10.12.0.43"]}}'
    totalIPCount: 60
- apiVersion: spiderpool.spidernet.io/v2beta1
  kind: SpiderSubnet
  metadata:
    creationTimestamp: null
    name: lan-12-v6
  spec:
    excludeIPs:
    - fd00:0:0:12::5
    subnet: fd00:0:0:12::/64
    vlan: 0
kind: List
metadata:
  resourceVersion: ""
---
kind: pool
name: web-c
subnet: lan-12
ranges: [10.12.0.10-10.12.0.29]
"#;

#[tokio::test]
async fn spider_subnets_become_subnets_beside_our_own_documents() {
    let (code, text, seen) = with_file(SPIDER_SUBNETS, "apply -f FILE --dry-run").await;
    assert_eq!(code, 0);
    assert_eq!(
        text,
        "+ subnet lan-12      10.12.0.0/24, network default\n\
         + subnet lan-12-v6   fd00:0:0:12::/64, network default\n\
         + pool web-c         subnet lan-12, 20 addresses\n"
    );
    let steps = &sent(&seen)["steps"];
    let body = |step: usize, fields: &[&str]| -> Vec<Value> {
        fields.iter().map(|field| steps[step]["body"][*field].clone()).collect()
    };
    let subnet =
        body(0, &["name", "cidr", "gateway", "vlan", "routes", "labels", "automatic", "annotations"]);
    assert_eq!(
        subnet,
        [
            json!("lan-12"),
            json!("10.12.0.0/24"),
            json!("10.12.0.1"),
            json!(12),
            json!([{"destination": "10.99.0.0/16", "gateway": "10.12.0.2"}]),
            json!({"team": "web"}),
            json!({"ranges": ["10.12.0.40-10.12.0.99", "10.12.0.120"], "exclude": ["10.12.0.50"]}),
            json!({}),
        ]
    );
    // Without `ips`, the SpiderSubnet allows no automatic pools, regardless of its exclusions.
    let second = body(1, &["name", "gateway", "vlan", "routes", "automatic"]);
    assert_eq!(second, [json!("lan-12-v6"), Value::Null, Value::Null, Value::Null, Value::Null]);
}

#[tokio::test]
async fn addresses_of_spider_subnets_are_read_in_all_their_forms() {
    let text = r#"{"apiVersion": "spiderpool.spidernet.io/v2beta1", "kind": "SpiderSubnet", "status": {},
        "metadata": {"name": "six"}, "spec": {"subnet": "FD00:12:0:0::/64", "ipVersion": 6,
        "ips": ["fd00:12::10-fd00:12:0:0:0:0:0:1f", "fd00:12::00ff"]}}"#;
    let (code, _, seen) = with_file(text, "apply -f FILE --manager argocd").await;
    assert_eq!(code, 0);
    let body = sent(&seen)["steps"][0]["body"].clone();
    assert_eq!(body["cidr"], "fd00:12::/64");
    assert_eq!(body["automatic"], json!({"ranges": ["fd00:12::10-fd00:12::1f", "fd00:12::ff"]}));
    assert_eq!(body["managed_by"], "argocd");
}

#[tokio::test]
async fn a_long_name_of_a_spider_subnet_is_converted_and_kept_in_an_annotation() {
    let foreign = format!("{}lan-12", "rack-7.row-3.".repeat(6));
    let name = ipam_api::name::ObjectName::new(&foreign).unwrap();
    let name = ipam_api::name::Name::from_foreign(&name).to_string();
    let text = SPIDER_SUBNETS.replacen("name: lan-12\n", &format!("name: {foreign}\n"), 1);
    let text = text.replace("subnet: lan-12\n", &format!("subnet: {name}\n"));
    let (code, shown, seen) = with_file(&text, "apply -f FILE").await;
    assert_eq!(code, 0, "{shown}");
    let steps = sent(&seen)["steps"].clone();
    let step = steps.as_array().unwrap().iter().find(|step| step["body"]["name"] == *name).unwrap();
    assert_eq!(step["path"], format!("/v1/subnets/{name}"));
    assert_eq!(step["body"]["annotations"], json!({"ipamd.internal/foreign-name": foreign}));
}

#[tokio::test]
async fn an_unsupported_field_of_spider_subnets_is_refused() {
    let long = format!("name: {}", "n".repeat(254));
    let whole = SPIDER_SUBNETS;
    for (from, to, said) in [
        (
            "excludeIPs:\n    - 10",
            "excludeIP:\n    - 10",
            "spec.excludeIP: unknown field \"excludeIP\"; did you mean \"excludeIPs\"?",
        ),
        ("gateway: 10", "mtu: 9000\n    gateway: 10", "spec.mtu: unknown field \"mtu\""),
        ("vlan: 12", "vlan: -1", "spec.vlan"),
        ("dst:", "destination:", "spec.routes.0.destination: unknown field \"destination\""),
        ("      gw: 10.12.0.2\n", "", "spec.routes.0.gw: missing field `gw`"),
        ("    subnet: 10.12.0.0/24\n", "", "spec.subnet: missing field `subnet`"),
        ("    name: lan-12\n", "", "SpiderSubnet \"\": metadata.name: missing field `name`"),
        (
            "    name: lan-12\n",
            "    name: lan-12\n    namespace: shop\n",
            "metadata.namespace: unknown field",
        ),
        ("ipVersion: 4", "ipVersion: 6", "spec.ipVersion: it is IPv6, and subnet 10.12.0.0/24 is IPv4"),
        ("ipVersion: 4", "ipVersion: 5", "spec.ipVersion: 5 is not an address family"),
        ("10.12.0.40-", "10.12.0.100-", "spec.ips.0: 10.12.0.100-10.12.0.99 is reversed; did you mean"),
        ("- 10.12.0.50", "- 10.12.0.500", "spec.excludeIPs.0: \"10.12.0.500\" is not an IP address"),
        ("name: lan-12\n", &format!("{long}\n"), "is not an object's name: up to 253"),
        ("  status:", "  stats: {}\n  status:", "SpiderSubnet \"lan-12\": stats: unknown field \"stats\""),
        (
            "kind: SpiderSubnet",
            "kind: SpiderIPPool",
            "\"SpiderIPPool\" is not supported; of Spiderpool's resources only SpiderSubnet is converted",
        ),
        (
            "kind: SpiderSubnet",
            "kind: SpiderIPPool",
            "Write it as a document of `kind: pool`; fields: ipamctl explain pool.",
        ),
        ("kind: SpiderSubnet", "kind: SpiderReservedIP", "`kind: reservation`"),
        ("kind: SpiderSubnet", "kind: SpiderEndpoint", "Remove it from the files."),
        ("kind: pool\n", "apiVersion: spiderpool.spidernet.io/v1\n", "\"\" is not supported"),
        ("name: web-c", "name: lan-12\ncidr: 10.13.0.0/24", "unknown field \"cidr\""),
        (
            "kind: pool\nname: web-c\nsubnet: lan-12\nranges: [10.12.0.10-10.12.0.29]",
            "name: lan-12\ncidr: 10.13.0.0/24",
            "subnet lan-12 is there twice",
        ),
    ] {
        assert!(whole.contains(from), "{from}");
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("all.yaml");
        std::fs::write(&file, whole.replacen(from, to, 1)).unwrap();
        let (server, seen) = pretend(answers).await;
        let (result, _) = run(&server, &format!("apply -f {}", file.display())).await;
        assert_eq!(code(&result), 2, "{to}");
        let text = result.unwrap_err().text(false).unwrap();
        assert!(text.contains(said) && text.contains("document "), "{said}\n{text}");
        assert!(seen.lock().unwrap().is_empty(), "{to}");
    }
}
