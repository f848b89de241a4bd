//! Requests to the server of a test.

use ipam_api::client::{Options, http};
use reqwest::{Client, Method};
use serde_json::Value;
use test_apiserver::ApiServer;

use crate::watch::Watch;

pub(crate) fn client() -> Client {
    http(&Options::default()).unwrap()
}

/// Code and body of an answer.
pub(crate) async fn ask(server: &ApiServer, method: Method, path: &str, body: Value) -> (u16, Value) {
    let media_type =
        if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
    let request = client().request(method, format!("{}{path}", server.url()));
    let response = request.header("content-type", media_type).body(body.to_string()).send().await.unwrap();
    (response.status().as_u16(), serde_json::from_slice(&response.bytes().await.unwrap()).unwrap())
}

pub(crate) async fn get(server: &ApiServer, path: &str) -> (u16, Value) {
    ask(server, Method::GET, path, Value::Null).await
}

/// Opens a watch.
pub(crate) async fn watched(server: &ApiServer, path: &str) -> Watch {
    Watch::open(client().get(format!("{}{path}", server.url()))).await
}
