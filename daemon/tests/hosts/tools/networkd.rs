//! networkd: the real daemon in namespaces, without systemd as the first process.

use std::fs;

use ipam_api::render::Format;

use super::observed::is_applied;
use super::room::{Room, cases};
use crate::support::until;

/// Starts networkd, which needs its runtime folders only.
pub(super) fn start(room: &Room) {
    fs::create_dir_all(room.path("/run/systemd")).unwrap();
    drop(room.start(&["env", "SYSTEMD_LOG_LEVEL=info", "/lib/systemd/systemd-networkd"]));
}

#[tokio::test]
async fn n5_13_the_agent_refuses_an_interface_of_the_real_networkd() {
    let (room, interfaces) = (Room::make(), cases().remove("v4").unwrap());
    room.furnish(Format::Networkd, &interfaces);
    start(&room);
    until("networkd applies v4", async || is_applied(&room, &interfaces)).await;
    room.agent_refuses("systemd-networkd").await;
}

#[tokio::test]
async fn n5_10_networkd_applies_each_case() {
    for (case, interfaces) in cases() {
        let room = Room::make();
        let files = room.furnish(Format::Networkd, &interfaces);
        if case == "mac" {
            // Interfaces of namespaces have no permanent MAC address, so networkd can't find them by it.
            room.run(&["sed", "-i", "s/^PermanentMACAddress=/MACAddress=/", &files[0].path]);
        }
        start(&room);
        if case == "vlan" && !room.has_vlans() {
            println!("{case}: the kernel has no VLANs, so networkd only reads the files");
            until("networkd asks for the VLAN device", async || {
                let log = room.log();
                if log.contains("stacked netdev") { Ok(()) } else { Err(log) }
            })
            .await;
        } else {
            until(&format!("networkd applies {case}"), async || is_applied(&room, &interfaces)).await;
        }
        for complaint in ["Unknown", "Failed to parse", "Invalid", "ignoring"] {
            let log = room.log();
            let lines = log.lines().filter(|line| line.contains("/etc/systemd/network/"));
            assert!(!lines.into_iter().any(|line| line.contains(complaint)), "{case}: {log}");
        }
    }
}
