//! Management cluster: the one that `KUBECONFIG` names, or an API server of the test.
//!
//! A real one needs the definitions of Cluster API, and the right to create namespaces and definitions. Each
//! test has namespaces and a realm of its own.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};
use tempfile::TempDir;
use test_apiserver::{ApiServer, ClusterApi, ClusterApiVersion};

use crate::support::until;

/// Token of the test, with all rights.
const ADMINISTRATOR: &str = "administrator";
/// Label by which providers divide the objects of one management cluster.
const WATCH_FILTER: &str = "cluster.x-k8s.io/watch-filter";
/// Plurals of the pool kinds.
const POOLS: [&str; 4] = ["ippools", "globalippools", "prefixpools", "globalprefixpools"];

/// Refusal: HTTP status and message.
pub(super) type Refusal = (u16, String);

/// Management cluster with the pool kinds of ipamd.
pub(super) struct Management {
    server: Option<ApiServer>,
    client: Client,
    kubeconfig: PathBuf,
    /// Namespace of the test.
    pub(super) namespace: String,
    /// Namespaces that are removed at the end.
    namespaces: Vec<String>,
    /// Version of the contract that the test uses.
    pub(super) version: &'static str,
    _dir: TempDir,
}

impl Management {
    /// Cluster with both versions of the contract.
    pub(super) async fn start() -> Self {
        Self::serving(ClusterApi::Both { storage: ClusterApiVersion::V1Beta2 }, "v1beta2").await
    }

    /// Cluster with these versions. The test uses one of them.
    pub(super) async fn serving(versions: ClusterApi, version: &'static str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let named = std::env::var_os("KUBECONFIG").map(PathBuf::from);
        let server = named.is_none().then(ApiServer::start);
        let kubeconfig = named.unwrap_or_else(|| dir.path().join("kubeconfig"));
        if let Some(server) = &server {
            server.serve_cluster_api(versions);
            server.set_tokens(&[ADMINISTRATOR]);
            std::fs::write(&kubeconfig, of_server(&server.url(), ADMINISTRATOR).to_string()).unwrap();
        }
        let client = client(&kubeconfig).await;
        let namespace = unique("shop");
        let mut management = Self {
            server,
            client,
            kubeconfig,
            namespace: namespace.clone(),
            namespaces: Vec::new(),
            version,
            _dir: dir,
        };
        management.define_pools().await;
        management.add_namespace(&namespace).await;
        management
    }

    pub(super) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Value of the watch filter by which the tests divide a real cluster.
    pub(super) fn filter(&self) -> Option<&str> {
        let first = self.namespaces.first().filter(|_| self.server.is_none());
        first.map(String::as_str)
    }

    /// Kubeconfig and watch filter for a provider.
    pub(super) fn access(&self) -> (&Path, Option<&str>) {
        (&self.kubeconfig, self.filter())
    }

    /// Kubeconfig of the server of the test for another token.
    pub(super) fn kubeconfig_with(&self, token: &str) -> String {
        of_server(&self.server.as_ref().unwrap().url(), token).to_string()
    }

    /// Server of the test. Tests of faults need it; they have nothing to do with a real one.
    pub(super) fn own(&self) -> Option<&ApiServer> {
        self.server.as_ref()
    }

    async fn define_pools(&self) {
        let files = ipam_manifests::folder().join("../cluster-api");
        let all = POOLS.map(|plural| std::fs::read_to_string(files.join(format!("{plural}.yaml"))).unwrap());
        for object in all.iter().flat_map(|text| ipam_manifests::documents(text).unwrap()) {
            let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
            let name = object["metadata"]["name"].as_str().unwrap().to_owned();
            if self.get(&format!("{path}/{name}")).await.is_none() {
                match self.create(path, object).await {
                    // Another test was first.
                    Ok(_) | Err((409, _)) => {}
                    Err(refusal) => panic!("{refusal:?}"),
                }
            }
            until(&format!("{name} is established"), async || {
                let found = self.get(&format!("{path}/{name}")).await.ok_or("it is missing")?;
                let mut conditions = found["status"]["conditions"].as_array().into_iter().flatten();
                let is_established =
                    conditions.any(|one| one["type"] == "Established" && one["status"] == "True");
                if is_established { Ok(()) } else { Err(found["status"].to_string()) }
            })
            .await;
        }
    }

    /// Creates a namespace, which is removed at the end.
    pub(super) async fn add_namespace(&mut self, name: &str) {
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        self.create("/api/v1/namespaces", object).await.unwrap();
        self.namespaces.push(name.to_owned());
    }

    /// Sends a request.
    pub(super) async fn send(&self, method: &str, path: &str, body: Option<Value>) -> Result<Value, Refusal> {
        let media = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let request = axum::http::Request::builder().method(method).uri(path).header("content-type", media);
        let request = request.body(body.map_or_else(Vec::new, |body| body.to_string().into_bytes())).unwrap();
        match self.client.request::<Value>(request).await {
            Ok(answer) => Ok(answer),
            Err(kube::Error::Api(status)) => Err((status.code, status.message.clone())),
            Err(error) => panic!("{method} {path}: {error}"),
        }
    }

    pub(super) async fn create(&self, collection: &str, object: Value) -> Result<Value, Refusal> {
        self.send("POST", collection, Some(object)).await
    }

    pub(super) async fn get(&self, path: &str) -> Option<Value> {
        match self.send("GET", path, None).await {
            Ok(object) => Some(object),
            Err((404, _)) => None,
            Err(refusal) => panic!("{path}: {refusal:?}"),
        }
    }

    pub(super) async fn patch(&self, path: &str, patch: Value) -> Result<Value, Refusal> {
        self.send("PATCH", path, Some(patch)).await
    }

    /// Deletes an object. One that is gone is deleted.
    pub(super) async fn delete(&self, path: &str) {
        match self.send("DELETE", path, None).await {
            Ok(_) | Err((404, _)) => {}
            Err(refusal) => panic!("{path}: {refusal:?}"),
        }
    }

    /// Path of a collection in a namespace.
    pub(super) fn collection(&self, namespace: &str, plural: &str) -> String {
        let group = match plural {
            "ipaddressclaims" | "ipaddresses" => format!("ipam.cluster.x-k8s.io/{}", self.version),
            "clusters" => format!("cluster.x-k8s.io/{}", self.version),
            _ => "ipam.ipamd.internal/v1".to_owned(),
        };
        if plural.starts_with("global") {
            return format!("/apis/{group}/{plural}");
        }
        format!("/apis/{group}/namespaces/{namespace}/{plural}")
    }

    /// Path of an object in the namespace of the test.
    pub(super) fn path(&self, plural: &str, name: &str) -> String {
        format!("{}/{name}", self.collection(&self.namespace, plural))
    }

    /// Creates an object of the contract or a pool in a namespace.
    pub(super) async fn make(
        &self,
        namespace: &str,
        plural: &str,
        name: &str,
        mut object: Value,
    ) -> Result<Value, Refusal> {
        let kind = match plural {
            "ipaddressclaims" => "IPAddressClaim",
            "ipaddresses" => "IPAddress",
            "clusters" => "Cluster",
            "ippools" => "IPPool",
            "globalippools" => "GlobalIPPool",
            "prefixpools" => "PrefixPool",
            "globalprefixpools" => "GlobalPrefixPool",
            other => panic!("{other}"),
        };
        let collection = self.collection(namespace, plural);
        let version = collection.strip_prefix("/apis/").unwrap().split('/').take(2).collect::<Vec<_>>();
        object["apiVersion"] = version.join("/").into();
        object["kind"] = kind.into();
        object["metadata"]["name"] = name.into();
        if !plural.starts_with("global") {
            object["metadata"]["namespace"] = namespace.into();
        }
        if let Some(filter) = self.filter()
            && object["metadata"]["labels"].get(WATCH_FILTER).is_none()
        {
            object["metadata"]["labels"][WATCH_FILTER] = filter.into();
        }
        self.create(&collection, object).await
    }
}

/// A real cluster keeps nothing of the test. A server of the test ends with it.
impl Drop for Management {
    fn drop(&mut self) {
        if self.server.is_some() {
            return;
        }
        let (kubeconfig, namespaces) = (self.kubeconfig.clone(), std::mem::take(&mut self.namespaces));
        let remove = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let client = client(&kubeconfig).await;
                for name in namespaces {
                    let request = axum::http::Request::delete(format!("/api/v1/namespaces/{name}"));
                    let _ = client.request::<Value>(request.body(Vec::new()).unwrap()).await;
                }
            });
        };
        // The runtime of the test can't wait in a destructor.
        let _ = std::thread::spawn(remove).join();
    }
}

/// Text that no other test uses.
pub(super) fn unique(prefix: &str) -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros();
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{prefix}-{:x}-{}-{number}", now & 0xff_ffff_ffff, std::process::id())
}

fn of_server(url: &str, token: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "test",
        "clusters": [{"name": "test", "cluster": {"server": url}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        "users": [{"name": "test", "user": {"token": token}}],
    })
}

async fn client(kubeconfig: &Path) -> Client {
    let _ = ipam_api::tls::provider().as_ref().clone().install_default();
    let read = Kubeconfig::read_from(kubeconfig).unwrap();
    let config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await.unwrap();
    Client::try_from(config).unwrap()
}
