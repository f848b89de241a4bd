//! The few requests to the Kubernetes API.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use ipam_api::Problem;
use ipam_api::client::{Call, Client, Options};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::client::session::Session;
use crate::output::error::Failure;
use crate::settings::environment::{KUBERNETES_HOST, KUBERNETES_PORT};

/// Directory of a pod with the credentials of its service account.
const ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// Time limit of a request.
const ANSWER: Duration = Duration::from_secs(20);
/// Objects of a page.
const PAGE: &str = "500";
/// Media type of lists with metadata only, because specs and statuses of nodes are large.
const METADATA: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";

/// Location and credentials of the API server.
#[derive(Debug, Args)]
pub(crate) struct ApiArguments {
    /// URL of the Kubernetes API [default: that of the pod's environment]
    #[arg(long, value_name = "URL")]
    api_server: Option<String>,
    /// Directory with the files token, ca.crt and namespace of a service account
    #[arg(long, value_name = "DIR", default_value = ACCOUNT)]
    account_dir: PathBuf,
    /// Kubernetes namespace of the Secrets [default: that of the service account]
    #[arg(long, value_name = "NAMESPACE")]
    secrets_in: Option<String>,
}

/// The API server.
pub(super) struct Api {
    client: Client,
    namespace: String,
}

/// Secret as it is read and written back; fields that this program does not know are kept.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Secret {
    #[serde(default)]
    data: BTreeMap<String, String>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

/// List with the names of its objects.
#[derive(Deserialize)]
struct List<Item> {
    #[serde(default)]
    metadata: ListMeta,
    items: Vec<Item>,
}

#[derive(Default, Deserialize)]
struct ListMeta {
    #[serde(default, rename = "continue")]
    next: String,
}

#[derive(Deserialize)]
struct Named {
    metadata: NamedMeta,
}

#[derive(Deserialize)]
struct NamedMeta {
    name: String,
}

impl Api {
    /// Prepares requests to the API server.
    pub(super) fn of(session: &Session, arguments: &ApiArguments) -> Result<Self, Failure> {
        let dir = &arguments.account_dir;
        let file = |name: &str| Some(dir.join(name)).filter(|path| path.exists());
        let server = match &arguments.api_server {
            Some(server) => server.clone(),
            None => in_cluster(session)?,
        };
        let options = Options { ca_file: file("ca.crt"), token_file: file("token"), ..Options::default() };
        let namespace = match &arguments.secrets_in {
            Some(namespace) => namespace.clone(),
            None => read(&dir.join("namespace"))?,
        };
        Ok(Self { client: Client::with(&[server], &options)?, namespace: namespace.trim().to_owned() })
    }

    /// Names of all nodes.
    pub(super) async fn nodes(&self) -> Result<Vec<String>, Failure> {
        let (mut names, mut next) = (Vec::new(), String::new());
        loop {
            let mut call = Call::get("/api/v1/nodes").query("limit", PAGE).header("accept", METADATA)?;
            if !next.is_empty() {
                call = call.query("continue", &next);
            }
            let page: List<Named> = self.call(call).await?;
            names.extend(page.items.into_iter().map(|node| node.metadata.name));
            if page.metadata.next.is_empty() {
                return Ok(names);
            }
            next = page.metadata.next;
        }
    }

    /// Reads a Secret by name, if it exists. Uses a list with a field selector, since an absent Secret is
    /// then an empty list and not an error.
    pub(super) async fn find(&self, name: &str) -> Result<Option<Secret>, Failure> {
        let call = Call::get(self.secrets()).query("fieldSelector", &format!("metadata.name={name}"));
        let list: List<Secret> = self.call(call).await?;
        Ok(list.items.into_iter().next())
    }

    /// Secret that must exist.
    pub(super) async fn secret(&self, name: &str) -> Result<Secret, Failure> {
        self.call(Call::get(format!("{}/{name}", self.secrets()))).await
    }

    /// Creates a Secret.
    pub(super) async fn create(&self, name: &str, texts: &[(String, &str)]) -> Result<(), Failure> {
        let data: Map<String, Value> =
            texts.iter().map(|(key, text)| (key.clone(), STANDARD.encode(text).into())).collect();
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": data,
            "metadata": {
                "name": name, "namespace": self.namespace, "labels": {"app.kubernetes.io/part-of": "ipamd"},
            },
        });
        self.call::<Value>(Call::post(self.secrets()).json(&secret)?).await.map(drop)
    }

    /// Replaces a Secret, unless it has changed since it was read.
    pub(super) async fn replace(&self, name: &str, secret: &Secret) -> Result<(), Failure> {
        let call = Call::put(format!("{}/{name}", self.secrets())).json(secret)?;
        self.call::<Value>(call).await.map(drop)
    }

    fn secrets(&self) -> String {
        format!("/api/v1/namespaces/{}/secrets", self.namespace)
    }

    async fn call<T: DeserializeOwned>(&self, call: Call) -> Result<T, Failure> {
        let request = format!("{} {}", call.method(), call.path());
        self.client.call(call.within(ANSWER)).await.map_err(|mut problem: Problem| {
            problem.detail = format!("Kubernetes: {request}: {}", problem.detail);
            problem.help =
                "Check the address of the API server, and the roles of the service account.".to_owned();
            problem.into()
        })
    }
}

impl Secret {
    /// Text of a key, if it is there.
    pub(super) fn text(&self, key: &str) -> Option<String> {
        String::from_utf8(STANDARD.decode(self.data.get(key)?).ok()?).ok()
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &str> {
        self.data.keys().map(String::as_str)
    }

    pub(super) fn set(&mut self, key: &str, text: &str) {
        self.data.insert(key.to_owned(), STANDARD.encode(text));
    }

    pub(super) fn remove(&mut self, key: &str) {
        self.data.remove(key);
    }
}

/// URL of the API server in the environment of a pod.
fn in_cluster(session: &Session) -> Result<String, Failure> {
    let variable = |name| session.environment.variable(name);
    match (variable(KUBERNETES_HOST), variable(KUBERNETES_PORT)) {
        (Some(host), Some(port)) if host.contains(':') => Ok(format!("https://[{host}]:{port}")),
        (Some(host), Some(port)) => Ok(format!("https://{host}:{port}")),
        _ => Err(Failure::usage(
            "no Kubernetes API server is named, and this is not a pod",
            "Name it with --api-server, for example http://127.0.0.1:8001 while `kubectl proxy` runs.",
        )),
    }
}

fn read(path: &Path) -> Result<String, Failure> {
    let help = "Name the namespace with --secrets-in.";
    std::fs::read_to_string(path).map_err(|error| Failure::file(path, "read", error, help))
}
