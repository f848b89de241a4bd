//! Network, subnets and pools of the trench.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use ipam_api::client::Answer;
use ipam_api::{Code, Problem};
use ipam_meridio::{Unprepared, prepare};
use serde_json::{Value, json};

use crate::fixture::{Recorder, Sent, answer, caller, problem, settings};

type Model = Arc<Mutex<BTreeMap<String, Value>>>;

/// Answers like servers with these resources.
fn model(resources: &Model, sent: &Sent) -> Result<Answer, Problem> {
    let mut resources = resources.lock().unwrap();
    match sent.method.as_str() {
        "PUT" if resources.contains_key(&sent.path) => problem(Code::AlreadyExists),
        "PUT" => {
            resources.insert(sent.path.clone(), sent.body.clone());
            answer(&json!({}))
        }
        _ => {
            let Some(pool) = resources.get(&sent.path) else { return problem(Code::NotFound) };
            let subnet = &resources[&format!("/v1/subnets/{}", pool["subnet"].as_str().unwrap())];
            let cidr = subnet["cidr"].as_str().unwrap();
            let mut view = pool.clone();
            view["status"] = json!({"cidr": cidr});
            answer(&view)
        }
    }
}

#[tokio::test]
async fn a_trench_is_created_once_and_then_left_alone() {
    let resources = Model::default();
    let answers = Arc::clone(&resources);
    let servers = Recorder::new(move |sent| model(&answers, sent));
    prepare(&settings(), &servers, &caller()).await.unwrap();
    let created: Vec<String> = resources.lock().unwrap().keys().cloned().collect();
    let expected = [
        "/v1/networks/meridio-default",
        "/v1/pools/default-ipv4",
        "/v1/pools/default-ipv6",
        "/v1/subnets/default-ipv4",
        "/v1/subnets/default-ipv6",
    ];
    assert_eq!(created, expected);
    let puts = servers.sent("PUT").len();
    prepare(&settings(), &servers, &caller()).await.unwrap();
    assert_eq!(servers.sent("PUT").len(), puts);
    let resources = resources.lock().unwrap();
    let (pool, subnet) = (&resources["/v1/pools/default-ipv4"], &resources["/v1/subnets/default-ipv4"]);
    assert_eq!((&pool["allow_edges"], &pool["realms"]), (&json!(true), &json!(["default"])));
    assert_eq!((&subnet["cidr"], &subnet["network"]), (&json!("169.255.0.0/16"), &json!("meridio-default")));
}

#[tokio::test]
async fn m6_9_a_changed_prefix_is_refused_with_a_remedy() {
    let resources = Model::default();
    let answers = Arc::clone(&resources);
    let servers = Recorder::new(move |sent| model(&answers, sent));
    prepare(&settings(), &servers, &caller()).await.unwrap();
    let mut changed = settings();
    changed.families[0].prefix = "172.16.0.0/16".parse().unwrap();
    let refused = prepare(&changed, &servers, &caller()).await.unwrap_err();
    assert!(matches!(refused, Unprepared::OtherPrefix { .. }));
    let says = refused.to_string();
    for part in ["IPAM_PREFIX_IPV4", "172.16.0.0/16", "169.255.0.0/16", "ipamctl pool delete default-ipv4"] {
        assert!(says.contains(part), "{says}");
    }
    changed.families[1].prefix = "fd01::/48".parse().unwrap();
    changed.families.remove(0);
    assert!(
        prepare(&changed, &servers, &caller()).await.unwrap_err().to_string().contains("IPAM_PREFIX_IPV6")
    );
}

#[tokio::test]
async fn a_refused_trench_ends_the_attempts_and_a_missing_leader_does_not() {
    let servers = Recorder::new(|_| problem(Code::Overlap));
    let refused = prepare(&settings(), &servers, &caller()).await.unwrap_err();
    assert!(matches!(&refused, Unprepared::Refused(problem) if problem.code == Code::Overlap), "{refused}");
    let servers = Recorder::new(|_| problem(Code::NoLeader));
    let resources = Model::default();
    let later = servers.clone();
    let task = tokio::spawn(async move { prepare(&settings(), &servers, &caller()).await });
    later.until("GET", 1).await;
    later.reply(move |sent| model(&resources, sent));
    task.await.unwrap().unwrap();
}
