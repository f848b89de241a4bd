//! Files of clusterctl: labels, namespace, contract, variables and rights.

use std::collections::BTreeSet;

use ipam_manifests::cluster_api::folder;
use ipam_manifests::documents;
use serde_json::{Value, json};

use super::{components, file, substitute};
use crate::{object, pod_spec};

/// Namespace of the provider.
const NAMESPACE: &str = "ipamd-cluster-api-system";

fn of_kind<'a>(objects: &'a [Value], kind: &str) -> Vec<&'a Value> {
    objects.iter().filter(|one| one["kind"] == kind).collect()
}

#[test]
fn c5_17_every_object_has_the_label_of_the_provider() {
    let objects = components();
    assert_eq!(objects.len(), 9);
    for one in &objects {
        let labels = &one["metadata"]["labels"];
        assert_eq!(labels["cluster.x-k8s.io/provider"], "ipam-ipamd", "{}", one["metadata"]);
    }
}

#[test]
fn c5_17_there_is_one_namespace_and_all_objects_are_in_it() {
    let objects = components();
    let namespaces = of_kind(&objects, "Namespace");
    assert_eq!(namespaces.len(), 1);
    assert_eq!(namespaces[0]["metadata"]["name"], NAMESPACE);
    let cluster_wide = ["ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition", "Namespace"];
    for one in &objects {
        let is_cluster_wide = cluster_wide.contains(&one["kind"].as_str().unwrap());
        let namespace = &one["metadata"]["namespace"];
        assert_eq!(*namespace, if is_cluster_wide { Value::Null } else { NAMESPACE.into() }, "{one}");
    }
    // clusterctl creates objects in the order of the file.
    let text = file("ipam-components.yaml");
    assert!(text.find("kind: Namespace") < text.find("kind: CustomResourceDefinition"));
}

#[test]
fn c5_17_the_definitions_have_the_labels_and_names_of_the_contract() {
    let objects = components();
    let definitions = of_kind(&objects, "CustomResourceDefinition");
    assert_eq!(definitions.len(), 4);
    for one in definitions {
        let labels = &one["metadata"]["labels"];
        let served = one["spec"]["versions"].as_array().unwrap();
        for contract in ["cluster.x-k8s.io/v1beta1", "cluster.x-k8s.io/v1beta2"] {
            assert!(served.iter().any(|version| version["name"] == labels[contract]), "{labels}");
        }
        for label in ["clusterctl.cluster.x-k8s.io", "clusterctl.cluster.x-k8s.io/move-hierarchy"] {
            assert_eq!(labels[label], "", "{labels}");
        }
        // `CalculateCRDName` of Cluster API: the plural of the kind in lower case, and the group.
        let (kind, group) = (&one["spec"]["names"]["kind"], &one["spec"]["group"]);
        let plural = format!("{}s", kind.as_str().unwrap().to_lowercase());
        assert_eq!(one["metadata"]["name"], format!("{plural}.{}", group.as_str().unwrap()));
        assert_eq!(one["spec"]["names"]["plural"], plural);
    }
}

#[test]
fn c5_17_the_metadata_name_the_contract_of_this_version() {
    let metadata = documents(&file("metadata.yaml")).unwrap().remove(0);
    let number = |text: &str| text.parse::<u64>().unwrap();
    let (major, minor) = (number(env!("CARGO_PKG_VERSION_MAJOR")), number(env!("CARGO_PKG_VERSION_MINOR")));
    let expected = json!({
        "apiVersion": "clusterctl.cluster.x-k8s.io/v1alpha3",
        "kind": "Metadata",
        "releaseSeries": [{"major": major, "minor": minor, "contract": "v1beta2"}],
    });
    assert_eq!(metadata, expected);
}

#[test]
fn c5_17_only_the_server_is_a_variable_without_a_default() {
    let text = file("ipam-components.yaml");
    let image = concat!("ipamd:", env!("CARGO_PKG_VERSION"));
    let expected = BTreeSet::from([
        ("IPAMD_IMAGE", Some(image)),
        ("IPAMD_NETWORK_PER_NAMESPACE", Some("false")),
        ("IPAMD_REALM", Some("default")),
        ("IPAMD_SERVER", None),
    ]);
    assert_eq!(BTreeSet::from_iter(substitute::names(&text)), expected);
    assert_eq!(substitute::variables(&text, &[]).unwrap_err(), "IPAMD_SERVER");
    let values = [("IPAMD_SERVER", "https://a:7440,https://b:7440")];
    let objects = documents(&substitute::variables(&text, &values).unwrap()).unwrap();
    let provider = &pod_spec(object(&objects, "Deployment", "ipamd-cluster-api")).unwrap()["containers"][0];
    let expected = [
        "cluster-api",
        "--server=https://a:7440,https://b:7440",
        "--token-file=/etc/ipamd/cluster-api/token",
        "--ca-file=/etc/ipamd/cluster-api/ca.crt",
        "--realm=default",
        "--network-per-namespace=false",
    ];
    assert_eq!(provider["args"], json!(expected));
    assert_eq!((&provider["image"], &provider["command"]), (&json!(image), &json!(["/ipamd"])));
}

/// Rights of the provider: API group, resource, verbs.
const RULES: [(&str, &str, &str); 17] = [
    ("cluster.x-k8s.io", "clusters", "get list watch"),
    ("ipam.cluster.x-k8s.io", "ipaddressclaims", "get list watch patch"),
    ("ipam.cluster.x-k8s.io", "ipaddressclaims/finalizers", "update"),
    ("ipam.cluster.x-k8s.io", "ipaddressclaims/status", "patch"),
    ("ipam.cluster.x-k8s.io", "ipaddresses", "get list watch create patch delete"),
    ("ipam.ipamd.internal", "globalippools", "list watch patch"),
    ("ipam.ipamd.internal", "globalippools/finalizers", "update"),
    ("ipam.ipamd.internal", "globalippools/status", "patch"),
    ("ipam.ipamd.internal", "globalprefixpools", "list watch patch"),
    ("ipam.ipamd.internal", "globalprefixpools/finalizers", "update"),
    ("ipam.ipamd.internal", "globalprefixpools/status", "patch"),
    ("ipam.ipamd.internal", "ippools", "list watch patch"),
    ("ipam.ipamd.internal", "ippools/finalizers", "update"),
    ("ipam.ipamd.internal", "ippools/status", "patch"),
    ("ipam.ipamd.internal", "prefixpools", "list watch patch"),
    ("ipam.ipamd.internal", "prefixpools/finalizers", "update"),
    ("ipam.ipamd.internal", "prefixpools/status", "patch"),
];

#[test]
fn c5_17_the_account_has_exactly_the_listed_verbs() {
    let objects = components();
    let expected = RULES.map(|(group, resource, verbs)| [group, resource, verbs].map(str::to_owned));
    let rules: BTreeSet<[String; 3]> = crate::access::rules(&objects, "ipamd-cluster-api")
        .into_iter()
        .map(|(group, resource, verbs)| [group, resource, verbs])
        .collect();
    assert_eq!(rules, BTreeSet::from(expected));
    for kind in ["ClusterRole", "ClusterRoleBinding", "ServiceAccount"] {
        assert_eq!(of_kind(&objects, kind).len(), 1, "{kind}");
    }
    assert!(of_kind(&objects, "Role").is_empty());
    // The role for an account of a kubeconfig is the same.
    let access = documents(&file("access.yaml")).unwrap();
    assert_eq!(&access[0], object(&objects, "ClusterRole", "ipamd-cluster-api"));
}

#[test]
fn c5_17_the_folder_for_kubectl_has_the_definitions_and_the_role() {
    let objects = ipam_manifests::render(&folder()).unwrap();
    let mut expected = components();
    expected
        .retain(|one| ["CustomResourceDefinition", "ClusterRole"].contains(&one["kind"].as_str().unwrap()));
    assert_eq!(objects, expected);
}
