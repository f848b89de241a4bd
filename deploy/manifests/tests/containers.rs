//! Pods and containers: rights, placement, and the paths of distributions.

use serde_json::{Value, json};

use crate::{KUSTOMIZATIONS, object, pod_spec, rendered, static_pod};

/// All containers with the specification of their pod.
fn containers() -> Vec<(Value, Value)> {
    let objects = KUSTOMIZATIONS.iter().flat_map(|name| rendered(name)).chain([static_pod()]);
    let objects = objects.chain(crate::cluster_api::components());
    let mut all = Vec::new();
    for object in objects {
        let Some(spec) = pod_spec(&object) else { continue };
        for list in ["initContainers", "containers"] {
            let containers = spec[list].as_array().into_iter().flatten();
            all.extend(containers.map(|container| (spec.clone(), container.clone())));
        }
    }
    all
}

#[test]
fn h6_11_containers_have_no_more_rights_than_they_need() {
    let all = containers();
    assert!(all.len() > 20, "{}", all.len());
    for (pod, container) in all {
        let name = container["name"].as_str().unwrap();
        let context = &container["securityContext"];
        assert_eq!(context["readOnlyRootFilesystem"], true, "{name}");
        assert_eq!(context["allowPrivilegeEscalation"], false, "{name}");
        assert!(context.get("privileged").is_none(), "{name}");
        assert_eq!(context["capabilities"]["drop"], json!(["ALL"]), "{name}");
        let added = if name == "agent" { json!(["NET_RAW"]) } else { Value::Null };
        assert_eq!(context["capabilities"]["add"], added, "{name}");
        let pod_context = &pod["securityContext"];
        assert_eq!(pod_context["seccompProfile"]["type"], "RuntimeDefault", "{name}");
        for shared in ["hostPID", "hostIPC"] {
            assert!(pod.get(shared).is_none(), "{name}");
        }
        match name {
            // These containers run as root without capabilities: root owns the directories of the host.
            "agent" | "install" | "networks" | "uninstall" => {
                assert_eq!(pod_context["runAsUser"], 0, "{name}")
            }
            "ipamd" | "secrets" | "join" | "provider" => {
                assert_eq!(pod_context["runAsUser"], 65532, "{name}");
                assert_eq!(pod_context["runAsNonRoot"], true, "{name}");
            }
            other => panic!("{other} is not known here"),
        }
    }
}

#[test]
fn members_are_placed_and_found_before_they_are_ready() {
    let objects = rendered(".");
    let set = &object(&objects, "StatefulSet", "ipamd")["spec"];
    assert_eq!((&set["replicas"], &set["podManagementPolicy"]), (&json!(3), &json!("Parallel")));
    let pod = &set["template"]["spec"];
    assert_eq!(pod["hostNetwork"], true);
    let rules = &pod["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    assert_eq!(rules[0]["topologyKey"], "kubernetes.io/hostname");
    assert_eq!(rules[0]["labelSelector"], set["selector"]);
    let service = &object(&objects, "Service", "ipamd")["spec"];
    assert_eq!((&service["clusterIP"], &service["publishNotReadyAddresses"]), (&json!("None"), &json!(true)));
    assert_eq!(service["selector"], set["selector"]["matchLabels"]);
    let budget = &object(&objects, "PodDisruptionBudget", "ipamd")["spec"];
    assert_eq!((&budget["maxUnavailable"], &budget["selector"]), (&json!(1), &set["selector"]));
}

#[test]
fn agents_run_on_every_node() {
    let objects = rendered(".");
    let set = &object(&objects, "DaemonSet", "ipam-agent")["spec"];
    assert_eq!(set["updateStrategy"]["rollingUpdate"]["maxUnavailable"], "10%");
    let pod = &set["template"]["spec"];
    assert_eq!(pod["priorityClassName"], "system-node-critical");
    assert_eq!(pod["tolerations"], json!([{"operator": "Exists"}]));
    assert_eq!(pod["hostNetwork"], true);
}

/// Environment variables of a Service named `ipamd` would look like settings.
#[test]
fn no_pod_has_links_of_services() {
    for (pod, container) in containers() {
        assert_eq!(pod["enableServiceLinks"], false, "{}", container["name"]);
    }
}

/// Path of the host for a volume of the agent.
fn host_path(objects: &[Value], volume: &str) -> String {
    let volumes = &object(objects, "DaemonSet", "ipam-agent")["spec"]["template"]["spec"]["volumes"];
    let found = volumes.as_array().unwrap().iter().find(|one| one["name"] == volume);
    found.unwrap()["hostPath"]["path"].as_str().unwrap().to_owned()
}

#[test]
fn h6_10_the_paths_of_k3s_microk8s_and_talos_are_settings() {
    for (name, bin, conf) in [
        (".", "/opt/cni/bin", "/etc/cni/net.d"),
        ("k3s", "/var/lib/rancher/k3s/data/cni", "/var/lib/rancher/k3s/agent/etc/cni/net.d"),
        ("microk8s", "/var/snap/microk8s/current/opt/cni/bin", "/var/snap/microk8s/current/args/cni-network"),
        ("talos", "/opt/cni/bin", "/etc/cni/net.d"),
    ] {
        let objects = rendered(name);
        assert_eq!(host_path(&objects, "cni-bin"), bin, "{name}");
        assert_eq!(host_path(&objects, "cni-conf"), conf, "{name}");
        // All other objects are those of the default deployment.
        let mut others = rendered(".");
        for object in &mut others {
            if object["metadata"]["name"] == "ipam-agent" && object["kind"] == "DaemonSet" {
                let volumes = object["spec"]["template"]["spec"]["volumes"].as_array_mut().unwrap();
                for volume in volumes.iter_mut() {
                    match volume["name"].as_str().unwrap() {
                        "cni-bin" => volume["hostPath"]["path"] = bin.into(),
                        "cni-conf" => volume["hostPath"]["path"] = conf.into(),
                        _ => {}
                    }
                }
            }
        }
        assert_eq!(objects.len(), others.len());
        for (object, other) in objects.iter().zip(&others) {
            assert!(
                crate::chart::sorted(object) == crate::chart::sorted(other),
                "{name}: {}",
                object["metadata"]
            );
        }
    }
}

#[test]
fn h6_13_nothing_of_the_deployment_outlives_it() {
    for name in KUSTOMIZATIONS {
        for object in rendered(name) {
            let kind = object["kind"].as_str().unwrap();
            assert!(!kind.contains("CustomResource") && !kind.contains("Webhook"), "{kind}");
            assert!(object["metadata"].get("finalizers").is_none(), "{kind}");
        }
    }
}
