//! ifupdown: `ifquery` and `ifup` in namespaces.

use ipam_api::render::Format;

use super::observed::is_applied;
use super::room::{Room, cases};
use crate::support::until;

#[tokio::test]
async fn n5_10_ifupdown_applies_each_case() {
    for (case, interfaces) in cases() {
        let room = Room::make();
        let path = room.furnish(Format::Ifupdown, &interfaces)[0].path.clone();
        let listed = room.run(&["ifquery", "-i", &path, "--list"]);
        for interface in &interfaces {
            for given in &interface.addresses {
                let device = given
                    .vlan
                    .map_or(interface.name.to_string(), |vlan| format!("{}.{vlan}", interface.name));
                assert!(listed.lines().any(|line| line == device), "{case}: {listed}");
                let read = room.run(&["ifquery", "-i", &path, &device]);
                assert!(read.contains(&format!("address: {}\n", given.address.addr())), "{case}: {read}");
            }
        }
        if case == "vlan" && !room.has_vlans() {
            println!("{case}: the kernel has no VLANs, so ifupdown only reads the file");
            continue;
        }
        room.run(&["ifup", "-a", "-i", &path]);
        until(&format!("ifupdown applies {case}"), async || is_applied(&room, &interfaces)).await;
    }
}

#[test]
fn the_path_is_read_by_the_line_of_debian() {
    let room = Room::make();
    let cases = cases();
    room.furnish(Format::Ifupdown, &cases["v4"]);
    std::fs::write(room.path("/etc/network/interfaces"), "source-directory /etc/network/interfaces.d\n")
        .unwrap();
    assert_eq!(room.run(&["ifquery", "--list"]), "lo\neth0\n");
}
