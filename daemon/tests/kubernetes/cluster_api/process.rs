//! `ipamd cluster-api`: the provider in a process of its own.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use serde_json::json;

use super::management::Management;
use super::scene::{Scene, claim, ready};
use crate::cluster::access::{guarded, make, root};
use crate::support::{programs, until};

/// `ipamd cluster-api` as a process; it ends with this.
pub(super) struct Provider(Child);

impl Provider {
    pub(super) fn start(
        servers: &[String],
        realm: &str,
        (kubeconfig, filter): (&Path, Option<&str>),
        token: Option<&Path>,
    ) -> Self {
        let mut command = Command::new(programs::ipamd());
        command.args(["cluster-api", "--realm", realm, "--kubeconfig"]).arg(kubeconfig).env_clear();
        for url in servers {
            command.args(["--server", url]);
        }
        if let Some(filter) = filter {
            command.args(["--watch-filter", filter]);
        }
        if let Some(token) = token {
            command.arg("--token-file").arg(token);
        }
        Self(command.stdin(Stdio::null()).spawn().unwrap())
    }

    /// Provider of the management cluster of a scene.
    pub(super) fn of(scene: &Scene) -> Self {
        Self::start(&scene.cluster.urls(), &scene.realm, scene.management.access(), None)
    }

    pub(super) fn pid(&self) -> u32 {
        self.0.id()
    }

    /// kill -9.
    pub(super) fn kill(&mut self) {
        self.0.kill().unwrap();
    }

    /// Waits until the process was killed.
    pub(super) async fn killed(&mut self) {
        until("the provider is killed", async || match self.0.try_wait().unwrap() {
            Some(_) => Ok(()),
            None => Err("it runs".to_owned()),
        })
        .await;
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn run(flags: &[&str]) -> Output {
    Command::new(programs::ipamd()).arg("cluster-api").args(flags).env_clear().output().unwrap()
}

#[test]
fn mistakes_of_the_command_line_are_told_at_once() {
    let server = "--server=http://127.0.0.1:1";
    for (flags, says) in [
        (&[][..], "--server"),
        (&["--server=nowhere"], "nowhere"),
        (&[server, "--token-file=/nonexistent/token"], "/nonexistent/token"),
        (&[server, "--watch-filter=a b"], "1 to 63 letters"),
        (&[server, "--realm=X"], "--realm"),
    ] {
        let output = run(flags);
        let printed = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{flags:?}: {output:?}");
        assert!(printed.contains(says), "{flags:?}: {printed}");
    }
}

/// The provider has the access of `ipam-components.yaml` in the management cluster, and a token of its realm.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c5_17_the_role_of_the_components_is_enough() {
    let management = Management::start().await;
    let Some(api) = management.own() else {
        return println!("the tokens of a real cluster are not the test's");
    };
    let components = ipam_manifests::folder().join("../cluster-api/ipam-components.yaml");
    let components = ipam_manifests::documents(&std::fs::read_to_string(components).unwrap()).unwrap();
    let (mut account, mut namespace) = (String::new(), String::new());
    for object in components {
        let rbac = "/apis/rbac.authorization.k8s.io/v1";
        let collection = match object["kind"].as_str().unwrap() {
            "Namespace" => "/api/v1/namespaces".to_owned(),
            "ClusterRole" => format!("{rbac}/clusterroles"),
            "ClusterRoleBinding" => format!("{rbac}/clusterrolebindings"),
            "ServiceAccount" => {
                account = object["metadata"]["name"].as_str().unwrap().to_owned();
                namespace = object["metadata"]["namespace"].as_str().unwrap().to_owned();
                format!("/api/v1/namespaces/{namespace}/serviceaccounts")
            }
            _ => continue,
        };
        api.put(&collection, object);
    }
    let token = api.token_of(&namespace, &account).unwrap();
    let cluster = guarded(1).await;
    let dir = cluster.dir.path();
    let kubeconfig = dir.join("kubeconfig");
    std::fs::write(&kubeconfig, management.kubeconfig_with(&token)).unwrap();
    let realm = super::management::unique("fleet");
    let secret = json!({"name": realm, "role": "operator", "realms": [realm], "allow_shared": true});
    let token = dir.join("token");
    std::fs::write(&token, make(&root(&cluster), secret).await.secret.unwrap()).unwrap();
    let _provider = Provider::start(&cluster.urls(), &realm, (&kubeconfig, None), Some(&token));
    let namespace = management.namespace.clone();
    let pools = [
        ("ippools", "IPPool", json!({"addresses": ["10.0.0.10-10.0.0.20"], "prefix": 24})),
        ("globalippools", "GlobalIPPool", json!({"addresses": ["10.1.0.10-10.1.0.20"], "prefix": 24})),
        ("prefixpools", "PrefixPool", json!({"prefixes": ["fd00::/48"]})),
        ("globalprefixpools", "GlobalPrefixPool", json!({"prefixes": ["fd01::/48"]})),
    ];
    management.make(&namespace, "clusters", "prod", json!({"spec": {}})).await.unwrap();
    for (plural, kind, spec) in &pools {
        management.make(&namespace, plural, &realm, json!({"spec": spec})).await.unwrap();
        let mut claim = claim(kind, &realm);
        claim["spec"]["clusterName"] = "prod".into();
        management.make(&namespace, "ipaddressclaims", plural, claim).await.unwrap();
    }
    for (plural, ..) in &pools {
        let path = management.path("ipaddressclaims", plural);
        until(&format!("{path} is fulfilled"), async || {
            let claim = management.get(&path).await.ok_or("it is missing")?;
            if ready(&claim).0 == "True" { Ok(()) } else { Err(claim.to_string()) }
        })
        .await;
        // An object that is deleted by hand comes back; and all that a deletion needs.
        let address = management.path("ipaddresses", plural);
        let former = management.get(&address).await.unwrap();
        management.delete(&address).await;
        until(&format!("{address} is back"), async || {
            let object = management.get(&address).await.ok_or("it is missing")?;
            let is_new = object["metadata"]["uid"] != former["metadata"]["uid"];
            if is_new { Ok(()) } else { Err(object["metadata"].to_string()) }
        })
        .await;
        management.delete(&path).await;
        let pool = format!("{}/{realm}", management.collection(&namespace, plural));
        management.delete(&pool).await;
        for path in [path, address, pool] {
            until(&format!("{path} is gone"), async || {
                management.get(&path).await.map_or(Ok(()), |object| Err(object.to_string()))
            })
            .await;
        }
    }
}
