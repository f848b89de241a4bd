//! Mini kubelet of all nodes, with the parts of a control plane that their pods need: it makes the pods of
//! workloads, runs them, and writes what comes of them.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Output;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::container::{Container, refresh};
use super::lab::{Lab, Node};
use super::network::Attachment;
use super::pod::{Pod, path_of};
use crate::support::until;

/// Exit code of runc for a container that it killed with SIGTERM and that ended by itself.
const ENDED: i32 = 0;

/// Mini kubelet.
pub(crate) struct Kubelet {
    running: BTreeMap<String, Running>,
    /// Reasons for which containers have waited.
    pub(crate) waited: BTreeSet<String>,
    /// Containers that have ended by themselves.
    pub(crate) ends: Vec<End>,
    pub(crate) lab: Lab,
}

/// End of a container.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) pod: String,
    pub(crate) code: i32,
    pub(crate) log: String,
}

/// Pod on a node.
struct Running {
    pod: Pod,
    node: usize,
    /// Uid of its workload.
    owner: Value,
    containers: BTreeMap<String, Container>,
    attachment: Option<Attachment>,
    has_ended: bool,
    ready_since: Option<Instant>,
}

impl Kubelet {
    pub(crate) fn new(lab: Lab) -> Self {
        Self { running: BTreeMap::new(), waited: BTreeSet::new(), ends: Vec::new(), lab }
    }

    /// Runs a command of an operator to its end, while the nodes work.
    pub(crate) async fn run(&mut self, command: &str) -> String {
        println!("$ {command}");
        let mut child = self.lab.shell(command).spawn().unwrap();
        until(&format!("`{command}` ends"), async || {
            self.sync();
            child.try_wait().unwrap().map(drop).ok_or_else(|| self.report())
        })
        .await;
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{command}: {}\n{}", text(&output), self.report());
        text(&output)
    }

    /// Runs a program in a container that runs.
    pub(crate) fn exec(&self, pod: &str, container: &str, words: &[&str], input: &str) -> Output {
        let running = self.running.values().find(|one| one.pod.name == pod).expect(pod);
        running.containers[container].exec(&self.lab.nodes[running.node], words, input)
    }

    /// Kills the containers of a pod, as a power cut does.
    pub(crate) fn kill(&mut self, pod: &str) {
        let running = self.running.values_mut().find(|one| one.pod.name == pod).expect(pod);
        running.ready_since = None;
        for mut container in std::mem::take(&mut running.containers).into_values() {
            container.kill(&self.lab.nodes[running.node], "KILL");
        }
    }

    /// True if all probes of a pod have succeeded since its start.
    pub(crate) fn is_ready(&self, pod: &str) -> bool {
        self.running.values().any(|one| one.pod.name == pod && one.ready_since.is_some())
    }

    /// Containers as they are, for the message of a failure.
    fn report(&self) -> String {
        let pods = self.running.iter().map(|(path, one)| {
            format!("{path}: {:?}, ready {}", one.containers.keys(), one.ready_since.is_some())
        });
        let last = self.ends.last().map(|end| format!("{end:?}"));
        pods.chain(last).collect::<Vec<_>>().join("\n")
    }

    /// Brings all nodes nearer to the objects of the API server.
    pub(crate) fn sync(&mut self) {
        let owners = self.make_pods();
        let pods = self.lab.api.list("/api/v1/pods").into_iter().map(|pod| (path_of("v1/pods", &pod), pod));
        let mut pods: BTreeMap<String, Value> = pods.collect();
        pods.retain(|_, pod| pod["metadata"]["deletionTimestamp"].is_null() && has_owner(pod, &owners));
        let gone: Vec<String> =
            self.running.keys().filter(|path| !pods.contains_key(*path)).cloned().collect();
        for path in gone {
            self.running.remove(&path).unwrap().end(&self.lab);
            self.lab.api.remove(&path);
        }
        for (path, pod) in &pods {
            let Some(node) =
                self.lab.nodes.iter().position(|node| pod["spec"]["nodeName"] == node.name.as_str())
            else {
                // The scheduler binds a pod before its kubelet and the watcher see it.
                self.lab
                    .api
                    .change(path, |pod| pod["spec"]["nodeName"] = self.lab.nodes[0].name.as_str().into());
                continue;
            };
            let running = self.running.entry(path.clone()).or_insert_with(|| Running::new(pod, node));
            if let Err(waiting) = running.advance(&self.lab, &mut self.ends) {
                self.waited.insert(waiting);
            }
            let status = running.status(&self.lab);
            self.lab.api.change(path, |pod| pod["status"] = status);
        }
        self.count();
    }

    /// Makes the pods of workloads. Returns the uids of these.
    fn make_pods(&self) -> Vec<Value> {
        let mut uids = Vec::new();
        for (kind, plural) in [
            ("StatefulSet", "apps/v1/statefulsets"),
            ("DaemonSet", "apps/v1/daemonsets"),
            ("Job", "batch/v1/jobs"),
        ] {
            for owner in self.lab.api.list(&format!("/apis/{plural}")) {
                let (metadata, spec) = (&owner["metadata"], &owner["spec"]);
                let (name, nodes) = (metadata["name"].as_str().unwrap(), &self.lab.nodes);
                uids.push(metadata["uid"].clone());
                let replicas = || (0..spec["replicas"].as_u64().unwrap()).zip(nodes);
                let pods: Vec<(String, &Node)> = match kind {
                    "StatefulSet" => replicas().map(|(n, node)| (format!("{name}-{n}"), node)).collect(),
                    "DaemonSet" => nodes.iter().map(|node| (format!("{name}-{}", node.name), node)).collect(),
                    _ => vec![(name.to_owned(), &nodes[0])],
                };
                for (pod, node) in pods {
                    let mut metadata = json!({"name": pod, "namespace": metadata["namespace"],
                        "labels": spec["template"]["metadata"]["labels"]});
                    metadata["ownerReferences"] = json!([{"apiVersion": owner["apiVersion"], "kind": kind,
                        "name": name, "uid": owner["metadata"]["uid"], "controller": true}]);
                    let mut pod = json!({"metadata": metadata, "spec": spec["template"]["spec"]});
                    pod["spec"]["nodeName"] = node.name.as_str().into();
                    let path = path_of("v1/pods", &pod);
                    if self.lab.api.get(&path).is_none() {
                        self.lab.api.put(path.rsplit_once('/').unwrap().0, pod);
                    }
                }
            }
        }
        uids
    }

    /// Writes the status of workloads.
    fn count(&self) {
        let of = |owner: &Value| {
            let uid = owner["metadata"]["uid"].clone();
            self.running.values().filter(move |one| one.owner == uid)
        };
        let api = &self.lab.api;
        for set in api.list("/apis/apps/v1/statefulsets") {
            let ready = of(&set).filter(|one| one.ready_since.is_some()).count();
            let status = json!({"observedGeneration": set["metadata"]["generation"],
                "replicas": of(&set).count(), "readyReplicas": ready, "availableReplicas": ready});
            api.change(&path_of("apps/v1/statefulsets", &set), |set| set["status"] = status);
        }
        for set in api.list("/apis/apps/v1/daemonsets") {
            let after = Duration::from_secs(set["spec"]["minReadySeconds"].as_u64().unwrap_or(0));
            let is_available = |one: &&Running| one.ready_since.is_some_and(|since| since.elapsed() >= after);
            let all = self.lab.nodes.len();
            let status = json!({"observedGeneration": set["metadata"]["generation"],
                "desiredNumberScheduled": all, "updatedNumberScheduled": all,
                "numberAvailable": of(&set).filter(is_available).count()});
            api.change(&path_of("apps/v1/daemonsets", &set), |set| set["status"] = status);
        }
        for job in api.list("/apis/batch/v1/jobs") {
            if of(&job).any(|one| one.has_ended) {
                let complete =
                    json!({"succeeded": 1, "conditions": [{"type": "Complete", "status": "True"}]});
                api.change(&path_of("batch/v1/jobs", &job), |job| job["status"] = complete);
            }
        }
    }
}

/// True for a pod of no workload, or of a workload that exists.
fn has_owner(pod: &Value, owners: &[Value]) -> bool {
    let owner = &pod["metadata"]["ownerReferences"][0]["uid"];
    owner.is_null() || owners.contains(owner)
}

impl Running {
    fn new(pod: &Value, node: usize) -> Self {
        let owner = pod["metadata"]["ownerReferences"][0]["uid"].clone();
        let (pod, containers) = (Pod::of(pod), BTreeMap::new());
        Self { pod, node, owner, containers, attachment: None, has_ended: false, ready_since: None }
    }

    /// Starts what can start, and looks for what has ended.
    fn advance(&mut self, lab: &Lab, ends: &mut Vec<End>) -> Result<(), String> {
        let node = &lab.nodes[self.node];
        if let Some(network) = &self.pod.network {
            // The image of the example is not of this project: the pod has a sandbox only.
            let attach = || Attachment::make(lab, node, &self.pod, network);
            self.attachment.get_or_insert_with(attach);
            self.ready_since.get_or_insert_with(Instant::now);
            return Ok(());
        }
        if self.has_ended {
            return Ok(());
        }
        refresh(lab, node, &self.pod)?;
        let mut left = 0;
        for (list, container) in ["initContainers", "containers"]
            .iter()
            .flat_map(|list| self.pod.list(list).map(move |one| (*list, one)))
        {
            let name = container["name"].as_str().unwrap();
            if !self.containers.contains_key(name) {
                self.containers.insert(name.to_owned(), Container::start(lab, node, &self.pod, container)?);
            }
            let running = self.containers.get_mut(name).unwrap();
            let is_init = list == "initContainers";
            match running.ended() {
                None if is_init => return Ok(()),
                None => left += 1,
                Some(ENDED) if is_init || self.pod.is_job() => {}
                Some(code) => {
                    ends.push(End { pod: self.pod.name.clone(), code, log: running.logged() });
                    self.containers.remove(name);
                    self.ready_since = None;
                    return Ok(());
                }
            }
        }
        self.has_ended = left == 0;
        if self.ready_since.is_none() && !self.pod.is_job() && self.answers(node) {
            self.ready_since = Some(Instant::now());
        }
        Ok(())
    }

    /// True if all probes succeed.
    fn answers(&self, node: &Node) -> bool {
        self.pod.list("containers").all(|container| {
            let running = &self.containers[container["name"].as_str().unwrap()];
            let probes = ["livenessProbe", "readinessProbe"].iter().filter_map(|kind| container.get(kind));
            probes.into_iter().all(|probe| match probe["exec"]["command"].as_array() {
                Some(words) => {
                    let words: Vec<&str> = words.iter().map(|word| word.as_str().unwrap()).collect();
                    running.exec(node, &words, "").status.success()
                }
                None => answers_http(node, &probe["httpGet"]),
            })
        })
    }

    fn status(&self, lab: &Lab) -> Value {
        let phase = match (self.has_ended, self.containers.is_empty() && self.attachment.is_none()) {
            (true, _) => "Succeeded",
            (false, true) => "Pending",
            (false, false) => "Running",
        };
        let addresses = self.attachment.iter().flat_map(|attachment| &attachment.addresses);
        let ips: Vec<Value> = addresses.map(|one| json!({"ip": one.split('/').next()})).collect();
        let ready = if self.ready_since.is_some() { "True" } else { "False" };
        json!({"phase": phase, "hostIP": lab.nodes[self.node].address, "podIPs": ips,
            "conditions": [{"type": "Ready", "status": ready}]})
    }

    /// Ends the pod, as its deletion demands.
    fn end(self, lab: &Lab) {
        let node = &lab.nodes[self.node];
        if let Some(attachment) = &self.attachment {
            attachment.end(node, &self.pod);
        }
        for mut container in self.containers.into_values() {
            if container.ended().is_none() {
                assert_eq!(container.kill(node, "TERM"), ENDED, "{}", container.logged());
            }
        }
    }
}

/// Asks a container by HTTP. A kubelet does not verify the certificate.
fn answers_http(node: &Node, probe: &Value) -> bool {
    assert_eq!(probe["scheme"], "HTTPS");
    let url = format!("https://{}:{}{}", node.address, probe["port"], probe["path"].as_str().unwrap());
    let words = ["curl", "--silent", "--fail-with-body", "--max-time", "2", "--insecure", &url];
    node.command(&words).output().unwrap().status.success()
}

pub(crate) fn text(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned()).concat()
}
