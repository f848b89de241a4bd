//! Handle of a server for tests: start, stop, faults, direct access to objects, and recorded requests.

use std::collections::BTreeSet;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustls::ServerConfig;
use serde_json::Value;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use uuid::Uuid;

use crate::access::{Account, Tokens};
use crate::clock::Clock;
use crate::cluster_api::{self, ClusterApi};
use crate::custom::accept;
use crate::faults::{Fault, Faults};
use crate::garbage;
use crate::holds::Held;
use crate::list::Snapshot;
use crate::path::Place;
use crate::resources::{Registry, Resource};
use crate::routes::router;
use crate::store::{Key, Store};
use crate::tls::TlsListener;
use crate::write::object::{describe, find};
use crate::write::strategy::complete_namespace;

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
    pub(crate) registry: Registry,
    pub(crate) clock: Clock,
    /// Namespaces that exist without an object, because a test has put objects there.
    pub(crate) implied_namespaces: BTreeSet<String>,
    pub(crate) tokens: Tokens,
    pub(crate) requests: Vec<Request>,
}

impl State {
    /// Writes an object in the version of its storage, and returns it.
    pub(crate) fn put(&mut self, key: Key, object: Value) -> Value {
        let is_definition = key.is_definition();
        let object = match self.registry.custom(&key) {
            Some(custom) => custom.stored(object),
            None => object,
        };
        let object = self.store.put(key, object);
        if is_definition {
            self.registry.refresh(&self.store);
        }
        object
    }

    /// Removes an object, and returns it.
    pub(crate) fn remove(&mut self, key: &Key) -> Option<Value> {
        let object = self.store.remove(key)?;
        if key.is_definition() {
            self.registry.refresh(&self.store);
        }
        Some(object)
    }

    fn snapshot(&self) -> Snapshot {
        (self.store.objects.clone(), self.store.version)
    }
}

/// Part of the server that its handlers share.
#[derive(Debug)]
pub(crate) struct Shared {
    state: Mutex<State>,
    /// Wakes watches after a change of the state.
    pub(crate) changed: watch::Sender<()>,
    pub(crate) held: watch::Sender<Held>,
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
    /// Verb of RBAC: `get`, `list`, `watch`, `create`, `update`, `patch`, `delete` or `deletecollection`.
    pub verb: &'static str,
    /// API group; empty for the core group.
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
    /// Runtime of a running server.
    runtime: Mutex<Option<Runtime>>,
}

impl ApiServer {
    /// Starts a server without objects on a free port of a loopback address of its own.
    #[must_use]
    pub fn start() -> Self {
        let [_, x, y, z, ..] = *Uuid::new_v4().as_bytes();
        Self::start_at(SocketAddr::from(([127, 128 + x % 64, y, z], 0)), None)
    }

    /// Starts a server at an address; with TLS by the configuration.
    #[must_use]
    pub fn start_at(address: SocketAddr, tls: Option<Arc<ServerConfig>>) -> Self {
        let implied_namespaces = BTreeSet::from(["default".to_owned(), "kube-system".to_owned()]);
        let state = State { registry: Registry::built_in(), implied_namespaces, ..State::default() };
        let (changed, _) = watch::channel(());
        let (held, _) = watch::channel(Held::default());
        let shared = Shared { state: Mutex::new(state), changed, held, bookmark_interval: BOOKMARK };
        let mut server = Self { shared: Arc::new(shared), address, tls, runtime: Mutex::new(None) };
        server.address = server.listen();
        server
    }

    /// Starts a stopped server at its address.
    pub fn restart(&mut self) {
        self.listen();
    }

    fn listen(&self) -> SocketAddr {
        let mut running = self.runtime.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(running.is_none(), "the server is up already");
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.unwrap();
        let listener = bind(self.address);
        let address = listener.local_addr().unwrap();
        listener.set_nonblocking(true).unwrap();
        let (router, tls) = (router(Arc::clone(&self.shared)), self.tls.clone());
        runtime.spawn(async move {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            match tls {
                Some(config) => axum::serve(TlsListener::new(listener, config), router).await.unwrap(),
                None => axum::serve(listener, router).await.unwrap(),
            }
        });
        *running = Some(runtime);
        address
    }

    /// Stops the server, with all of its connections, as a crash would.
    pub fn stop(&mut self) {
        self.disconnect();
    }

    fn disconnect(&self) {
        if let Some(runtime) = self.runtime.lock().unwrap_or_else(PoisonError::into_inner).take() {
            runtime.shutdown_background();
        }
    }

    /// Stops the clock at a time of RFC 3339.
    ///
    /// # Panics
    /// If the text is no such time.
    pub fn set_clock(&self, now: &str) {
        self.shared.lock().clock.stop_at(now.parse().expect(now));
    }

    /// URL of the server.
    #[must_use]
    pub fn url(&self) -> String {
        format!("{}://{}", if self.tls.is_some() { "https" } else { "http" }, self.address)
    }

    /// Accepts these tokens, with all rights, and no others.
    pub fn set_tokens(&self, tokens: &[&str]) {
        self.shared.lock().tokens = tokens.iter().map(|token| ((*token).to_owned(), None)).collect();
    }

    /// New token of a service account, with the rights that roles give it; none if there is no such account.
    #[must_use]
    pub fn token_of(&self, namespace: &str, account: &str) -> Option<String> {
        self.get(&format!("/api/v1/namespaces/{namespace}/serviceaccounts/{account}"))?;
        let token = Uuid::new_v4().to_string();
        let account = Account { namespace: namespace.to_owned(), name: account.to_owned() };
        self.shared.lock().tokens.insert(token.clone(), Some(account));
        Some(token)
    }

    /// Adds a resource, as a custom resource definition would.
    pub fn add_resource(&self, resource: Resource) {
        self.shared.lock().registry.add(resource);
    }

    /// Causes a fault.
    pub fn fault(&self, fault: Fault) {
        let mut state = self.shared.lock();
        match fault {
            Fault::Compact => state.store.compact(),
            Fault::Stale => state.faults.stale = Some(state.snapshot()),
            Fault::StaleCache => state.faults.stale_cache = Some(state.snapshot()),
            Fault::Unavailable => {
                state.faults.set(fault);
                self.disconnect();
            }
            Fault::Heal => {
                if state.faults.is_unavailable {
                    // A request of the former runtime may wait for the state, and keeps the address.
                    drop(state);
                    self.listen();
                    state = self.shared.lock();
                }
                state.faults.set(fault);
                self.shared.held.send_modify(Held::release);
            }
            fault => state.faults.set(fault),
        }
        drop(state);
        self.shared.changed.send_replace(());
    }

    /// Waits until a request is held by [`Fault::Hold`], and returns it.
    ///
    /// # Panics
    /// If the server ends.
    pub async fn held(&self) -> Request {
        let mut held = self.shared.held.subscribe();
        let held = held.wait_for(|held| held.first().is_some()).await.expect("a server");
        held.first().cloned().expect("a held request")
    }

    /// Waits until no request is held, because the connections of all held requests have ended.
    pub async fn none_held(&self) {
        let mut held = self.shared.held.subscribe();
        let _ = held.wait_for(|held| held.first().is_none()).await;
    }

    /// Serves the kinds of Cluster API with these versions. Another call changes the definitions, as an
    /// upgrade or a migration of the storage does: objects stay, and watches end.
    ///
    /// # Panics
    /// If a definition is wrong.
    pub fn serve_cluster_api(&self, versions: ClusterApi) {
        cluster_api::serve(&mut self.shared.lock(), versions);
        self.shared.changed.send_replace(());
    }

    /// Writes an object without checks, below the path of a collection. An object without a uid gets one. Its
    /// namespace needs no object of its own, and a definition of a custom resource is served at once.
    ///
    /// # Panics
    /// If the path is no collection of the server.
    pub fn put(&self, collection: &str, mut object: Value) -> Value {
        let mut state = self.shared.lock();
        let place = Place::parse(collection, &state.registry).expect(collection);
        let namespace = place.namespace.clone().unwrap_or_default();
        let name = object["metadata"]["name"].as_str().expect("a name").to_owned();
        if place.resource.is_namespaced {
            object["metadata"]["namespace"] = namespace.as_str().into();
            state.implied_namespaces.insert(namespace.clone());
        }
        let key = Key::of(&place, &namespace, &name);
        if object["metadata"]["uid"].is_null() {
            let known = state.store.objects.get(&key).map(|known| known["metadata"]["uid"].clone());
            object["metadata"]["uid"] = known.unwrap_or_else(|| Uuid::new_v4().to_string().into());
        }
        describe(&mut object, &place);
        if key.is_namespace() && object["spec"].is_null() {
            complete_namespace(&mut object);
        }
        if key.is_definition() {
            let now = state.clock.stamp();
            accept(&mut object, None, &now).expect("a definition");
        }
        let object = place.shown(&state.put(key, object));
        drop(state);
        self.shared.changed.send_replace(());
        object
    }

    /// Object at a path.
    #[must_use]
    pub fn get(&self, path: &str) -> Option<Value> {
        let state = self.shared.lock();
        let place = Place::parse(path, &state.registry)?;
        find(&state.store, &place).ok().map(|(_, object)| object)
    }

    /// Changes an object without checks, such as its status. Returns true if the object exists.
    pub fn change(&self, path: &str, change: impl FnOnce(&mut Value)) -> bool {
        let mut state = self.shared.lock();
        let place = Place::parse(path, &state.registry);
        let Some((key, before)) = place.and_then(|place| find(&state.store, &place).ok()) else {
            return false;
        };
        let mut object = before.clone();
        change(&mut object);
        if object != before {
            state.put(key, object);
            self.shared.changed.send_replace(());
        }
        true
    }

    /// Removes an object at once, with its dependents. Returns true if the object existed.
    pub fn remove(&self, path: &str) -> bool {
        let mut state = self.shared.lock();
        let place = Place::parse(path, &state.registry);
        let found = place.and_then(|place| find(&state.store, &place).ok());
        let is_removed = found.and_then(|(key, _)| garbage::remove(&mut state, &key)).is_some();
        drop(state);
        self.shared.changed.send_replace(());
        is_removed
    }

    /// All objects of a collection.
    #[must_use]
    pub fn list(&self, collection: &str) -> Vec<Value> {
        let state = self.shared.lock();
        let Some(place) = Place::parse(collection, &state.registry) else { return Vec::new() };
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
