//! The little of the Kubernetes API that the Jobs of the manifests use, with TLS, tokens and the roles of the
//! manifests.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::stream::pending;
use ipam_api::tls::{VERSIONS, provider};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::namespace::wire::listener_inside;

const NAMESPACE: &str = "ipamd-system";

/// API server. Its tokens are the names of the service accounts.
#[derive(Clone)]
pub(crate) struct Api {
    state: Arc<Mutex<State>>,
    /// Certificate by which pods believe it.
    pub(crate) certificate: String,
    pub(crate) at: SocketAddr,
}

struct State {
    /// Rendered manifests, for their roles.
    objects: Vec<Value>,
    nodes: Vec<String>,
    secrets: BTreeMap<String, Value>,
    version: u64,
}

/// Listener that answers with TLS.
struct TlsListener {
    listener: TcpListener,
    acceptor: TlsAcceptor,
}

impl axum::serve::Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, SocketAddr) {
        loop {
            let (stream, from) = self.listener.accept().await.unwrap();
            if let Ok(stream) = self.acceptor.accept(stream).await {
                return (stream, from);
            }
        }
    }

    fn local_addr(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

impl Api {
    /// Serves in a network namespace.
    pub(crate) fn start(netns: &Path, at: SocketAddr, objects: &[Value], nodes: &[String]) -> Self {
        let own = rcgen::generate_simple_self_signed([at.ip().to_string()]).unwrap();
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(own.signing_key.serialize_der()));
        let config = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(VERSIONS)
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![own.cert.der().clone()], key)
            .unwrap();
        let listener = listener_inside(netns, at);
        listener.set_nonblocking(true).unwrap();
        let listener = TcpListener::from_std(listener).unwrap();
        let secrets = objects.iter().filter(|object| object["kind"] == "Secret").map(|object| {
            let mut secret = object.clone();
            secret["metadata"]["resourceVersion"] = "1".into();
            (object["metadata"]["name"].as_str().unwrap().to_owned(), secret)
        });
        let state = State {
            objects: objects.to_vec(),
            nodes: nodes.to_vec(),
            secrets: secrets.collect(),
            version: 1,
        };
        let state = Arc::new(Mutex::new(state));
        let answers = state.clone();
        let handler = move |method: Method, uri: Uri, headers: HeaderMap, body: Bytes| {
            let answer = answers.lock().unwrap().answer(&method, &uri, &headers, &body);
            async move { answer }
        };
        let listener = TlsListener { listener, acceptor: TlsAcceptor::from(Arc::new(config)) };
        tokio::spawn(async move { axum::serve(listener, Router::new().fallback(handler)).await });
        Self { state, certificate: own.cert.pem(), at }
    }

    /// Files of a Secret, if it exists.
    pub(crate) fn secret(&self, name: &str) -> Option<BTreeMap<String, Vec<u8>>> {
        let state = self.state.lock().unwrap();
        let data = state.secrets.get(name)?["data"].as_object().cloned().unwrap_or_default();
        let decode = |value: Value| STANDARD.decode(value.as_str().unwrap()).unwrap();
        Some(data.into_iter().map(|(key, value)| (key, decode(value))).collect())
    }
}

impl State {
    fn answer(&mut self, method: &Method, uri: &Uri, headers: &HeaderMap, body: &[u8]) -> Response {
        let account =
            headers.get("authorization").and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
        let Some(account) = account else { return status(401, "no token") };
        let path: Vec<&str> = uri.path().split('/').skip(1).collect();
        let query = uri.query().unwrap_or_default().replace("%3D", "=");
        let selected = query.split('&').find_map(|part| part.strip_prefix("fieldSelector=metadata.name="));
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let named = |name: &str| format!("{account} {method} {name}");
        match (method.as_str(), path.as_slice()) {
            ("GET", ["api", "v1", "nodes"]) if self.may(account, "nodes", None, "list") => {
                let items: Vec<Value> =
                    self.nodes.iter().map(|name| json!({"metadata": {"name": name}})).collect();
                ok(200, &json!({"metadata": {}, "items": items}))
            }
            // The nodes of this cluster have no pods, and none comes.
            ("GET", ["api", "v1", "pods"]) if query.contains("watch=") => {
                match self.may(account, "pods", None, "watch") {
                    true => Body::from_stream(pending::<Result<Bytes, Infallible>>()).into_response(),
                    false => status(403, "no watch"),
                }
            }
            ("GET", ["api", "v1", "pods"]) if self.may(account, "pods", None, "list") => {
                ok(200, &json!({"metadata": {"resourceVersion": "1"}, "items": []}))
            }
            ("GET", ["api", "v1", "namespaces", NAMESPACE, "secrets"])
                if self.may(account, "secrets", selected, "list") =>
            {
                let items: Vec<&Value> =
                    selected.and_then(|name| self.secrets.get(name)).into_iter().collect();
                ok(200, &json!({"metadata": {}, "items": items}))
            }
            ("POST", ["api", "v1", "namespaces", NAMESPACE, "secrets"])
                if self.may(account, "secrets", None, "create") =>
            {
                let name = body["metadata"]["name"].as_str().unwrap().to_owned();
                if self.secrets.contains_key(&name) {
                    return status(409, &named(&name));
                }
                self.keep(name, body)
            }
            ("GET", ["api", "v1", "namespaces", NAMESPACE, "secrets", name])
                if self.may(account, "secrets", Some(name), "get") =>
            {
                self.secrets.get(*name).map_or_else(|| status(404, &named(name)), |secret| ok(200, secret))
            }
            ("PUT", ["api", "v1", "namespaces", NAMESPACE, "secrets", name])
                if self.may(account, "secrets", Some(name), "update") =>
            {
                let version = |secret: &Value| secret["metadata"]["resourceVersion"].clone();
                match self.secrets.get(*name) {
                    Some(present) if version(present) == version(&body) => {
                        self.keep((*name).to_owned(), body)
                    }
                    Some(_) => status(409, &named(name)),
                    None => status(404, &named(name)),
                }
            }
            _ => status(403, &format!("{account} may not {method} {uri}")),
        }
    }

    fn keep(&mut self, name: String, mut secret: Value) -> Response {
        self.version += 1;
        secret["metadata"]["resourceVersion"] = self.version.to_string().into();
        let answer = ok(201, &secret);
        self.secrets.insert(name, secret);
        answer
    }

    /// True if the roles of the manifests permit it.
    fn may(&self, account: &str, resource: &str, name: Option<&str>, verb: &str) -> bool {
        let has = |list: &Value, word: &str| list.as_array().is_some_and(|list| list.contains(&word.into()));
        let is_bound = |binding: &&Value| {
            binding["subjects"]
                .as_array()
                .is_some_and(|all| all.iter().any(|subject| subject["name"] == account))
        };
        let roles = self.objects.iter().filter(is_bound).map(|binding| &binding["roleRef"]);
        let rules = roles.flat_map(|role| {
            let found = self
                .objects
                .iter()
                .find(|object| object["kind"] == role["kind"] && object["metadata"]["name"] == role["name"]);
            found.unwrap()["rules"].as_array().unwrap()
        });
        rules.into_iter().any(|rule| {
            let names = &rule["resourceNames"];
            let is_named = names.is_null() || name.is_some_and(|name| has(names, name));
            has(&rule["apiGroups"], "")
                && has(&rule["resources"], resource)
                && has(&rule["verbs"], verb)
                && is_named
        })
    }
}

fn ok(code: u16, body: &Value) -> Response {
    (StatusCode::from_u16(code).unwrap(), body.to_string()).into_response()
}

fn status(code: u16, message: &str) -> Response {
    ok(code, &json!({"kind": "Status", "code": code, "message": message}))
}
