//! Roles of the service accounts: exactly the listed verbs.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::{object, pod_spec, rendered};

/// Rules of all service accounts: account, API group, resource with the only permitted names, verbs.
const RULES: [(&str, &str, &str, &str); 22] = [
    ("ipam-agent", "", "pods", "get list watch"),
    ("ipam-agent", "apps", "daemonsets", "get"),
    ("ipam-agent", "apps", "deployments", "get"),
    ("ipam-agent", "apps", "replicasets", "get"),
    ("ipam-agent", "apps", "statefulsets", "get"),
    ("ipam-agent", "batch", "jobs", "get"),
    ("ipam-agent", "", "events", "create patch"),
    ("ipamd-join", "", "nodes", "list"),
    ("ipamd-join", "", "secrets[ipam-agent-join]", "get update"),
    ("ipamd-secrets", "", "secrets[ipamd-admin,ipamd-ca,ipamd-tls,ipamd-trust]", "list"),
    ("ipamd-secrets", "", "secrets", "create"),
    ("ipamd", "", "namespaces", "get list watch"),
    ("ipamd", "", "nodes", "get list watch"),
    ("ipamd", "", "pods", "get list watch"),
    ("ipamd", "apps", "daemonsets", "get list watch"),
    ("ipamd", "apps", "deployments", "get list watch"),
    ("ipamd", "apps", "replicasets", "get list watch"),
    ("ipamd", "apps", "statefulsets", "get list watch"),
    ("ipamd", "batch", "cronjobs", "get list watch"),
    ("ipamd", "batch", "jobs", "get list watch"),
    ("ipamd", "kubevirt.io", "virtualmachineinstances", "get list watch"),
    ("ipamd", "kubevirt.io", "virtualmachines", "get list watch"),
];

fn words(value: &Value) -> Vec<&str> {
    value
        .as_array()
        .map(|words| words.iter().map(|word| word.as_str().unwrap()).collect())
        .unwrap_or_default()
}

/// Rules of an account by its bindings, in the form of [`RULES`].
pub(crate) fn rules(objects: &[Value], account: &str) -> BTreeSet<(String, String, String)> {
    let bindings = objects.iter().filter(|one| {
        let subjects = one["subjects"].as_array();
        subjects.is_some_and(|subjects| subjects.iter().any(|subject| subject["name"] == account))
    });
    let mut all = BTreeSet::new();
    for binding in bindings {
        let subject = &binding["subjects"][0];
        assert_eq!(
            (subject["kind"].as_str(), binding["subjects"].as_array().unwrap().len()),
            (Some("ServiceAccount"), 1)
        );
        let role = &binding["roleRef"];
        let role = object(objects, role["kind"].as_str().unwrap(), role["name"].as_str().unwrap());
        for rule in role["rules"].as_array().unwrap() {
            let names = words(&rule["resourceNames"]).join(",");
            let names = if names.is_empty() { names } else { format!("[{names}]") };
            for (group, resource) in words(&rule["apiGroups"]).into_iter().flat_map(|group| {
                words(&rule["resources"]).into_iter().map(move |resource| (group, resource))
            }) {
                let verbs = words(&rule["verbs"]).join(" ");
                assert!(all.insert((group.to_owned(), format!("{resource}{names}"), verbs)), "twice: {rule}");
            }
        }
    }
    all
}

#[test]
fn h6_11_the_accounts_have_exactly_the_listed_verbs() {
    let mut expected: BTreeMap<&str, BTreeSet<(String, String, String)>> = BTreeMap::new();
    for (account, group, resource, verbs) in RULES {
        let rules = expected.entry(account).or_default();
        rules.insert((group.to_owned(), resource.to_owned(), verbs.to_owned()));
    }
    let objects = rendered("cluster");
    for (account, rules) in &expected {
        assert_eq!(self::rules(&objects, account), *rules, "{account}");
    }
    // No other account, and no binding to a role of another origin.
    let named = |kind: &str| -> Vec<&str> {
        let all = objects.iter().filter(|one| one["kind"] == kind);
        all.map(|one| one["metadata"]["name"].as_str().unwrap()).collect()
    };
    assert_eq!(named("ServiceAccount"), expected.keys().copied().collect::<Vec<_>>());
    assert_eq!(named("ClusterRole"), named("ClusterRoleBinding"));
    assert_eq!(named("Role"), named("RoleBinding"));
    let subset = rendered("outside");
    assert!(!named_in(&subset).contains("ipamd-secrets"), "without members there is no CA");
    assert!(
        rendered("uninstall").iter().all(|one| one["kind"] == "DaemonSet"),
        "the uninstall has no rights"
    );
}

/// Rights that the folder of custom resources adds to those of the members.
const CUSTOM_RULES: [(&str, &str); 10] = [
    ("hostpolicies", "get list watch"),
    ("hostpolicies/status", "patch"),
    ("nodeippools", "get list watch"),
    ("nodeippools/status", "patch"),
    ("pools", "get list watch"),
    ("pools/status", "patch"),
    ("reservations", "get list watch"),
    ("reservations/status", "patch"),
    ("subnets", "get list watch"),
    ("subnets/status", "patch"),
];

#[test]
fn custom_resources_add_exactly_the_listed_verbs() {
    let objects = rendered("custom-resources");
    let expected = CUSTOM_RULES
        .map(|(resource, verbs)| ("ipamd.internal".to_owned(), resource.to_owned(), verbs.to_owned()));
    let of_nmstate = ["nmstate.io", "nodenetworkconfigurationpolicies", "create delete get list watch"];
    let of_nmstate = of_nmstate.map(str::to_owned).into();
    let expected: BTreeSet<_> = expected.into_iter().chain([of_nmstate]).collect();
    assert_eq!(rules(&objects, "ipamd"), expected);
    let kinds: BTreeSet<&str> = objects.iter().map(|one| one["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, BTreeSet::from(["ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition"]));
    assert_eq!(named_in(&objects).len(), 6, "one role with one binding, and five definitions");
}

fn named_in(objects: &[Value]) -> BTreeSet<&str> {
    objects.iter().map(|one| one["metadata"]["name"].as_str().unwrap()).collect()
}

/// A pod without an account of its own has no token, because an operator may give rights to the default
/// account.
#[test]
fn pods_without_rights_have_no_token() {
    for name in ["cluster", "outside", "uninstall"] {
        for object in rendered(name) {
            let Some(spec) = pod_spec(&object) else { continue };
            let has_rights = ["ipam-agent", "ipamd", "ipamd-join", "ipamd-secrets"].map(Value::from);
            let may = has_rights.contains(&spec["serviceAccountName"]);
            assert_eq!(spec["automountServiceAccountToken"] != false, may, "{name}: {}", object["metadata"]);
        }
    }
}
