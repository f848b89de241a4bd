//! cloud-init: `cloud-init devel net-convert`, which reads version 2 and writes other formats.

use std::fs;

use ipam_api::render::Format;
use serde_json::Value;

use super::room::{Room, cases};

#[test]
fn n5_10_cloud_init_converts_each_case() {
    let room = Room::make();
    for (case, interfaces) in cases() {
        let path = room.furnish(Format::CloudInit, &interfaces)[0].path.clone();
        let convert = |kind: &str| {
            let into = format!("/run/{case}-{kind}");
            let words = ["cloud-init", "devel", "net-convert", "--network-data", &path, "--kind", "yaml"];
            let rest = ["--output-kind", kind, "--distro", "debian", "--directory", &into];
            room.run(&[&words[..], &rest[..]].concat());
            into
        };
        let netplan = convert("netplan");
        let read = |path: &str| fs::read_to_string(room.path(path)).unwrap();
        let document = |text: &str| -> Value {
            let file = room.path("/run/document.yaml");
            fs::write(&file, text).unwrap();
            let script =
                "import json, sys, yaml; print(json.dumps(yaml.safe_load(open('/run/document.yaml'))))";
            serde_json::from_str(&room.run(&["python3", "-c", script])).unwrap()
        };
        // netplan gets what we would have rendered for it.
        let converted = document(&read(&format!("{netplan}/etc/netplan/50-cloud-init.yaml")));
        assert_eq!(converted, document(&read(&path)), "{case}");
        let networkd = convert("networkd");
        let folder = room.path(&format!("{networkd}/etc/systemd/network"));
        let files =
            fs::read_dir(folder).unwrap().map(|file| fs::read_to_string(file.unwrap().path()).unwrap());
        let all: String = files.collect();
        for given in interfaces.iter().flat_map(|interface| &interface.addresses) {
            assert!(all.contains(&format!("Address={}\n", given.address)), "{case}: {all}");
            let gateway = given.gateway.filter(|_| !given.clean_gateway);
            for gateway in gateway.into_iter().chain(given.routes.iter().map(|route| route.gateway)) {
                assert!(all.contains(&format!("Gateway={gateway}\n")), "{case}: {all}");
            }
        }
        assert!(!all.contains("DHCP=yes") && !all.contains("DHCP=ipv"), "{case}: {all}");
    }
}
