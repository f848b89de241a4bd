//! The default deployment by the commands of its page, up to a container with addresses, and its removal.

use std::path::Path;
use std::process::{Output, Stdio};

use serde_json::Value;

use super::container::{Container, refresh};
use super::lab::{Lab, Node};
use super::page;
use super::pod::Pod;
use crate::support::until;

const MAIN_PLUGINS: &str = "/usr/lib/cni";
/// Exit code of runc for a container that it killed with SIGTERM and that ended by itself.
const ENDED: i32 = 0;

/// Pods of the deployment, by node.
struct Deployment {
    lab: Lab,
    members: Vec<Container>,
    agents: Vec<Agent>,
}

/// Pod of the DaemonSet on a node.
struct Agent {
    pod: Pod,
    agent: Container,
    networks: Container,
}

impl Deployment {
    /// Starts all pods, in the order in which a kubelet can start them.
    async fn apply(mut lab: Lab) -> Self {
        // With a network that the agents install, as in `examples/macvlan.yaml`.
        lab.objects.extend(example("macvlan.yaml"));
        let set = lab.object("StatefulSet", "ipamd").clone();
        let pods: Vec<Pod> = (0..3).map(|number| Pod::of(&set, &format!("ipamd-{number}"))).collect();
        let waiting = Container::start(&lab, &lab.nodes[0], &pods[0], "ipamd").err();
        assert!(waiting.is_some_and(|why| why.contains("ipamd-tls")), "members wait for their certificates");
        finish(&lab, "ipamd-secrets", "secrets").await;
        // A second run leaves all as it is.
        let first = lab.api.secret("ipamd-tls");
        finish(&lab, "ipamd-secrets", "secrets").await;
        assert_eq!(lab.api.secret("ipamd-tls"), first);
        let mut deployment = Self { lab, members: Vec::new(), agents: Vec::new() };
        deployment.start_members(&pods);
        // Agents wait for their join tokens, and those for the members.
        for number in 0..deployment.lab.nodes.len() {
            deployment.agents.push(Agent::start(&deployment.lab, &deployment.lab.nodes[number]));
        }
        deployment.is_healthy().await;
        finish(&deployment.lab, "ipamd-join", "join").await;
        let tokens = deployment.lab.api.secret("ipam-agent-join").unwrap();
        assert_eq!(tokens.keys().collect::<Vec<_>>(), ["w1", "w2", "w3"]);
        for (node, agent) in deployment.lab.nodes.iter().zip(&deployment.agents) {
            refresh(&deployment.lab, node, &agent.pod);
        }
        deployment
    }

    fn start_members(&mut self, pods: &[Pod]) {
        let nodes = pods.iter().zip(&self.lab.nodes);
        let members = nodes.map(|(pod, node)| Container::start(&self.lab, node, pod, "ipamd").unwrap());
        self.members = members.collect();
    }

    /// Waits until all members answer the probes of a kubelet. The readiness probe asks for a leader.
    async fn is_healthy(&self) {
        let container =
            Pod::of(self.lab.object("StatefulSet", "ipamd"), "ipamd-0").container("ipamd").clone();
        for (node, probe) in self
            .lab
            .nodes
            .iter()
            .flat_map(|node| ["livenessProbe", "readinessProbe"].map(|probe| (node, probe)))
        {
            let probe = &container[probe]["httpGet"];
            let path = probe["path"].as_str().unwrap();
            assert_eq!(probe["scheme"], "HTTPS");
            let url = format!("https://{}:{}{path}", node.address, probe["port"]);
            until(&format!("{} answers {path}", node.name), async || {
                // A kubelet does not verify the certificate.
                let words = ["curl", "--silent", "--show-error", "--fail-with-body", "--insecure", &url];
                let answer = node.command(&words).output().unwrap();
                if answer.status.success() { Ok(()) } else { Err(text(&answer)) }
            })
            .await;
        }
    }

    /// `kubectl exec -i ipamd-<number> --`.
    fn exec(&self, number: usize, words: &[&str], input: &str) -> Output {
        self.members[number].exec(&self.lab.nodes[number], words, input)
    }

    /// Waits until the readiness probe of each agent succeeds, and its networks are on the node.
    async fn agents_are_ready(&mut self) {
        for (node, agent) in self.lab.nodes.iter().zip(&mut self.agents) {
            let probe = agent.pod.container("agent")["readinessProbe"]["exec"]["command"].clone();
            let probe: Vec<&str> =
                probe.as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
            until(&format!("the agent of {} is ready", node.name), async || {
                assert_eq!(agent.agent.ended(), None, "{}", agent.agent.logged());
                let asked = agent.agent.exec(node, &probe, "");
                if asked.status.success() { Ok(()) } else { Err(text(&asked) + &agent.agent.logged()) }
            })
            .await;
            let doctor = ["/ipam-agent", "doctor", "--config", "/etc/ipamd/config/agent.toml"];
            // It sees the plugin and its pods, and has the capability for probes and no other.
            until(&format!("the doctor finds nothing on {}", node.name), async || {
                let report = agent.agent.exec(node, &doctor, "");
                let text = text(&report);
                let checks = ["plugin", "capabilities", "identity", "token", "pods"];
                let are_ok = checks.iter().all(|check| text.contains(&format!("ok       {check}")));
                if report.status.success() && are_ok { Ok(()) } else { Err(text) }
            })
            .await;
            until("the network is installed", async || {
                let there = node.command(&["test", "-e", "/etc/cni/net.d/10-lan.conflist"]).status().unwrap();
                if there.success() { Ok(()) } else { Err(agent.networks.logged()) }
            })
            .await;
        }
    }

    /// Restarts all members while the name service is away, as after a power cut of the whole cluster.
    async fn restart_without_names(&mut self) {
        let members = std::mem::take(&mut self.members);
        for (node, mut member) in self.lab.nodes.iter().zip(members) {
            member.kill(node, "KILL");
        }
        self.lab.name_members(false);
        let set = self.lab.object("StatefulSet", "ipamd").clone();
        let pods: Vec<Pod> = (0..3).map(|number| Pod::of(&set, &format!("ipamd-{number}"))).collect();
        self.start_members(&pods);
        until("the members have a leader again", async || {
            let shown = self.exec(0, &["/ipamctl", "pool", "list", "-o", "name"], "");
            if shown.status.success() { Ok(()) } else { Err(text(&shown)) }
        })
        .await;
        self.lab.name_members(true);
        self.is_healthy().await;
    }
}

impl Agent {
    fn start(lab: &Lab, node: &Node) -> Self {
        let pod = Pod::of(lab.object("DaemonSet", "ipam-agent"), &format!("ipam-agent-{}", node.name));
        let mut install = Container::start(lab, node, &pod, "install").unwrap();
        assert_eq!(install.wait(), ENDED, "{}", install.logged());
        let agent = Container::start(lab, node, &pod, "agent").unwrap();
        let networks = Container::start(lab, node, &pod, "networks").unwrap();
        Self { pod, agent, networks }
    }
}

/// Objects of an example.
fn example(name: &str) -> Vec<Value> {
    let path = ipam_manifests::folder().join("examples").join(name);
    ipam_manifests::documents(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Runs the container of a Job to its end. A kubelet repeats one that fails, such as before there is a
/// leader.
async fn finish(lab: &Lab, job: &str, container: &str) {
    let pod = Pod::of(lab.object("Job", job), job);
    until(&format!("{job} succeeds"), async || {
        let mut container = Container::start(lab, &lab.nodes[0], &pod, container)?;
        if container.wait() == ENDED { Ok(()) } else { Err(container.logged()) }
    })
    .await;
}

fn text(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned()).concat()
}

/// Runs the main plugin of a network on a node, as a runtime does for a container.
fn plugin(node: &Node, verb: &str, network: &Value) -> Output {
    let file = node.dir.path().join("network.json");
    std::fs::write(&file, network.to_string()).unwrap();
    let main = Path::new(MAIN_PLUGINS).join(network["type"].as_str().unwrap());
    let mut command = node.command(&[main.to_str().unwrap()]);
    command.env("CNI_COMMAND", verb).env("CNI_CONTAINERID", "c1").env("CNI_IFNAME", "net1");
    command.env("CNI_NETNS", "/run/netns/web").env("CNI_PATH", format!("/opt/cni/bin:{MAIN_PLUGINS}"));
    command.stdin(std::fs::File::open(file).unwrap()).stdout(Stdio::piped()).output().unwrap()
}

/// Network that the annotation of the pod names.
fn network_of_pod(objects: &[Value]) -> Value {
    let pod = objects.iter().find(|object| object["kind"] == "Pod").unwrap();
    let name = &pod["metadata"]["annotations"]["k8s.v1.cni.cncf.io/networks"];
    let is_named = |object: &&Value| {
        object["kind"] == "NetworkAttachmentDefinition" && &object["metadata"]["name"] == name
    };
    let definition = objects.iter().find(is_named).unwrap();
    serde_json::from_str(definition["spec"]["config"].as_str().unwrap()).unwrap()
}

/// Attaches the pod of an example to its network.
fn attach(node: &Node, network: &Value) {
    node.run("ip link add eth1 type veth peer name far && ip link set eth1 up && ip link set far up");
    node.run("ip netns add web");
    let added = plugin(node, "ADD", network);
    let result: Value = serde_json::from_slice(&added.stdout).unwrap_or_else(|_| panic!("{added:?}"));
    let ips = result["ips"].as_array().unwrap_or_else(|| panic!("{result}"));
    let addresses: Vec<&str> = ips.iter().map(|ip| ip["address"].as_str().unwrap()).collect();
    assert!(
        addresses[0].starts_with("10.10.0.") && addresses[1].starts_with("2001:db8:10:"),
        "{addresses:?}"
    );
    let shown = node.run("ip -n web address show dev net1");
    assert!(addresses.iter().all(|address| shown.contains(address)), "{shown}");
    // The agent saw the namespace of the container appear, and will see it go.
    let journal = node.run("cat /var/lib/ipam-agent/journal");
    assert!(journal.contains("\"path\":\"/run/netns/web\""), "{journal}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn h6_13_the_page_leads_to_a_pod_with_an_address_and_the_uninstall_leaves_nothing() {
    let mut lab = Some(Lab::make("."));
    let mut deployment = None;
    let mut network = None;
    for command in page::commands() {
        println!("$ {}", command.join(" "));
        let words: Vec<&str> = command.iter().map(String::as_str).collect();
        match words.as_slice() {
            // The nodes have the image.
            ["ctr", "--namespace", "k8s.io", "images", "import", archive] => {
                assert!(archive.ends_with(".oci.tar"), "{archive}");
            }
            ["kubectl", "apply", "-k", "deploy/kubernetes"] => {
                deployment = Some(Deployment::apply(lab.take().unwrap()).await);
            }
            ["kubectl", "--namespace", "ipamd-system", "rollout", "status", "daemonset/ipam-agent", ..] => {
                deployment.as_mut().unwrap().agents_are_ready().await;
            }
            [
                "kubectl",
                "--namespace",
                "ipamd-system",
                "exec",
                "-i",
                "ipamd-0",
                "--",
                program @ ..,
                "<",
                file,
            ] => {
                let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(file);
                let input = std::fs::read_to_string(path).unwrap();
                let done = deployment.as_ref().unwrap().exec(0, program, &input);
                assert!(done.status.success(), "{}", text(&done));
            }
            ["kubectl", "apply", "-f", "deploy/kubernetes/examples/multus.yaml"] => {
                let used = network_of_pod(&example("multus.yaml"));
                attach(&deployment.as_ref().unwrap().lab.nodes[0], &used);
                network = Some(used);
            }
            other => panic!("a command that is not known here: {other:?}"),
        }
    }
    let mut deployment = deployment.unwrap();
    deployment.restart_without_names().await;
    uninstalls(&mut deployment, &network.unwrap()).await;
}

/// The uninstall on the node of the pod: refused while the pod lives, complete afterwards.
async fn uninstalls(deployment: &mut Deployment, network: &Value) {
    let objects = ipam_manifests::render(&ipam_manifests::folder().join("uninstall")).unwrap();
    let (lab, node) = (&deployment.lab, &deployment.lab.nodes[0]);
    let pod = Pod::of(&objects[0], "ipam-uninstall");
    let mut refused = Container::start(lab, node, &pod, "uninstall").unwrap();
    assert_eq!(refused.wait(), 1, "{}", refused.logged());
    assert!(refused.logged().contains("network lan, container c1, interface net1"), "{}", refused.logged());
    node.run("test -x /opt/cni/bin/ipam-cni && test -e /etc/cni/net.d/10-lan.conflist");
    let released = plugin(node, "DEL", network);
    assert!(released.status.success(), "{released:?}");
    // The agent delivers the release, if the members did not answer at once.
    until("the uninstall succeeds", async || {
        let mut uninstall = Container::start(lab, node, &pod, "uninstall").unwrap();
        let left = until("the uninstall ends or waits", async || {
            let is_done = uninstall.logged().contains("/host/cni/bin/ipam-cni: removed");
            match uninstall.ended() {
                None if is_done => Ok(None),
                None => Err(uninstall.logged()),
                Some(code) => Ok(Some(code)),
            }
        })
        .await;
        if left.is_some() {
            return Err(uninstall.logged());
        }
        // Its pod stays available until it is deleted.
        assert_eq!(uninstall.kill(node, "TERM"), ENDED, "{}", uninstall.logged());
        Ok(())
    })
    .await;
    assert_eq!(node.run("ls -A /opt/cni/bin /etc/cni/net.d"), "/etc/cni/net.d:\n\n/opt/cni/bin:\n");
    let agent = &mut deployment.agents[0];
    assert_eq!(agent.agent.kill(node, "TERM"), ENDED, "{}", agent.agent.logged());
    assert_eq!(agent.networks.kill(node, "TERM"), ENDED, "{}", agent.networks.logged());
    assert_eq!(node.run("ls -A /run/ipamd"), "", "the socket went with the agent");
}
