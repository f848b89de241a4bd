//! Objects of the provider as a process of its own, with variables of clusterctl.

use ipam_api::brand::CLUSTER_API_GROUP as GROUP;
use serde_json::{Value, json};

/// Label by which clusterctl identifies the objects of the provider.
pub(super) const PROVIDER: (&str, &str) = ("cluster.x-k8s.io/provider", "ipam-ipamd");
/// Namespace of the provider.
const NAMESPACE: &str = "ipamd-cluster-api-system";
/// Name of the provider's objects, and of the Secret that the operator of the provider creates.
const NAME: &str = "ipamd-cluster-api";
/// Directory of the Secret in the container.
const SECRET_DIR: &str = "/etc/ipamd/cluster-api";

/// Plurals of the pool kinds.
const POOLS: [&str; 4] = ["globalippools", "globalprefixpools", "ippools", "prefixpools"];
/// Group of claims and addresses.
const CLAIMS: &str = "ipam.cluster.x-k8s.io";

/// Objects in the order in which they are created, without the definitions.
pub(super) fn objects(version: &str) -> Vec<Value> {
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": namespaced()});
    vec![account, role(), binding(), deployment(version)]
}

/// Namespace of the objects.
pub(super) fn namespace() -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": labels()}})
}

fn labels() -> Value {
    json!({PROVIDER.0: PROVIDER.1})
}

fn namespaced() -> Value {
    json!({"name": NAME, "namespace": NAMESPACE, "labels": labels()})
}

/// Rights of the provider.
pub(super) fn role() -> Value {
    let rule = |group: &str, resources: &[String], verbs: &[&str]| -> Value {
        json!({"apiGroups": [group], "resources": resources, "verbs": verbs})
    };
    let claims = |part: &str| [format!("ipaddressclaims{part}")];
    let pools = |part: &str| POOLS.map(|plural| format!("{plural}{part}"));
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": NAME, "labels": labels()},
        "rules": [
            rule("cluster.x-k8s.io", &["clusters".to_owned()], &["get", "list", "watch"]),
            rule(CLAIMS, &claims(""), &["get", "list", "watch", "patch"]),
            rule(CLAIMS, &claims("/status"), &["patch"]),
            rule(
                CLAIMS,
                &["ipaddresses".to_owned()],
                &["get", "list", "watch", "create", "patch", "delete"],
            ),
            rule(GROUP, &pools(""), &["list", "watch", "patch"]),
            rule(GROUP, &pools("/status"), &["patch"]),
            // An address blocks the deletion of its owners: its claim and its pool.
            rule(CLAIMS, &claims("/finalizers"), &["update"]),
            rule(GROUP, &pools("/finalizers"), &["update"]),
        ],
    })
}

fn binding() -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": NAME, "labels": labels()},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": NAME},
        "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": NAMESPACE}],
    })
}

fn deployment(version: &str) -> Value {
    let name = "app.kubernetes.io/name";
    let selector = json!({name: NAME});
    let pod_labels = json!({name: NAME, PROVIDER.0: PROVIDER.1});
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": namespaced(),
        "spec": {
            // A second replica would repeat the work of the first.
            "replicas": 1,
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": selector},
            "template": {"metadata": {"labels": pod_labels}, "spec": pod(version)},
        },
    })
}

fn pod(version: &str) -> Value {
    let control_plane = json!({
        "key": "node-role.kubernetes.io/control-plane", "operator": "Exists", "effect": "NoSchedule",
    });
    json!({
        "serviceAccountName": NAME,
        "enableServiceLinks": false,
        "terminationGracePeriodSeconds": 10,
        "tolerations": [control_plane],
        "securityContext": {
            "runAsNonRoot": true, "runAsUser": 65532, "runAsGroup": 65532, "fsGroup": 65532,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [{
            "name": "provider",
            "image": format!("${{IPAMD_IMAGE:=ipamd:{version}}}"),
            "imagePullPolicy": "IfNotPresent",
            "command": ["/ipamd"],
            "args": [
                "cluster-api",
                "--server=${IPAMD_SERVER}",
                format!("--token-file={SECRET_DIR}/token"),
                format!("--ca-file={SECRET_DIR}/ca.crt"),
                "--realm=${IPAMD_REALM:=default}",
                "--network-per-namespace=${IPAMD_NETWORK_PER_NAMESPACE:=false}",
            ],
            "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}},
            "securityContext": {
                "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
                "capabilities": {"drop": ["ALL"]},
            },
            "volumeMounts": [{"name": "secret", "mountPath": SECRET_DIR, "readOnly": true}],
        }],
        "volumes": [{"name": "secret", "secret": {"secretName": NAME, "defaultMode": 288}}],
    })
}
