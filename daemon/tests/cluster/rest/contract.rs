//! The committed OpenAPI document against a running member: both describe the same paths and types.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{read, with_pools};
use crate::support::raw::ask;

const DOCUMENT: &str = include_str!("../../../../api/openapi.json");

/// A path with something in the place of each parameter.
fn filled(path: &str) -> String {
    path.replace("{kind}", "host")
        .replace("{id}", "7")
        .replace("{ip}", "10.7.0.9")
        .replace("{name}", "web")
        .replace(['{', '}'], "")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_route_is_there_and_answers_as_it_is_written() {
    let cluster = with_pools(1).await;
    let to = cluster.members[0].client;
    let document: Value = serde_json::from_str(DOCUMENT).unwrap();
    assert_eq!(read(to, "/openapi.json").await.json::<Value>(), document);
    for (path, operations) in document["paths"].as_object().unwrap() {
        let known: BTreeSet<String> =
            operations.as_object().unwrap().keys().map(|method| method.to_uppercase()).collect();
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
            let body = if matches!(method, "GET" | "DELETE") { Value::Null } else { json!({}) };
            let dry = if method == "GET" { "" } else { "?dry_run=true" };
            let answer = ask(to, method, &format!("{}{dry}", filled(path)), &[], &body).await;
            let what = format!("{method} {path}: {answer:?}");
            if !known.contains(method) {
                assert_eq!(answer.status, 405, "{what}");
                assert_eq!(answer.problem().code, ipam_api::Code::MethodNotAllowed);
                let allowed = answer.headers["allow"].split(',').map(|word| word.trim().to_owned());
                let allowed: BTreeSet<String> = allowed.filter(|word| word != "HEAD").collect();
                assert_eq!(allowed, known, "{what}");
                continue;
            }
            assert!(!answer.body.contains("there is nothing at"), "{what}");
            let response = &operations[method.to_lowercase()]["responses"][answer.status.to_string()];
            assert!(response.is_object(), "{what}");
            let media = answer.headers.get("content-type").and_then(|media| media.split(';').next());
            match response.get("content").and_then(Value::as_object) {
                Some(content) => assert!(content.contains_key(media.unwrap_or_default()), "{what}"),
                None => assert_eq!(answer.body, "", "{what}"),
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn links_of_the_documentation_pages_resolve() {
    let cluster = with_pools(1).await;
    let to = cluster.members[0].client;
    let problem = ask(to, "GET", "/v1/pools/none", &[], &Value::Null).await.problem();
    let (page, fragment) = problem.kind.split_once('#').unwrap();
    let problems = read(to, page).await;
    assert!(problems.body.contains(&format!("id=\"{fragment}\"")));
    assert!(problems.headers["content-type"].starts_with("text/html"));
    let docs = read(to, "/docs").await.body;
    for link in docs.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
        let (page, fragment) = link.split_once('#').unwrap_or((link, ""));
        let target = read(to, page).await.body;
        assert!(fragment.is_empty() || target.contains(&format!("id=\"{fragment}\"")), "{link}");
        if fragment == "not-found" {
            break;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_says_where_its_time_went() {
    let cluster = with_pools(3).await;
    let leader = cluster.leader().await;
    let body = json!({"name": "lab"});
    let timing = async |at: usize, method: &str| {
        let trace = [("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")];
        let body = if method == "GET" { &Value::Null } else { &body };
        let answer = ask(cluster.members[at].client, method, "/v1/networks/lab", &trace, body).await;
        assert!(answer.status < 300, "{answer:?}");
        let parts = answer.headers["server-timing"]
            .split(", ")
            .map(|part| part.split(';').next().unwrap().to_owned());
        parts.collect::<Vec<_>>()
    };
    assert_eq!(timing(leader, "PUT").await, ["queue", "log", "apply", "total"]);
    assert_eq!(timing((leader + 1) % 3, "PUT").await, ["forward", "total"]);
    assert_eq!(timing(leader, "GET").await, ["total"]);
}
