//! Late requests of the real plugin: an ADD or a DEL that starts first and continues last. Also the first ADD
//! after a reboot.

use ipam_api::Code;
use ipam_api::client::Call;
use ipam_api::request::{AttachmentKey, ReleaseAttachmentRequest, Released, Started};
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::Child;

use crate::support::ask::{allocate, allocate_request, allocations, make_pools, refused};
use crate::support::plugin::{Outcome, Plugin, ended, network};
use crate::support::{Cluster, until};

/// A member with pools, and runs of the plugin for one container on `node-1`.
async fn one_member() -> (Cluster, impl Fn(&'static str) -> Plugin) {
    let cluster = Cluster::up(1).await;
    make_pools(&cluster.ask()).await;
    let conf = network(&cluster.urls(), "node-1", &["web", "web6"]);
    (cluster, move |verb| Plugin::new(verb, "c1", &conf))
}

/// Run that is stopped before its first instruction, while the kernel's clock advances by a tick.
async fn held(plugin: &Plugin) -> Child {
    let child = plugin.start_held().await;
    let stat = format!("/proc/{}/stat", child.id().unwrap());
    until("the process stands still, and a tick has passed", async || {
        let text = std::fs::read_to_string(&stat).unwrap();
        let fields: Vec<&str> = text.rsplit_once(')').unwrap().1.split_whitespace().collect();
        let uptime = std::fs::read_to_string("/proc/uptime").unwrap().replace('.', "");
        let now: u64 = uptime.split_whitespace().next().unwrap().parse().unwrap();
        let began: u64 = fields[19].parse().unwrap();
        if fields[0] == "T" && now > began { Ok(()) } else { Err(format!("{text} at {now}")) }
    })
    .await;
    child
}

/// Lets a run that was held go on; its end.
async fn go_on(run: Child) -> Outcome {
    let pid = Pid::from_raw(i32::try_from(run.id().unwrap()).unwrap()).unwrap();
    kill_process(pid, Signal::CONT).unwrap();
    ended(run).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_add_that_was_started_before_its_del_is_refused_after_it() {
    let (cluster, plugin) = one_member().await;
    let add = held(&plugin("ADD")).await;
    plugin("DEL").run().await.succeeds();
    let text = go_on(add).await.fails(115);
    assert!(text.contains("released after this request began"), "{text}");
    assert!(allocations(&cluster.ask()).await.is_empty());
    // The runtime's next one is another process.
    assert_eq!(plugin("ADD").run().await.addresses().len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_del_that_was_started_before_its_add_frees_nothing_and_says_so() {
    let (cluster, plugin) = one_member().await;
    let del = held(&plugin("DEL")).await;
    plugin("ADD").run().await.succeeds();
    let late = go_on(del).await;
    assert!(late.succeeds().stderr.contains("came too late and released nothing"), "{late:?}");
    assert_eq!(allocations(&cluster.ask()).await.len(), 2);
    let timely = plugin("DEL").run().await;
    assert_eq!(timely.succeeds().stderr, "");
    assert!(allocations(&cluster.ask()).await.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_add_after_a_reboot_that_uses_a_container_id_again_is_told_to_try_again() {
    let (cluster, plugin) = one_member().await;
    let client = cluster.ask();
    let attachment = AttachmentKey {
        realm: "default".parse().unwrap(),
        node: "node-1".parse().unwrap(),
        config: "lan".parse().unwrap(),
        container_id: "c1".parse().unwrap(),
        interface: "eth0".parse().unwrap(),
    };
    let started = |boot: &str, at_us| Some(Started { boot_id: boot.to_owned(), at_us, start_ticks: None });
    let release = async |boot, at_us| {
        let request = ReleaseAttachmentRequest {
            attachment: attachment.clone(),
            started: started(boot, at_us),
            endpoint: None,
            uid: None,
        };
        let call = Call::post("/v1/attachments/release").json(&request).unwrap();
        client.call::<Released>(call).await.unwrap()
    };
    // The boot before this one has released it.
    assert!(!release("before", 5).await.late);
    let text = plugin("ADD").run().await.fails(11);
    assert!(text.contains("boot-unconfirmed"), "{text}");
    assert_eq!(plugin("ADD").run().await.addresses().len(), 2);

    // Copies of one late ADD of a third boot are all refused.
    plugin("DEL").run().await.succeeds();
    let mut late = allocate_request("w", &["web"]);
    late.attachment = Some(attachment.clone());
    late.started = started("dead", 9);
    for _ in 0..3 {
        refused(allocate(&client, &late).await, Code::BootUnconfirmed);
    }
    assert!(allocations(&client).await.is_empty());

    // This boot has released, so the earlier one is past: its DEL releases nothing, and the answer says so.
    plugin("ADD").run().await.succeeds();
    let answer = release("before", 6).await;
    assert!(answer.late && answer.addresses.is_empty(), "{answer:?}");
    assert_eq!(allocations(&client).await.len(), 2);
}
