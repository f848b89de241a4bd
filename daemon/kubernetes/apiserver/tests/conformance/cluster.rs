//! Cluster under test: the one that `KUBECONFIG` names, or a server of the test.

use std::time::Duration;

use ipam_api::client::{Options, http};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap};
use reqwest::{Client, Method, RequestBuilder};
use serde_json::{Value, json};
use test_apiserver::ApiServer;
use uuid::Uuid;

use super::kubeconfig::Kubeconfig;
use crate::watch::Watch;

pub(super) const JSON: &str = "application/json";
pub(super) const MERGE: &str = "application/merge-patch+json";
/// Label of all that the suite creates.
pub(super) const LABEL: &str = "ipamd.test/conformance";
/// Duration after which a condition counts as never met. A real cluster collects garbage in the background.
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(20);

/// Cluster with a namespace of the test. Both are removed with it.
pub(super) struct Cluster {
    pub(super) url: String,
    pub(super) namespace: String,
    client: Client,
    /// Kubeconfig of a real cluster.
    config: Option<Kubeconfig>,
    server: Option<ApiServer>,
    /// Paths to delete at the end.
    created: Vec<String>,
}

/// Answer to a request.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) code: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: Value,
}

impl Answer {
    /// Body of an answer with this code.
    #[track_caller]
    pub(super) fn expect(self, code: u16) -> Value {
        assert_eq!(self.code, code, "{}", self.body);
        self.body
    }

    /// Message of a refusal with this code and reason.
    #[track_caller]
    pub(super) fn refused(&self, code: u16, reason: &str) -> &str {
        assert_eq!((self.code, self.body["reason"].as_str()), (code, Some(reason)), "{}", self.body);
        assert_eq!((&self.body["kind"], &self.body["code"]), (&json!("Status"), &json!(code)));
        self.body["message"].as_str().unwrap_or_default()
    }
}

impl Cluster {
    /// Cluster with a new namespace.
    pub(super) async fn start() -> Self {
        let config = std::env::var_os("KUBECONFIG").map(|path| Kubeconfig::read(path.as_ref()));
        let server = config.is_none().then(ApiServer::start);
        let url = config.as_ref().map(|config| config.server.clone());
        let url = url.or_else(|| server.as_ref().map(ApiServer::url)).unwrap();
        let client = match &config {
            Some(config) => config.client(),
            None => http(&Options::default()).unwrap(),
        };
        let namespace = name("ipamd-conformance");
        let mut cluster =
            Self { url, namespace: namespace.clone(), client, config, server, created: Vec::new() };
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        cluster.create("/api/v1/namespaces", object).await;
        cluster
    }

    /// Server of the test; none for a real cluster.
    pub(super) fn own_server(&self) -> Option<&ApiServer> {
        self.server.as_ref()
    }

    /// Path of a collection in the namespace of the test, from its group, version and plural.
    pub(super) fn collection(&self, resource: &str) -> String {
        let (version, plural) = resource.rsplit_once('/').unwrap();
        let root = if version.contains('/') { "apis" } else { "api" };
        format!("/{root}/{version}/namespaces/{}/{plural}", self.namespace)
    }

    /// Request with the credentials of the cluster.
    pub(super) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.client.request(method, format!("{}{path}", self.url));
        match self.config.as_ref().and_then(|config| config.token.as_ref()) {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    /// Answer to a request with a body of a media type.
    pub(super) async fn send(&self, method: Method, path: &str, media_type: &str, body: &str) -> Answer {
        let request = self.request(method, path).header(CONTENT_TYPE, media_type).header(ACCEPT, JSON);
        answer(request.body(body.to_owned())).await
    }

    pub(super) async fn get(&self, path: &str) -> Answer {
        answer(self.request(Method::GET, path)).await
    }

    pub(super) async fn post(&self, path: &str, object: &Value) -> Answer {
        self.send(Method::POST, path, JSON, &object.to_string()).await
    }

    pub(super) async fn put(&self, path: &str, object: &Value) -> Answer {
        self.send(Method::PUT, path, JSON, &object.to_string()).await
    }

    pub(super) async fn merge(&self, path: &str, patch: Value) -> Answer {
        self.send(Method::PATCH, path, MERGE, &patch.to_string()).await
    }

    pub(super) async fn delete(&self, path: &str, options: Value) -> Answer {
        self.send(Method::DELETE, path, JSON, &options.to_string()).await
    }

    /// Creates an object with the label of the suite. The end of the test removes it.
    pub(super) async fn create(&mut self, collection: &str, mut object: Value) -> Value {
        object["metadata"]["labels"][LABEL] = "true".into();
        let created = self.post(collection, &object).await.expect(201);
        let name = created["metadata"]["name"].as_str().unwrap();
        // The objects of a namespace are deleted with the namespace.
        if !collection.contains(&self.namespace) {
            self.remove_at_end(&format!("{collection}/{name}"));
        }
        created
    }

    /// Registers an object for removal at the end of the test, even if the test itself does not create it.
    pub(super) fn remove_at_end(&mut self, path: &str) {
        self.created.push(path.to_owned());
    }

    /// Opens a watch.
    pub(super) async fn watch(&self, path: &str) -> Watch {
        Watch::open(self.request(Method::GET, path)).await
    }

    /// Object at a path, as soon as it fulfils a condition.
    pub(super) async fn until(&self, path: &str, is_met: impl Fn(&Answer) -> bool) -> Answer {
        let end = tokio::time::Instant::now() + PATIENCE;
        loop {
            let answer = self.get(path).await;
            if is_met(&answer) {
                return answer;
            }
            assert!(tokio::time::Instant::now() < end, "{path}: {answer:?}");
            tokio::time::sleep(PAUSE).await;
        }
    }

    pub(super) async fn until_gone(&self, path: &str) {
        self.until(path, |answer| answer.code == 404).await;
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let Some(config) = self.config.take() else { return };
        let requests =
            self.created.iter().rev().map(|path| format!("{}{path}", self.url)).collect::<Vec<_>>();
        // A failed test also cleans up. Its runtime may not block here, so a thread is used.
        let remove = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let client = config.client();
            runtime.block_on(async {
                for url in requests {
                    let mut request = client.delete(&url);
                    if let Some(token) = &config.token {
                        request = request.bearer_auth(token);
                    }
                    if let Err(error) = request.send().await {
                        println!("{url} is left behind: {error}");
                    }
                }
            });
        });
        let _ = remove.join();
    }
}

async fn answer(request: RequestBuilder) -> Answer {
    let response = request.send().await.unwrap();
    let (code, headers) = (response.status().as_u16(), response.headers().clone());
    let bytes = response.bytes().await.unwrap();
    let text = || Value::String(String::from_utf8_lossy(&bytes).into_owned());
    Answer { code, headers, body: serde_json::from_slice(&bytes).unwrap_or_else(|_| text()) }
}

/// Generated name with a prefix.
pub(super) fn name(prefix: &str) -> String {
    let random = Uuid::new_v4().simple().to_string();
    format!("{prefix}-{}", &random[..8])
}

/// ConfigMap with one datum.
pub(super) fn config_map(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"app": "web"}},
        "data": {"key": "value"},
    })
}
