//! The default deployment by the commands of its page, up to a pod with addresses, and its removal.

use std::path::Path;
use std::time::Instant;

use super::kubelet::{Kubelet, text};
use super::lab::Lab;
use super::page;
use crate::support::until;

/// Most commands that the way to an address may take.
const COMMANDS_MAX: usize = 5;
const NAMESPACE: &str = "ipamd-system";
const MEMBERS: [&str; 3] = ["ipamd-0", "ipamd-1", "ipamd-2"];
/// Collections of all kinds that the deployment creates, and of definitions.
const COLLECTIONS: [&str; 14] = [
    "/api/v1/configmaps",
    "/api/v1/pods",
    "/api/v1/secrets",
    "/api/v1/serviceaccounts",
    "/api/v1/services",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "/apis/apps/v1/daemonsets",
    "/apis/apps/v1/statefulsets",
    "/apis/batch/v1/cronjobs",
    "/apis/batch/v1/jobs",
    "/apis/policy/v1/poddisruptionbudgets",
    "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "/apis/rbac.authorization.k8s.io/v1/roles",
];

/// H6, lines 1 and 13.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn h6_1_and_13_the_page_leads_to_a_pod_with_an_address_and_the_uninstall_leaves_nothing() {
    let mut cluster = Kubelet::new(Lab::make());
    // With a network that the agents install.
    let example = std::fs::read_to_string(ipam_manifests::folder().join("examples/macvlan.yaml")).unwrap();
    let networks = ipam_manifests::documents(&example).unwrap().remove(0);
    cluster.lab.api.put(&format!("/api/v1/namespaces/{NAMESPACE}/configmaps"), networks);
    installs(&mut cluster).await;
    agents_find_nothing(&cluster).await;
    repeats(&mut cluster).await;
    restarts_without_names(&mut cluster).await;
    uninstalls(&mut cluster).await;
}

async fn installs(cluster: &mut Kubelet) {
    let commands = page::commands("Installation");
    assert!(!commands.is_empty() && commands.len() <= COMMANDS_MAX, "{commands:#?}");
    let begun = Instant::now();
    for command in &commands {
        let in_member = command.strip_prefix(&format!("kubectl --namespace {NAMESPACE} exec -i ipamd-0 -- "));
        if command.starts_with("ctr --namespace k8s.io images import ") {
            // The nodes have the image.
            assert!(command.ends_with(".oci.tar"), "{command}");
        } else if let Some(program) = in_member {
            // The API server of the tests has no streams.
            let (words, file) = program.split_once(" < ").unwrap();
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(file);
            let input = std::fs::read_to_string(path).unwrap();
            let words: Vec<&str> = words.split(' ').collect();
            let done = cluster.exec("ipamd-0", "ipamd", &words, &input);
            assert!(done.status.success(), "{}", text(&done));
        } else {
            cluster.run(command).await;
        }
    }
    cluster.run("kubectl wait --for=condition=Ready pod/web --timeout=4m").await;
    let took = begun.elapsed().as_secs_f64();
    println!("{} commands and {took:.1} s lead to a pod with an address", commands.len());
    let pod = cluster.lab.api.get("/api/v1/namespaces/default/pods/web").unwrap();
    let ip = |number: usize| pod["status"]["podIPs"][number]["ip"].as_str().unwrap();
    assert!(ip(0).starts_with("10.10.0.") && ip(1).starts_with("2001:db8:10:"), "{pod}");
    let members = "--selector app.kubernetes.io/name=ipamd --timeout=4m";
    let ready = format!("kubectl --namespace {NAMESPACE} wait --for=condition=Ready pod {members}");
    let ready = cluster.run(&ready).await;
    assert_eq!(ready.matches(" condition met\n").count(), 3, "{ready}");
    let waited = |name: &str| cluster.waited.iter().any(|why| why.contains(name));
    assert!(waited("ipamd-tls"), "members wait for their certificates: {:?}", cluster.waited);
    let tokens = cluster.lab.files(NAMESPACE, "secrets", "ipam-agent-join").unwrap();
    assert_eq!(tokens.keys().collect::<Vec<_>>(), ["w1", "w2", "w3"]);
    let ends: Vec<_> = cluster.ends.iter().filter(|end| end.pod != "ipamd-join").collect();
    assert!(ends.is_empty(), "a Job is repeated until there is a leader, and nothing else ends: {ends:?}");
}

/// The doctor sees the plugin and its pods, and the capability for probes and no other.
async fn agents_find_nothing(cluster: &Kubelet) {
    for node in &cluster.lab.nodes {
        let doctor = ["/ipam-agent", "doctor", "--config", "/etc/ipamd/config/agent.toml"];
        until(&format!("the doctor of {} finds nothing", node.name), async || {
            let report = cluster.exec(&format!("ipam-agent-{}", node.name), "agent", &doctor, "");
            let text = text(&report);
            let mut checks = ["plugin", "capabilities", "identity", "token", "pods"].into_iter();
            let all_are_ok = checks.all(|check| text.contains(&format!("ok       {check}")));
            if all_are_ok && report.status.success() { Ok(()) } else { Err(text) }
        })
        .await;
        node.run("test -e /etc/cni/net.d/10-lan.conflist");
    }
    // The agent saw the namespace of the container appear, and will see it go.
    let journal = cluster.lab.nodes[0].run("cat /var/lib/ipam-agent/journal");
    assert!(journal.contains("\"path\":\"/run/netns/web\""), "{journal}");
}

/// A second run, after the finished Job has expired, leaves all as it is.
async fn repeats(cluster: &mut Kubelet) {
    let secrets = ["ipamd-ca", "ipamd-tls", "ipamd-admin", "ipamd-trust", "ipam-agent-join"];
    let read = |cluster: &Kubelet| secrets.map(|name| cluster.lab.files(NAMESPACE, "secrets", name).unwrap());
    let before = read(cluster);
    assert!(cluster.lab.api.remove(&format!("/apis/batch/v1/namespaces/{NAMESPACE}/jobs/ipamd-secrets")));
    let applied = cluster.run("kubectl apply -k deploy/kubernetes").await;
    assert_eq!(applied.matches(" created\n").count(), 1, "{applied}");
    let complete = "wait --for=condition=Complete job/ipamd-secrets --timeout=4m";
    cluster.run(&format!("kubectl --namespace {NAMESPACE} {complete}")).await;
    assert_eq!(read(cluster), before);
}

/// All members restart while the name service is away, as after a power cut of the whole cluster.
async fn restarts_without_names(cluster: &mut Kubelet) {
    MEMBERS.iter().for_each(|member| cluster.kill(member));
    cluster.lab.name_members(false);
    until("the members have a leader again", async || {
        cluster.sync();
        let shown = cluster.exec("ipamd-0", "ipamd", &["/ipamctl", "pool", "list", "-o", "name"], "");
        if shown.status.success() { Ok(()) } else { Err(text(&shown)) }
    })
    .await;
    cluster.lab.name_members(true);
    until("the members are ready", async || {
        cluster.sync();
        let late = MEMBERS.iter().find(|member| !cluster.is_ready(member));
        late.map_or(Ok(()), |member| Err(format!("{member} is not")))
    })
    .await;
}

/// The uninstall is refused on the node of the pod while the pod lives, and complete afterwards.
async fn uninstalls(cluster: &mut Kubelet) {
    let commands = page::commands("Uninstallation");
    let [apply, wait, rest @ ..] = commands.as_slice() else { panic!("{commands:?}") };
    cluster.run(apply).await;
    let refusal = until("the node of the pod refuses", async || {
        cluster.sync();
        let refusal = cluster.ends.iter().find(|end| end.pod == "ipam-uninstall-w1" && end.code == 1);
        refusal.map(|end| end.log.clone()).ok_or_else(|| format!("{:?}", cluster.ends))
    })
    .await;
    assert!(refusal.contains("network lan, container c1, interface net1"), "{refusal}");
    cluster.lab.nodes[0].run("test -x /opt/cni/bin/ipam-cni && test -e /etc/cni/net.d/10-lan.conflist");
    cluster.run("kubectl delete -f deploy/kubernetes/examples/multus.yaml").await;
    cluster.run(wait).await;
    for node in &cluster.lab.nodes {
        assert_eq!(node.run("ls -A /opt/cni/bin /etc/cni/net.d"), "/etc/cni/net.d:\n\n/opt/cni/bin:\n");
    }
    for command in rest {
        cluster.run(command).await;
    }
    until("the namespace is gone", async || {
        cluster.sync();
        let left: Vec<_> = COLLECTIONS.iter().flat_map(|path| cluster.lab.api.list(path)).collect();
        let namespaces = cluster.lab.api.list("/api/v1/namespaces");
        if left.is_empty() && namespaces.is_empty() {
            Ok(())
        } else {
            Err(format!("{namespaces:?} {left:?}"))
        }
    })
    .await;
    for node in &cluster.lab.nodes {
        assert_eq!(node.run("ls -A /run/ipamd"), "", "the socket went with the agent");
    }
}
