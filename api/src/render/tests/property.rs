//! Addresses of rendered files: those of the interfaces and no others, whatever the interfaces contain.

use std::collections::BTreeSet;
use std::net::IpAddr;

use ipnet::IpNet;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::support::interface;
use crate::render::{Format, RenderedFile, render};
use crate::resource::Interface;

/// Addresses of a format's files, read by a parser that implements only the format's syntax.
fn addresses(format: Format, files: &[RenderedFile]) -> BTreeSet<IpNet> {
    let yaml = || -> Value { serde_saphyr::from_str(&files[0].content).unwrap() };
    let texts: Vec<String> = match format {
        Format::Netplan | Format::CloudInit => {
            let network = &yaml()["network"];
            let devices =
                ["ethernets", "vlans"].map(|kind| network[kind].as_object().cloned().unwrap_or_default());
            let devices = devices.iter().flat_map(|all| all.values());
            let all = devices.flat_map(|device| device["addresses"].as_array().cloned().unwrap_or_default());
            all.map(|address| address.as_str().unwrap().to_owned()).collect()
        }
        Format::Nmstate => {
            let state = yaml();
            let interfaces = state["interfaces"].as_array().unwrap();
            let families = interfaces.iter().flat_map(|one| [&one["ipv4"], &one["ipv6"]]);
            let all = families.flat_map(|family| family["address"].as_array().cloned().unwrap_or_default());
            all.map(|one| format!("{}/{}", one["ip"].as_str().unwrap(), one["prefix-length"])).collect()
        }
        Format::Networkd => values(files, '=', |key| key == "Address"),
        Format::Networkmanager => values(files, '=', |key| {
            key.strip_prefix("address").is_some_and(|rest| rest.parse::<u8>().is_ok())
        }),
        Format::Ifupdown => values(files, ' ', |key| key == "address"),
    };
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

/// Values of keys in files of lines; every other line is empty, a comment, a section or known.
fn values(files: &[RenderedFile], between: char, wanted: impl Fn(&str) -> bool) -> Vec<String> {
    let lines = files.iter().flat_map(|file| file.content.lines()).map(str::trim);
    let pairs = lines.filter(|line| !line.is_empty() && !line.starts_with(['#', '[']));
    let pairs = pairs.map(|line| line.split_once(between).unwrap_or_else(|| panic!("{line:?}")));
    pairs.filter(|(key, _)| wanted(key)).map(|(_, value)| value.to_owned()).collect()
}

fn given() -> impl Strategy<Value = Value> {
    let v4 = (any::<[[u8; 4]; 2]>(), 1..=32_u8).prop_map(|(two, length)| (two.map(IpAddr::from), length));
    let v6 = (any::<[[u8; 16]; 2]>(), 1..=128_u8).prop_map(|(two, length)| (two.map(IpAddr::from), length));
    let text = prop_oneof![
        4 => "[a-z0-9_][a-z0-9._-]{0,20}",
        1 => "[ -~\n\r\t]{0,12}",
        1 => any::<String>().prop_map(|text| text.chars().take(8).collect::<String>()),
    ];
    let dns = (proptest::collection::vec(text.clone(), 0..2), proptest::collection::vec(text, 0..2));
    let rest = (proptest::option::of(0..4096_u16), proptest::option::of(1000..9001_u32), any::<bool>());
    (prop_oneof![v4, v6], dns, rest).prop_map(|(address, (search, options), (vlan, mtu, clean))| {
        let ([address, gateway], length) = address;
        json!({
            "address": format!("{address}/{length}"),
            "gateway": gateway, "clean_gateway": clean, "vlan": vlan, "mtu": mtu,
            "dns": {"nameservers": [gateway], "search": search, "options": options},
        })
    })
}

fn interfaces() -> impl Strategy<Value = Vec<Interface>> {
    let name = prop_oneof![4 => "[a-z][a-z0-9.]{0,14}", 1 => "[!-~]{1,15}"];
    let one = (name, proptest::collection::vec(given(), 1..4));
    proptest::collection::vec(one, 1..3).prop_map(|all| {
        let usable = all.iter().filter(|(name, _)| crate::name::InterfaceName::new(name).is_ok());
        usable.map(|(name, addresses)| interface(name, &Value::from(addresses.clone()))).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn any_interfaces_render_to_their_addresses(interfaces in interfaces()) {
        for format in Format::ALL {
            let Ok(files) = render(format, &interfaces) else { continue };
            let all = interfaces.iter().flat_map(|interface| &interface.addresses);
            let expected: BTreeSet<IpNet> = all.map(|given| given.address).collect();
            prop_assert_eq!(addresses(format, &files), expected, "{} {:#?}", format, files);
        }
    }
}
