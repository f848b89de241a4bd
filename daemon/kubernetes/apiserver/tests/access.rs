//! Rights of service accounts.

use ipam_api::client::{Options, http};
use serde_json::{Value, json};
use test_apiserver::ApiServer;

const SECRETS: &str = "/api/v1/namespaces/shop/secrets";

/// Server with a role and a role of the cluster, bound to the account `shop/one`.
fn server() -> ApiServer {
    let server = ApiServer::start();
    server.set_tokens(&["administrator"]);
    for (namespace, name) in [("shop", "one"), ("shop", "two"), ("other", "one")] {
        let accounts = format!("/api/v1/namespaces/{namespace}/serviceaccounts");
        server.put(&accounts, json!({"metadata": {"name": name}}));
    }
    let access = |kind: &str| match kind {
        "roles" | "rolebindings" => format!("/apis/rbac.authorization.k8s.io/v1/namespaces/shop/{kind}"),
        _ => format!("/apis/rbac.authorization.k8s.io/v1/{kind}"),
    };
    let bind = |kind: &str, role: &str, rules: Value| {
        let subject = json!({"kind": "ServiceAccount", "namespace": "shop", "name": "one"});
        let binding = json!({"metadata": {"name": "one"}, "subjects": [subject],
                             "roleRef": {"kind": role, "name": "one"}});
        server.put(&access(&format!("{kind}s")), json!({"metadata": {"name": "one"}, "rules": rules}));
        server.put(&access(&format!("{kind}bindings")), binding);
    };
    let named = json!({"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["a"],
                       "verbs": ["get", "list"]});
    let create = json!({"apiGroups": [""], "resources": ["secrets"], "verbs": ["create"]});
    bind("role", "Role", json!([named, create]));
    let nodes = json!({"apiGroups": [""], "resources": ["nodes"], "verbs": ["*"]});
    let apps = json!({"apiGroups": ["apps"], "resources": ["*"], "verbs": ["list"]});
    bind("clusterrole", "ClusterRole", json!([nodes, apps]));
    server.put(SECRETS, json!({"metadata": {"name": "a"}}));
    server.put(SECRETS, json!({"metadata": {"name": "b"}}));
    server
}

#[tokio::test]
async fn an_account_has_the_rights_of_its_roles_and_no_others() {
    let server = server();
    assert_eq!(server.token_of("shop", "three"), None);
    let code = async |token: &str, verb: &str, path: &str| {
        let client = http(&Options::default()).unwrap();
        let method = verb.parse().unwrap();
        let request = client.request(method, format!("{}{path}", server.url())).bearer_auth(token);
        let body = json!({"metadata": {"name": "c"}}).to_string();
        request.header("content-type", "application/json").body(body).send().await.unwrap().status().as_u16()
    };
    let one = server.token_of("shop", "one").unwrap();
    for (verb, path, expected) in [
        ("GET", "/api/v1/namespaces/shop/secrets/a", 200),
        ("GET", "/api/v1/namespaces/shop/secrets/b", 403),
        ("GET", SECRETS, 403),
        ("GET", "/api/v1/namespaces/shop/secrets?fieldSelector=metadata.name%3Da", 200),
        ("GET", "/api/v1/namespaces/shop/secrets?fieldSelector=metadata.name%3Db", 403),
        ("GET", "/api/v1/namespaces/shop/secrets?fieldSelector=metadata.name%3Da&watch=1", 403),
        ("GET", "/api/v1/secrets?fieldSelector=metadata.name%3Da", 403),
        ("GET", "/api/v1/namespaces/other/secrets/a", 403),
        ("DELETE", "/api/v1/namespaces/shop/secrets/a", 403),
        ("POST", SECRETS, 201),
        ("POST", "/api/v1/namespaces/shop/configmaps", 403),
        ("GET", "/api/v1/nodes", 200),
        ("DELETE", "/api/v1/nodes/n1", 404),
        ("PUT", "/api/v1/nodes/n1/status", 403),
        ("GET", "/apis/apps/v1/deployments", 200),
        ("GET", "/apis/apps/v1/namespaces/other/deployments", 200),
        ("GET", "/apis/apps/v1/namespaces/shop/deployments/a", 403),
        ("GET", "/apis/batch/v1/jobs", 403),
        ("GET", "/api", 200),
    ] {
        assert_eq!(code(&one, verb, path).await, expected, "{verb} {path}");
    }
    for (namespace, name) in [("shop", "two"), ("other", "one")] {
        let token = server.token_of(namespace, name).unwrap();
        assert_eq!(code(&token, "GET", "/api/v1/nodes").await, 403, "{namespace}/{name}");
    }
    let client = http(&Options::default()).unwrap();
    let refused = client.get(format!("{}{SECRETS}/b", server.url())).bearer_auth(&one).send().await.unwrap();
    let why = "secrets \"b\" is forbidden: User \"system:serviceaccount:shop:one\" cannot get resource \
               \"secrets\" in API group \"\" in the namespace \"shop\"";
    let status: Value = serde_json::from_slice(&refused.bytes().await.unwrap()).unwrap();
    assert_eq!(status["message"], why);
    assert_eq!(code("administrator", "GET", SECRETS).await, 200);
    assert_eq!(code("forged", "GET", SECRETS).await, 401);
}
