//! Server as its tests hold it: started, stopped, faulted, and asked for its requests.

use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustls::ServerConfig;
use serde_json::Value;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use uuid::Uuid;

use crate::faults::{Fault, Faults};
use crate::path::Place;
use crate::resources::{Resource, built_in};
use crate::routes::router;
use crate::store::{Key, Store};
use crate::tls::TlsListener;
use crate::write::{describe, find};

/// Interval of bookmarks. The real server sends one about every minute.
const BOOKMARK: Duration = Duration::from_secs(1);
/// Attempts to bind the port of a server that has just stopped.
const BIND_ATTEMPTS: usize = 500;
const BIND_PAUSE: Duration = Duration::from_millis(10);

/// State behind one lock.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) store: Store,
    pub(crate) faults: Faults,
    pub(crate) resources: Vec<Resource>,
    /// Tokens that are accepted; none: no token is needed.
    pub(crate) tokens: Vec<String>,
    pub(crate) requests: Vec<Request>,
}

/// Part of the server that its handlers share.
#[derive(Debug)]
pub(crate) struct Shared {
    state: Mutex<State>,
    /// Wakes watches after a change of the state.
    pub(crate) changed: watch::Sender<()>,
    pub(crate) bookmark_interval: Duration,
}

impl Shared {
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Request that the server has received.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Request {
    /// Verb of RBAC: `get`, `list`, `watch`, `create`, `update`, `patch` or `delete`.
    pub verb: &'static str,
    /// API group; empty for the oldest one.
    pub group: String,
    /// Plural of the resource, with the subresource after a slash.
    pub resource: String,
    /// Path with its query.
    pub path: String,
}

/// API server. Its objects outlive [`ApiServer::stop`].
#[derive(Debug)]
pub struct ApiServer {
    shared: Arc<Shared>,
    address: SocketAddr,
    tls: Option<Arc<ServerConfig>>,
    runtime: Option<Runtime>,
}

impl ApiServer {
    /// Starts a server without objects on a free port of an own loopback address.
    #[must_use]
    pub fn start() -> Self {
        let [_, x, y, z, ..] = *Uuid::new_v4().as_bytes();
        Self::start_at(SocketAddr::from(([127, 128 + x % 64, y, z], 0)), None)
    }

    /// Starts a server at an address; with TLS by the configuration.
    #[must_use]
    pub fn start_at(address: SocketAddr, tls: Option<Arc<ServerConfig>>) -> Self {
        let state = State { resources: built_in(), ..State::default() };
        let (changed, _) = watch::channel(());
        let shared = Shared { state: Mutex::new(state), changed, bookmark_interval: BOOKMARK };
        let mut server = Self { shared: Arc::new(shared), address, tls, runtime: None };
        server.restart();
        server
    }

    /// Starts a stopped server at its address.
    pub fn restart(&mut self) {
        assert!(self.runtime.is_none(), "the server is up already");
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.unwrap();
        let listener = bind(self.address);
        self.address = listener.local_addr().unwrap();
        listener.set_nonblocking(true).unwrap();
        let (router, tls) = (router(Arc::clone(&self.shared)), self.tls.clone());
        runtime.spawn(async move {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            match tls {
                Some(config) => axum::serve(TlsListener::new(listener, config), router).await.unwrap(),
                None => axum::serve(listener, router).await.unwrap(),
            }
        });
        self.runtime = Some(runtime);
    }

    /// Stops the server, with all of its connections, as a crash would.
    pub fn stop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }

    /// URL of the server.
    #[must_use]
    pub fn url(&self) -> String {
        format!("{}://{}", if self.tls.is_some() { "https" } else { "http" }, self.address)
    }

    /// Accepts these tokens and no others.
    pub fn set_tokens(&self, tokens: &[&str]) {
        self.shared.lock().tokens = tokens.iter().map(|token| (*token).to_owned()).collect();
    }

    /// Adds a resource, as a custom resource definition would.
    pub fn add_resource(&self, resource: Resource) {
        self.shared.lock().resources.push(resource);
    }

    /// Causes a fault.
    pub fn fault(&self, fault: Fault) {
        let mut state = self.shared.lock();
        match fault {
            Fault::Compact => state.store.compact(),
            Fault::Stale => {
                state.faults.stale = Some((state.store.objects.clone(), state.store.version));
            }
            fault => state.faults.set(fault),
        }
        drop(state);
        self.shared.changed.send_replace(());
    }

    /// Writes an object as it is, below the path of a collection. It gets a uid unless it has one.
    ///
    /// # Panics
    /// If the path is no collection of the server.
    pub fn put(&self, collection: &str, mut object: Value) -> Value {
        let mut state = self.shared.lock();
        let place = Place::parse(collection, &state.resources).expect(collection);
        let namespace = place.namespace.clone().unwrap_or_default();
        let name = object["metadata"]["name"].as_str().expect("a name").to_owned();
        if place.resource.is_namespaced {
            object["metadata"]["namespace"] = namespace.as_str().into();
        }
        let key = Key::of(&place, &namespace, &name);
        if object["metadata"]["uid"].is_null() {
            let known = state.store.objects.get(&key).map(|known| known["metadata"]["uid"].clone());
            object["metadata"]["uid"] = known.unwrap_or_else(|| Uuid::new_v4().to_string().into());
        }
        describe(&mut object, &place);
        let object = state.store.put(key, object);
        drop(state);
        self.shared.changed.send_replace(());
        object
    }

    /// Object at a path.
    #[must_use]
    pub fn get(&self, path: &str) -> Option<Value> {
        let state = self.shared.lock();
        let place = Place::parse(path, &state.resources)?;
        find(&state.store, &place).ok().map(|(_, object)| object)
    }

    /// Removes an object at once. Returns true if it was there.
    pub fn remove(&self, path: &str) -> bool {
        let mut state = self.shared.lock();
        let place = Place::parse(path, &state.resources);
        let found = place.and_then(|place| find(&state.store, &place).ok());
        let is_removed = found.and_then(|(key, _)| state.store.remove(&key)).is_some();
        drop(state);
        self.shared.changed.send_replace(());
        is_removed
    }

    /// All objects of a collection.
    #[must_use]
    pub fn list(&self, collection: &str) -> Vec<Value> {
        let state = self.shared.lock();
        let Some(place) = Place::parse(collection, &state.resources) else { return Vec::new() };
        let all = state.store.objects.iter().filter(|(key, _)| key.is_in(&place));
        all.map(|(_, object)| object.clone()).collect()
    }

    /// Requests so far.
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        self.shared.lock().requests.clone()
    }
}

impl Drop for ApiServer {
    fn drop(&mut self) {
        self.stop();
    }
}

fn bind(address: SocketAddr) -> TcpListener {
    for _ in 1..BIND_ATTEMPTS {
        if let Ok(listener) = TcpListener::bind(address) {
            return listener;
        }
        std::thread::sleep(BIND_PAUSE);
    }
    TcpListener::bind(address).unwrap()
}
