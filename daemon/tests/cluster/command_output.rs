//! Output of `ipamctl -o json` has the types of the API, so that programs can rely on one description.

use ipam_api::client::Call;
use ipam_api::node_report::Inventory;
use serde_json::json;

use crate::cluster::command_line::{CommandOutput, ipamctl};
use crate::cluster::schema::Schemas;
use crate::support::Cluster;
use crate::support::ask::allocate;

/// Commands that print nothing of the API's, and why.
const OTHERS: [(&str, &str); 8] = [
    ("completion", "a script for a shell"),
    ("context", "what is configured here"),
    ("diff", "a comparison of files with what there is"),
    ("fsck", "findings of its own; ipamctl/src/tests/collection.rs and tests/namespace have some"),
    ("kubernetes", "Secrets of a Kubernetes API server; tests/manifests has one"),
    ("version", "versions of several programs; the servers' part is checked by itself"),
    ("support", "an archive"),
    ("help", "text"),
];

/// Fields that need not be there and that no command here shows, and why.
const UNSEEN: &[(&str, &str)] = &[
    ("Allocation.colliding", "no agent probes here; tests/namespace/probing.rs has a collision"),
    ("Allocation.station", "no agent probes here; tests/namespace/silence.rs waits for stations"),
    ("AllocationPage.count", "ipamctl asks for no counts"),
    ("BulkPool.mtu", "web6 has none"),
    ("BulkPool.routes", "web6 has none"),
    ("BulkPool.vlan", "web6 has none"),
    ("Choice.skipped", "no pool is default here; tests/cluster/explain.rs has some"),
    ("EndpointPage.count", "ipamctl asks for no counts"),
    ("Epoch.confirmed_at", "nothing is restored here; tests/cluster/backup has it"),
    ("Epoch.from_revision", "nothing is restored here; tests/cluster/backup has it"),
    ("Epoch.since", "nothing is restored here; tests/cluster/backup has it"),
    ("Event.macs", "no agent probes here; tests/namespace/probing.rs has a foreign host"),
    ("EventPage.next", "ipamctl reads all pages and shows them as one"),
    ("EventPage.oldest", "ipamctl reads all pages and shows them as one"),
    ("GcPage.count", "ipamctl asks for no counts"),
    ("GcPage.next", "nothing is suspect here; raft/machine/tests/machine/churn.rs reads pages"),
    ("GivenAddress.probes", "agents alone ask for probes; tests/namespace/probing.rs has some"),
    ("HostPolicyPage.count", "ipamctl asks for no counts"),
    ("HostPolicyReset.more", "few hosts have addresses here; tests/cluster/host_policies.rs resets some"),
    ("Member.quarantined", "no member's state differs; raft/tests/cluster/digests.rs has one"),
    ("NamespacePage.count", "ipamctl asks for no counts"),
    ("NeededProbes.conflicts", "agents alone ask for probes; tests/namespace/probing.rs has some"),
    ("NeededProbes.gateway", "agents alone ask for probes; tests/namespace/probing.rs has some"),
    ("NetworkPage.count", "ipamctl asks for no counts"),
    ("NodePage.count", "ipamctl asks for no counts"),
    ("PoolPage.count", "ipamctl asks for no counts"),
    ("PrefixPage.count", "ipamctl asks for no counts"),
    ("Quarantine.confirmed_by", "no agent probes here; raft/machine/testdata/probers.txt confirms one"),
    ("QuarantinePage.count", "ipamctl asks for no counts"),
    ("QuarantinePage.next", "nothing is quarantined here; tests/cluster/reclaim.rs has some"),
    ("Released.late", "ipamctl sends no DEL; tests/cluster/late.rs has one that is late"),
    ("Released.more", "no response lists 65,536 addresses here; command/outcome.rs has a test"),
    (
        "Renewed.more",
        "no response lists 65,536 leases here; raft/machine/tests/machine/bounds.rs has the largest",
    ),
    ("ReservationPage.count", "ipamctl asks for no counts"),
    ("ReservationStatus.conflicts", "no record has a conflict here; tests/cluster/recorded.rs has one"),
    ("SubnetPage.count", "ipamctl asks for no counts"),
    ("TokenPage.count", "ipamctl asks for no counts"),
];

/// A subnet and a pool.
const FILE: &str = "\
kind: subnet
name: lan-3
cidr: 10.3.0.0/28
dns: {options: ['ndots:2']}
---
kind: pool
name: lab
subnet: lan-3
---
kind: host-policy
name: uplink
managed_by: me
node_selector: rack=r1
capture: {lab: ippool.lab.allocate}
interfaces: [{name: eth1, ipv4_pools: [lab], ipv6_pools: [web6], clean_gateway: true}]
---
kind: host-policy
name: storage
";

/// Command lines in order, the schema of each output, and its exit code if it isn't 0. `FILE` stands for a
/// file of resources.
const LINES: &[(&str, &str)] = &[
    ("cluster members", "Members"),
    ("cluster epoch", "Epoch"),
    ("cluster transfer-leader", "MemberChange"),
    (
        "network create blue --description sky --label tier=one --annotation a=b --managed-by me \
         --probe-conflicts false",
        "NetworkView",
    ),
    ("network create red", "NetworkView"),
    ("network set red --description blood", "NetworkView"),
    ("network show blue", "NetworkView"),
    ("network list", "NetworkPage"),
    ("network list --limit 1", "NetworkPage"),
    (
        "subnet create lan --cidr 10.1.0.0/28 --gateway 10.1.0.1 --vlan 110 --mtu 9000 --route 10.9.0.0/16=10.1.0.1 \
         --dns 10.1.0.2 --dns-domain example.com --dns-search example.com --description x --label a=b \
         --annotation c=d --probe-gateway false --probe-conflicts false --probe-valid 5m",
        "SubnetView",
    ),
    ("subnet create lan6 --cidr 2001:db8:1::/64", "SubnetView"),
    ("subnet set lan6 --gateway 2001:db8:1::1 --managed-by me", "SubnetView"),
    ("subnet show lan", "SubnetView"),
    ("subnet list", "SubnetPage"),
    ("subnet list --limit 1", "SubnetPage"),
    (
        "pool create web --subnet lan --range 10.1.0.2-10.1.0.9 --exclude 10.1.0.3 --strategy sequential \
         --cooling 1h --scale-down keep --strict-cooling --allow-edges --default --description x --label a=b --annotation c=d \
         --gateway 10.1.0.3 --route 10.9.0.0/16=10.1.0.2",
        "PoolView",
    ),
    ("pool create web6 --subnet lan6 --disabled --managed-by me", "PoolView"),
    ("pool set web6 --enable --take-over", "PoolView"),
    (
        "pool create rack --subnet lan --range 10.1.0.12 --for-node n1 --for-namespace web --for-realm prod \
         --for-endpoints app=web --for-attachment kube-system/macvlan",
        "PoolView",
    ),
    (
        "pool create zoned --subnet lan --range 10.1.0.13 --probe-valid 5m --cooling-reserve 1 \
         --for-nodes zone=a --for-namespaces team=web",
        "PoolView",
    ),
    ("node create n1 --label zone=a --description x --annotation c=d --managed-by me", "NodeView"),
    ("node create worker-3", "NodeView"),
    ("node show n1", "NodeView"),
    ("node list", "NodePage"),
    ("node list --limit 1", "NodePage"),
    (
        "namespace create web --ipv4-pool web --ipv6-pool web6 --label team=web --description x --annotation c=d \
         --managed-by me --quota ipv4=900,ipv6=900 --quota-per-application ipv4=90,ipv6=90 \
         --quota-of apps/StatefulSet/db,ipv4=91,ipv6=91",
        "NamespaceView",
    ),
    ("namespace create more", "NamespaceView"),
    ("namespace show web", "NamespaceView"),
    ("namespace list", "NamespacePage"),
    ("namespace list --limit 1", "NamespacePage"),
    ("pool show web", "PoolView"),
    ("pool map web", "AddressMap"),
    ("subnet map lan", "AddressMap"),
    ("subnet map lan --limit 1", "AddressMap"),
    ("network map default", "NetworkMap"),
    ("network map default --limit 1", "NetworkMap"),
    ("pool list", "PoolPage"),
    ("pool list --limit 1", "PoolPage"),
    (
        "reservation create kept --address 10.1.0.8-10.1.0.9 --description x --label a=b --annotation c=d \
         --managed-by me",
        "ReservationView",
    ),
    ("reservation create more --address 10.1.0.14", "ReservationView"),
    ("reservation create bmc --address 192.0.2.7 --endpoint host/db-07", "ReservationView"),
    ("reservation set more --description y", "ReservationView"),
    ("reservation show kept", "ReservationView"),
    ("subnet create lan-old --cidr 10.8.0.0/28", "SubnetView"),
    ("pool create old --subnet lan-old --range 10.8.0.2-10.8.0.5", "PoolView"),
    ("pool split old --into older --range 10.8.0.4-10.8.0.5", "PoolView"),
    ("allocate --endpoint host/old --pool old", "Allocated"),
    ("pool drain old --to web --yes", "Drained"),
    ("pool drain old --to web", "Drained"),
    ("pool show old", "PoolView"),
    ("reservation list", "ReservationPage"),
    ("reservation list --limit 1", "ReservationPage"),
    ("allocate --endpoint host/db-07 --pool web --pool web6 --uid one --node rack-1", "Allocated"),
    (
        "allocate --endpoint host/db-08 --pool web --comment NET-4711 --route 10.7.0.0/16=10.1.0.7 --clean-gateway",
        "Allocated",
    ),
    ("explain --endpoint host/db-09 --pool web --pool web6", "Explanation"),
    ("allocate --endpoint host/tmp-3 --pool web6 --ttl 8h", "Allocated"),
    (
        "allocate --endpoint host/printer --address 10.1.0.6 --adopt --mac 3c:ec:ef:12:00:07 --hostname printer \
         --description x",
        "Allocated",
    ),
    ("renew --endpoint host/tmp-3 --ttl 1d", "Renewed"),
    ("pool create later --subnet lan --range 10.1.0.10 --disabled", "PoolView"),
    ("allocate --endpoint claim/one --pool later --wait", "Allocated"),
    ("endpoint show claim/one", "EndpointView"),
    ("endpoint show host/db-07", "EndpointView"),
    ("endpoint show pod/web/frontend-7", "EndpointView"),
    ("endpoint show pod/web/frontend-8", "EndpointView"),
    ("explain --endpoint pod/web/frontend-8 --pool web --uid two --sticky", "Explanation"),
    ("endpoint scale apps/StatefulSet/db --replicas 1 --start 1 --uid s", "Released"),
    (
        "subnet create own --cidr 10.7.0.0/28 --automatic-range 10.7.0.1-10.7.0.12 --automatic-exclude 10.7.0.11 \
         --automatic-max-size 8",
        "SubnetView",
    ),
    (
        "allocate --endpoint pod/web/own-a --controller apps/Deployment/own --subnet own --automatic +1 --replicas 1 \
         --keep-pool",
        "Allocated",
    ),
    ("pool list --subnet own", "PoolPage"),
    ("endpoint end apps/Deployment/own --uid s", "Released"),
    ("endpoint list", "EndpointPage"),
    ("endpoint list --limit 1", "EndpointPage"),
    ("allocation bulk vm/lab/build-0 vm/lab/build-1 --pool web6", "BulkAllocated"),
    ("allocation bulk vm/lab/build-0 vm/lab/build-1 --pool web6", "BulkAllocated"),
    ("allocation list", "AllocationPage"),
    ("allocation list --limit 1", "AllocationPage"),
    ("prefix allocate rack --pool web6 --length 120", "Delegated"),
    ("prefix allocate rack/shelf --pool web6 --length 125 --ttl 1h --keep-edges", "Delegated"),
    ("prefix allocate late --pool web6 --length 8 --wait", "Delegated"),
    ("prefix set one two --pool web6 --realm mesh --length 120", "PrefixesSet"),
    ("prefix set two late --pool web6 --realm mesh --length 120 --yes", "PrefixesSet"),
    ("prefix list", "PrefixPage"),
    ("prefix list --limit 1", "PrefixPage"),
    ("who-has 2001:db8:1::101", "Address"),
    ("who-has 10.1.0.2", "Address"),
    ("who-has 10.1.0.8", "Address"),
    ("who-has 192.0.2.7", "Address"),
    ("release --endpoint host/db-08 --yes", "Released"),
    ("who-has 10.1.0.4", "Address"),
    ("apply -f FILE", "TransactionAnswer"),
    ("apply -f FILE --comment again", "TransactionAnswer"),
    ("host-policy list", "HostPolicyPage"),
    ("host-policy list --limit 1", "HostPolicyPage"),
    ("host-policy show uplink", "HostPolicyView"),
    ("host-policy reset uplink --yes", "HostPolicyReset"),
    (
        "token create ci --role operator --ttl 1h --only-realm default --allow-shared --labels a=b --description x",
        "Token",
    ),
    ("token create worker-3 --role node --node prod-eu/worker-3", "Token"),
    ("token join --node prod-eu/worker-3 --replace", "Token"),
    ("token rotate ci --yes", "Token"),
    ("token show ci", "Token"),
    ("token list", "TokenPage"),
    ("token list --limit 1", "TokenPage"),
    ("node show worker-3", "NodeView"),
    ("events --all", "EventPage"),
    ("status", "Cluster"),
    ("quarantine list", "QuarantinePage"),
    ("task list", "Tasks"),
    ("task show silent-nodes", "Task"),
    ("gc --dry-run", "GcPage"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn data_is_what_the_api_describes() {
    let cluster = Cluster::up(3).await;
    let servers = cluster.urls();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("lab.yaml");
    std::fs::write(&file, FILE).unwrap();
    let file = file.display().to_string();
    let done = async |line: &str| -> CommandOutput {
        ipamctl(&servers, &format!("{} -o json", line.replace("FILE", &file))).await.ends(0)
    };
    let mut schemas = Schemas::committed();
    for (line, schema) in LINES.iter().copied() {
        if line == "endpoint show pod/web/frontend-7" {
            attach(&cluster).await;
        }
        let shown = done(line).await.json();
        schemas.check(schema, &shown).unwrap_or_else(|why| panic!("{line}: {why}\n{shown:#}"));
        if line == "apply -f FILE" {
            schemas.check("SubnetView", &shown["results"][0]["body"]).unwrap();
            schemas.check("PoolView", &shown["results"][1]["body"]).unwrap();
        }
    }
    done("namespace create poor --quota-per-application ipv4=0").await;
    done("pool create room --subnet own --range 10.7.0.9").await;
    let too_many = "explain --endpoint pod/poor/x --pool room --controller apps/Deployment/x -o json";
    let too_many = ipamctl(&servers, too_many).await.ends(1).json();
    assert_eq!(too_many["problem"]["code"], "quota-exceeded", "{too_many}");
    schemas.check("Explanation", &too_many).unwrap_or_else(|why| panic!("{why}\n{too_many:#}"));
    let page = done("allocation list --endpoint host/db-07").await.json();
    let id = &page["items"][0]["id"];
    let prefix = done("prefix list --limit 1").await.json()["items"][0]["id"].clone();
    for (line, schema) in [
        (format!("allocation show {id}"), "Allocation"),
        (format!("prefix show {prefix}"), "Prefix"),
        (format!("prefix release {prefix} --yes"), "PrefixReleased"),
        ("pool delete web --drain --yes".to_owned(), "PoolView"),
        (format!("release {id} --yes"), "Released"),
        (format!("allocation release {id} --yes"), "BulkReleased"),
        (format!("allocation delete {} --yes", page["items"][1]["id"]), "Released"),
        ("endpoint delete pod/web/frontend-7 --yes".to_owned(), "Released"),
    ] {
        let shown = done(&line).await.json();
        schemas.check(schema, &shown).unwrap_or_else(|why| panic!("{line}: {why}\n{shown:#}"));
    }
    for line in [
        "pool create tiny --subnet lan --range 10.1.0.11 --cooling 1h --strict-cooling",
        "allocate --endpoint host/tiny --pool tiny",
        "release --endpoint host/tiny --yes",
    ] {
        done(line).await;
    }
    let refused = "explain --endpoint host/db-09 --pool tiny --pool rack -o json";
    let refused = ipamctl(&servers, refused).await.ends(1).json();
    schemas.check("Explanation", &refused).unwrap_or_else(|why| panic!("{why}\n{refused:#}"));
    for one in done("version").await.json()["servers"].as_array().unwrap() {
        schemas.check("Version", &one["version"]).unwrap();
    }
    // Refusals aren't output of a command; tests/cluster/bad_input.rs covers them.
    let unseen = schemas.unseen().into_iter();
    let unseen: Vec<String> =
        unseen.filter(|field| !field.starts_with("Problem.") && !field.starts_with("Context.")).collect();
    let known: Vec<String> = UNSEEN.iter().map(|(field, _)| (*field).to_owned()).collect();
    assert_eq!(unseen, known, "what is never seen was never checked: show it here, or say why not");
}

/// Endpoints on nodes, as the plugin would make them: one that is on two, and one that was on one.
async fn attach(cluster: &Cluster) {
    let started = |at_us: u64| json!({"boot_id": "2f1c7c1e-6f2d-4f1e-8a55-3f7f7a7e9a10", "at_us": at_us});
    let client = cluster.ask();
    for (name, node) in [("frontend-7", "worker-3"), ("frontend-7", "worker-4"), ("frontend-8", "worker-3")] {
        let key = json!({"node": node, "config": "net", "container_id": name, "interface": "eth0"});
        let allocate_request = json!({
            "endpoint": {"kind": "pod", "namespace": "web", "name": name}, "uid": "one",
            "controller": {"group": "apps", "kind": "StatefulSet", "name": "frontend", "uid": "s"},
            "scale_down": "keep", "started": started(1), "node": node, "attachment": key,
            "interfaces": [{"name": "eth0", "ipv4_pools": ["web"]}, {"name": "net1", "ipv6_pools": ["web6"]}],
        });
        allocate(&client, &serde_json::from_value(allocate_request).unwrap()).await.unwrap();
        if name == "frontend-8" {
            let body = json!({"attachment": key, "started": started(2)});
            client.send(Call::post("/v1/attachments/release").json(&body).unwrap()).await.unwrap();
        }
    }
    let heartbeat = json!({
        "boot_id": "2f1c7c1e-6f2d-4f1e-8a55-3f7f7a7e9a10", "boot_number": 1, "ready": false,
        "problem": "journal-unwritable", "agent_version": "0.1.0", "inventory": Inventory::default().digest(),
    });
    let call = Call::post("/v1/nodes/default/worker-3/heartbeat").json(&heartbeat).unwrap();
    client.send(call.repeatable()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_command_is_forgotten_here() {
    let help = ipamctl(&[], "--help").await.ends(0).stdout;
    let (_, commands) = help.split_once("Commands:\n").unwrap();
    let commands = commands.lines().take_while(|line| !line.is_empty());
    // An indented line continues the one before.
    let commands = commands.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    let commands: Vec<&str> = commands.filter(|command| !command.is_empty()).collect();
    assert!(commands.contains(&"pool"), "{help}");
    for command in commands {
        let checked = LINES.iter().any(|(line, _)| line.split(' ').next() == Some(command));
        let other = OTHERS.iter().any(|(other, _)| *other == command);
        assert!(checked != other, "what {command} prints is neither checked nor excused, or both");
    }
}
