//! netplan: `netplan generate`, and the files of networkd that it makes.

use std::fs;

use ipam_api::render::Format;

use super::room::{Room, cases};

/// Runs `netplan generate` for a root directory, and returns the files that it made, by name.
pub(super) fn generated(room: &Room, root: &str) -> Vec<(String, String)> {
    room.run(&["netplan", "generate", "--root-dir", root]);
    let folder = room.path(&format!("{root}/run/systemd/network"));
    let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let mut files: Vec<(String, String)> = files
        .map(|path| {
            (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read_to_string(&path).unwrap())
        })
        .collect();
    files.sort();
    files
}

#[test]
fn n5_10_netplan_makes_files_of_networkd_with_all_addresses() {
    for (case, interfaces) in cases() {
        let room = Room::make();
        room.furnish(Format::Netplan, &interfaces);
        let files = generated(&room, "/");
        let all: String = files.iter().map(|(name, text)| format!("# {name}\n{text}\n")).collect();
        println!("{case}\n{all}");
        for given in interfaces.iter().flat_map(|interface| &interface.addresses) {
            assert!(all.contains(&format!("Address={}\n", given.address)), "{case}: {all}");
            let has_default =
                given.gateway.is_some_and(|gateway| all.contains(&format!("Gateway={gateway}\n")));
            assert_eq!(has_default, given.gateway.is_some() && !given.clean_gateway, "{case}: {all}");
            for route in &given.routes {
                assert!(all.contains(&format!("Destination={}\n", route.destination)), "{case}: {all}");
            }
            if let Some(vlan) = given.vlan {
                assert!(all.contains(&format!("Kind=vlan\n\n[VLAN]\nId={vlan}\n")), "{case}: {all}");
            }
            if given.mac.is_some() {
                // The same match as in our own file for networkd.
                assert!(all.contains("[Match]\nPermanentMACAddress=02:00:00:00:00:05\n"), "{case}: {all}");
            }
            for server in &given.dns.nameservers {
                assert!(all.contains(&format!("DNS={server}\n")), "{case}: {all}");
            }
        }
        let mtu =
            interfaces.iter().flat_map(|interface| &interface.addresses).filter_map(|given| given.mtu).min();
        assert_eq!(all.contains("MTUBytes="), mtu.is_some(), "{case}: {all}");
        assert_eq!(all.contains("GatewayOnLink=true"), case == "on-link", "{case}: {all}");
        assert!(!all.contains("DHCP=yes") && !all.contains("DHCP=ipv"), "{case}: {all}");
    }
}
