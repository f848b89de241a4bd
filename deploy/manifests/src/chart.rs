//! Helm chart, generated from the objects that kustomize renders.
//!
//! Templates use `.Values`, `if`, `range` and `toYaml` only. The default values are read from the objects, so
//! that the default output of the chart is that of kustomize.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use serde_json::{Map, Value, json};

use crate::yaml::Holes;

/// Namespace of the manifests.
const NAMESPACE: &str = "ipamd-system";
/// Realm of the manifests.
const REALM: &str = "default";
/// Explanations of the values, by their keys.
const COMMENTS: [(&str, &str); 14] = [
    (
        "agents.cniBinDir",
        "Directory of CNI plugins on the nodes.\nk3s: /var/lib/rancher/k3s/data/cni\n\
         MicroK8s: /var/snap/microk8s/current/opt/cni/bin",
    ),
    (
        "agents.cniConfDir",
        "Directory of network configurations on the nodes.\nk3s: /var/lib/rancher/k3s/agent/etc/cni/net.d\n\
         MicroK8s: /var/snap/microk8s/current/args/cni-network",
    ),
    ("agents.nodeSelector", "Labels of the nodes with an agent; none for all nodes."),
    (
        "customResources",
        "Install the custom resources Pool, Subnet, Reservation, NodeIPPool and HostPolicy, and apply them.",
    ),
    ("image", "Image with all programs."),
    (
        "members.createSecrets",
        "Create the CA and the certificates by a Job. Otherwise supply the Secrets ipamd-admin,\n\
         ipamd-tls and ipamd-trust.",
    ),
    (
        "members.enabled",
        "Members in this cluster. Otherwise they are outside: name them in servers, and supply the\n\
         Secrets ipamd-admin and ipamd-trust.",
    ),
    ("members.nodeSelector", "Labels of the nodes with a member."),
    (
        "members.storageClass",
        "Class of the volumes of members; empty for the default of the cluster. Use local volumes.",
    ),
    ("members.storageSize", "Size of the volume of a member."),
    ("namespace", "Namespace of all objects. The names in servers contain it."),
    ("realm", "Realm of the nodes and pods of this cluster."),
    (
        "servers",
        "URLs of the members. After a change restart the agents:\n\
         kubectl rollout restart daemonset/ipam-agent",
    ),
    ("", "Values of the chart, with their defaults. The chart is generated: cargo xtask chart."),
];

/// Files of the chart by their paths, generated from the default deployment and the custom resources.
///
/// # Errors
/// If a value is not where the chart expects it.
pub fn files(objects: &[Value], custom: &[Value], version: &str) -> Result<BTreeMap<String, String>> {
    let mut files = BTreeMap::new();
    let mut chart = Chart { holes: Holes::default(), values: Map::new() };
    chart.set("members.enabled", true.into());
    chart.set("members.createSecrets", true.into());
    chart.set("customResources", false.into());
    for object in objects.iter().chain(custom) {
        let text = |pointer| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let (kind, name) = (text("/kind"), text("/metadata/name"));
        let template = chart.template(object.clone())?;
        // The hash in the name of a ConfigMap is not part of its file's name.
        let stem =
            if kind == "ConfigMap" { name.rsplit_once('-').map_or(name, |(stem, _)| stem) } else { name };
        files.insert(format!("templates/{}-{stem}.yaml", kind.to_lowercase()), template);
    }
    files.insert("values.yaml".to_owned(), chart.values_file());
    files.insert("Chart.yaml".to_owned(), description(version));
    Ok(files)
}

fn description(version: &str) -> String {
    Holes::default().write(&json!({
        "apiVersion": "v2",
        "name": "ipamd",
        "description": "Replicated IP address management",
        "type": "application",
        "version": version,
        "appVersion": version,
        "kubeVersion": ">=1.25.0-0",
    }))
}

/// Chart under construction.
struct Chart {
    holes: Holes,
    values: Map<String, Value>,
}

impl Chart {
    /// Template of an object.
    fn template(&mut self, mut object: Value) -> Result<String> {
        let text = |pointer| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (kind, name) = (text("/kind"), text("/metadata/name"));
        match (kind.as_str(), name.as_str()) {
            ("StatefulSet", _) => self.members(&mut object)?,
            ("DaemonSet", _) => self.agents(&mut object)?,
            ("ConfigMap", name) if name.starts_with("ipam-agent-") => self.agent_settings(&mut object)?,
            ("ConfigMap", name) if name.starts_with("ipamd-") => self.member_settings(&mut object)?,
            ("Job", "ipamd-join") => self.join(object.pointer_mut("/spec/template"))?,
            ("CronJob", "ipamd-join") => self.join(object.pointer_mut("/spec/jobTemplate/spec/template"))?,
            _ => {}
        }
        self.everywhere(&mut object);
        let text = self.holes.write(&object);
        let members = "members.enabled";
        let conditions: &[&str] = match (kind.as_str(), name.as_str()) {
            // Without members there are no certificates of members, and no watcher in this cluster.
            (_, "ipamd-secrets") => &[members, "members.createSecrets"],
            (_, "ipamd-custom-resources") => &[members, "customResources"],
            (_, "ipamd") => &[members],
            ("ConfigMap", name) if name.starts_with("ipamd-") => &[members],
            ("CustomResourceDefinition", _) => &["customResources"],
            _ => &[],
        };
        let begin: String = conditions.iter().map(|key| format!("{{{{- if .Values.{key} }}}}\n")).collect();
        Ok(format!("{begin}{text}{}", "{{- end }}\n".repeat(conditions.len())))
    }

    fn members(&mut self, object: &mut Value) -> Result<()> {
        let claim = place(object, "/spec/volumeClaimTemplates/0/spec")?;
        let size = self.value("members.storageSize", place(claim, "/resources/requests/storage")?);
        *place(claim, "/resources/requests/storage")? = size;
        let class = "{{- if .Values.members.storageClass }}\n\
                     storageClassName: {{ toYaml .Values.members.storageClass }}\n{{- end }}";
        self.lines(claim, "members.storageClass", class);
        self.selector(place(object, "/spec/template/spec")?, "members.nodeSelector");
        Ok(())
    }

    fn agents(&mut self, object: &mut Value) -> Result<()> {
        let spec = place(object, "/spec/template/spec")?;
        let volumes = place(spec, "/volumes")?.as_array_mut().context("volumes are no list")?;
        for (volume, key) in [("cni-bin", "agents.cniBinDir"), ("cni-conf", "agents.cniConfDir")] {
            let of_name = volumes.iter_mut().find(|one| is_named(one, volume));
            let path = place(of_name.context("a volume is missing")?, "/hostPath/path")?;
            *path = self.value(key, path);
        }
        self.selector(spec, "agents.nodeSelector");
        Ok(())
    }

    /// Replaces the servers and the realm in the settings of agents.
    fn agent_settings(&mut self, object: &mut Value) -> Result<()> {
        let text = place(object, "/data/agent.toml")?;
        let settings = text.as_str().context("agent.toml is no text")?;
        let (before, rest) = settings.split_once("servers = [\n").context("agent.toml names no servers")?;
        let (servers, after) = rest.split_once("]\n").context("the servers have no end")?;
        let servers: Vec<Value> =
            servers.lines().map(|line| line.trim().trim_matches(['"', ',']).into()).collect();
        self.set("servers", servers.into());
        self.set("realm", REALM.into());
        let list =
            self.holes.add("{{- range $server := .Values.servers }}\n  \"{{ $server }}\",\n{{- end }}");
        let after = self.with_realm(after);
        *text = format!("{before}servers = [\n{list}\n]\n{after}").into();
        Ok(())
    }

    /// Replaces the realm of the watcher in the settings of members, and lets it apply custom resources.
    fn member_settings(&mut self, object: &mut Value) -> Result<()> {
        let text = place(object, "/data/ipamd.toml")?;
        let settings = text.as_str().context("ipamd.toml is no text")?;
        let (before, after) = settings.split_once("[[kubernetes]]\n").context("ipamd.toml has no watcher")?;
        let custom = "{{- if .Values.customResources }}\ncustom_resources = true\n{{- end }}";
        let custom = self.holes.add(custom);
        let after = self.with_realm(after);
        *text = format!("{before}[[kubernetes]]\n{custom}\n{after}").into();
        Ok(())
    }

    /// Settings with the realm of the values.
    fn with_realm(&mut self, settings: &str) -> String {
        // A plain scalar of YAML is no string of TOML, so it is quoted here.
        let realm = self.holes.add("realm = \"{{ .Values.realm }}\"");
        settings.replace(&format!("realm = \"{REALM}\""), &realm)
    }

    /// Replaces the servers and the realm of `ipamctl kubernetes join-tokens`.
    fn join(&mut self, template: Option<&mut Value>) -> Result<()> {
        let container = place(template.context("a Job has no template")?, "/spec/containers/0")?;
        let arguments = place(container, "/args")?.as_array_mut().context("args are no list")?;
        let realm = arguments.iter_mut().find(|word| *word == REALM).context("the realm is missing")?;
        *realm = self.holes.add("{{ toYaml .Values.realm }}").into();
        let environment = place(container, "/env")?.as_array_mut().context("env is no list")?;
        let servers = environment.iter_mut().find(|one| is_named(one, "IPAM_SERVERS"));
        let joined = "\"{{ range $index, $server := .Values.servers }}\
                      {{ if $index }},{{ end }}{{ $server }}{{ end }}\"";
        *place(servers.context("IPAM_SERVERS is missing")?, "/value")? = self.holes.add(joined).into();
        Ok(())
    }

    /// Replaces the image and the namespace in all strings.
    fn everywhere(&mut self, value: &mut Value) {
        match value {
            Value::Object(map) => {
                for (key, nested) in map {
                    match key.as_str() {
                        "image" => *nested = self.value("image", nested),
                        _ => self.everywhere(nested),
                    }
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.everywhere(item)),
            Value::String(text) if text == NAMESPACE => *value = self.value("namespace", &NAMESPACE.into()),
            Value::String(text) if text.contains(NAMESPACE) => {
                *text = text.replace(NAMESPACE, &self.holes.add("{{ .Values.namespace }}"));
            }
            _ => {}
        }
    }

    /// Adds a selector of nodes that is empty by default.
    fn selector(&mut self, spec: &mut Value, key: &str) {
        let lines = format!(
            "{{{{- if .Values.{key} }}}}\nnodeSelector:\n{{{{- range $key, $value := .Values.{key} }}}}\n  \
             {{{{ toYaml $key }}}}: {{{{ toYaml $value }}}}\n{{{{- end }}}}\n{{{{- end }}}}"
        );
        self.lines(spec, key, &lines);
        self.set(key, json!({}));
    }

    /// Adds lines of actions to a map. The value is empty by default.
    fn lines(&mut self, map: &mut Value, key: &str, lines: &str) {
        let hole = self.holes.add(lines);
        self.set(key, "".into());
        map.as_object_mut().and_then(|map| map.insert(hole, Value::Null));
    }

    /// Makes a scalar a value of the chart, with the present one as its default.
    fn value(&mut self, key: &str, present: &Value) -> Value {
        self.set(key, present.clone());
        self.holes.add(format!("{{{{ toYaml .Values.{key} }}}}")).into()
    }

    /// Sets the default of a value.
    fn set(&mut self, key: &str, default: Value) {
        match key.split_once('.') {
            None => self.values.insert(key.to_owned(), default),
            Some((section, key)) => {
                let section = self.values.entry(section).or_insert_with(|| json!({}));
                section.as_object_mut().and_then(|section| section.insert(key.to_owned(), default))
            }
        };
    }

    /// The file with all values, each below its explanation.
    fn values_file(&self) -> String {
        let text = self.holes.write(&Value::Object(self.values.clone()));
        let mut file = comment("", "");
        let mut section = String::new();
        for line in text.lines() {
            if let Some((key, _)) = line.split_once(':').filter(|_| !line.trim_start().starts_with('-')) {
                let (indent, key) = key.split_at(key.len() - key.trim_start().len());
                let path = if indent.is_empty() { key.to_owned() } else { format!("{section}.{key}") };
                if indent.is_empty() {
                    section = key.to_owned();
                    file.push('\n');
                }
                file.push_str(&comment(&path, indent));
            }
            file.push_str(line);
            file.push('\n');
        }
        file
    }
}

/// Comment of a value.
fn comment(path: &str, indent: &str) -> String {
    let text = COMMENTS.iter().find(|(key, _)| *key == path).map(|(_, text)| *text);
    text.into_iter().flat_map(str::lines).map(|line| format!("{indent}# {line}\n")).collect()
}

fn is_named(item: &Value, name: &str) -> bool {
    item.get("name").is_some_and(|own| own == name)
}

/// Part of an object, which must exist.
fn place<'a>(value: &'a mut Value, pointer: &str) -> Result<&'a mut Value> {
    value.pointer_mut(pointer).with_context(|| format!("the object has no {pointer}"))
}
