//! NetworkManager: the real daemon with a bus of its own, in namespaces.

use std::fs;

use ipam_api::render::Format;

use super::observed::is_applied;
use super::room::{Room, cases};
use crate::support::until;

/// Only `eth*` are managed; polkit is not asked, and name resolution stays as it is.
const CONFIG: &str = "[main]
plugins=keyfile
no-auto-default=*
auth-polkit=false
dns=none
[device-eth]
match-device=interface-name:eth*
managed=1
[device-others]
match-device=interface-name:p*
managed=0
";

/// Starts NetworkManager, and waits until it answers.
async fn start(room: &Room) {
    fs::create_dir_all(room.path("/etc/NetworkManager")).unwrap();
    fs::write(room.path("/etc/NetworkManager/NetworkManager.conf"), CONFIG).unwrap();
    room.run(&["dbus-daemon", "--system", "--fork", "--nopidfile"]);
    drop(room.start(&["NetworkManager", "--no-daemon"]));
    until("NetworkManager answers", async || {
        let general = room.output(&["nmcli", "-t", "general"]);
        if general.status.success() { Ok(()) } else { Err(room.log()) }
    })
    .await;
}

#[tokio::test]
async fn n5_13_the_agent_refuses_an_interface_of_the_real_networkmanager() {
    let (room, interfaces) = (Room::make(), cases().remove("v4").unwrap());
    room.furnish(Format::Networkmanager, &interfaces);
    start(&room).await;
    until("NetworkManager applies v4", async || is_applied(&room, &interfaces)).await;
    room.agent_refuses("NetworkManager").await;
}

#[tokio::test]
async fn n5_10_networkmanager_applies_each_case() {
    for (case, interfaces) in cases() {
        let room = Room::make();
        let files = room.furnish(Format::Networkmanager, &interfaces);
        start(&room).await;
        for file in &files {
            room.run(&["nmcli", "connection", "load", &file.path]);
            let id = file.path.rsplit("60-").next().unwrap().trim_end_matches(".nmconnection");
            let found =
                room.run(&["nmcli", "-g", "ipv4.addresses,ipv6.addresses,vlan.id", "connection", "show", id]);
            assert!(!found.trim().is_empty(), "{case}: {id}: {}", room.log());
        }
        if case == "vlan" && !room.has_vlans() {
            println!("{case}: the kernel has no VLANs, so NetworkManager only reads the keyfile");
            let shown =
                ["nmcli", "-g", "vlan.id,vlan.parent,ipv4.addresses", "connection", "show", "ipamd-eth0.110"];
            assert_eq!(room.run(&shown), "110\neth0\n10.1.0.5/24\n", "{case}");
            continue;
        }
        until(&format!("NetworkManager applies {case}"), async || {
            is_applied(&room, &interfaces).map_err(|why| format!("{why}\n{}", room.log()))
        })
        .await;
        if case == "dns" {
            let shown = room.run(&[
                "nmcli",
                "-g",
                "ipv4.dns,ipv4.dns-search,ipv4.dns-options",
                "connection",
                "show",
                "ipamd-eth0",
            ]);
            for word in ["10.0.0.53", "10.0.0.54", "rack.example.org", "example.org", "timeout:1"] {
                assert!(shown.replace('\\', "").contains(word), "{shown}");
            }
        }
    }
}
