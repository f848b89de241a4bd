//! `ipamctl NOUN watch`: events of one kind, or about one object, and no others.

use std::fs::File;
use std::process::{Command, Stdio};

use ipam_api::event::Event;
use rustix::process::{Pid, Signal, kill_process};

use crate::cluster::command_line::ipamctl;
use crate::support::{Cluster, programs, until};

/// Commands before the watchers start. The last event of each watcher comes last.
const HAPPENED: [&str; 21] = [
    "network create blue",
    "network create red",
    "subnet create lan --cidr 10.1.0.0/28",
    "subnet create lan-2 --cidr 10.2.0.0/28",
    "pool create web --subnet lan --cooling 1h",
    "pool create lab --subnet lan-2",
    "reservation create kept --address 10.1.0.9",
    "reservation create more --address 10.1.0.10",
    "token create ci --role viewer",
    "token create cd --role viewer",
    "allocate --endpoint host/a --pool web",
    "allocate --endpoint host/b --pool lab",
    "network set red --description x",
    "network set blue --description x",
    "subnet set lan-2 --description x",
    "subnet set lan --description x",
    "reservation set more --description x",
    "reservation set kept --description x",
    "token rotate ci --yes",
    "pool set web --description x",
    "release --endpoint host/a --yes",
];

/// Watched objects, and the commands whose effect each watcher sees.
const WATCHED: [(&str, &[&str]); 10] = [
    ("network watch blue", &["network.created blue", "network.changed blue"]),
    (
        "networks watch",
        &["network.created blue", "network.created red", "network.changed red", "network.changed blue"],
    ),
    ("watch subnet lan", &["subnet.created lan", "subnet.changed lan"]),
    ("reservation watch kept", &["reservation.created kept", "reservation.changed kept"]),
    ("token watch ci", &["token.created ci", "token.changed ci"]),
    (
        "pool watch",
        &[
            "pool.created web",
            "pool.condition web",
            "pool.created lab",
            "pool.condition lab",
            "pool.changed web",
        ],
    ),
    (
        "pool watch web",
        &[
            "pool.created web",
            "pool.condition web",
            "address.allocated 10.1.0.1",
            "pool.changed web",
            "address.released 10.1.0.1",
        ],
    ),
    ("endpoint watch host/a", &["address.allocated 10.1.0.1", "address.released 10.1.0.1"]),
    (
        "endpoint watch",
        &["address.allocated 10.1.0.1", "address.allocated 10.2.0.1", "address.released 10.1.0.1"],
    ),
    ("allocation watch ALLOCATION", &["address.allocated 10.1.0.1", "address.released 10.1.0.1"]),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_noun_is_watched_by_itself() {
    let cluster = Cluster::up(1).await;
    let servers = cluster.urls();
    let mut allocation = String::new();
    for line in HAPPENED {
        let printed = ipamctl(&servers, &format!("{line} -o json")).await.ends(0);
        if line.contains("allocate --endpoint host/a") {
            let id = &printed.json()["interfaces"][0]["addresses"][0]["allocation"];
            allocation = id.to_string();
        }
    }
    for (line, expected) in WATCHED {
        let line = line.replace("ALLOCATION", &allocation);
        let log = cluster.dir.path().join("watched");
        let mut watcher = Command::new(programs::ipamctl())
            .args(line.split(' '))
            .args(["--after", "0", "-o", "json"])
            .env_clear()
            .env("IPAM_SERVERS", servers.join(","))
            .stdin(Stdio::null())
            .stdout(File::create(&log).unwrap())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let seen = until(&format!("{line} shows as much as it should"), async || {
            let text = std::fs::read_to_string(&log).unwrap();
            let read = serde_json::Deserializer::from_str(&text).into_iter::<Event>();
            let seen =
                read.map_while(Result::ok).map(|event| format!("{} {}", event.event_type, event.object));
            let seen: Vec<String> = seen.collect();
            if seen.len() >= expected.len() { Ok(seen) } else { Err(format!("{seen:?}")) }
        })
        .await;
        let _ = kill_process(Pid::from_child(&watcher), Signal::INT);
        let ended = watcher.wait().unwrap();
        let mut printed = String::new();
        std::io::Read::read_to_string(&mut watcher.stderr.take().unwrap(), &mut printed).unwrap();
        assert_eq!(seen, expected, "{line}: {printed}");
        assert_eq!(ended.code(), Some(130), "{line}: {printed}");
        let again = line.replace("networks", "network").replace("watch subnet", "subnet watch");
        assert!(printed.contains(&format!("continue: ipamctl {again} --after ")), "{line}: {printed}");
    }
    ipamctl(&servers, "allocation watch web").await.ends(2);
    ipamctl(&servers, "subnet watch A/B").await.ends(2);
}
