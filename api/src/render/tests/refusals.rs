//! Refused values, and choices where formats leave one.

use serde_json::{Value, json};

use super::support::interface;
use crate::render::{Format, render, vlan_device};
use crate::resource::Interface;

fn netplan(interfaces: &[Interface]) -> Result<Value, String> {
    let files = render(Format::Netplan, interfaces).map_err(|error| error.to_string())?;
    Ok(serde_saphyr::from_str(&files[0].content).unwrap())
}

fn refusal(name: &str, addresses: &Value) -> String {
    let interfaces = [interface(name, addresses)];
    let mut all: Vec<String> = Format::ALL
        .into_iter()
        .map(|format| render(format, &interfaces).expect_err(format.as_str()).to_string())
        .collect();
    all.dedup();
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

#[test]
fn hostile_text_is_refused_by_all_formats() {
    let plain = json!([{"address": "10.0.0.5/24"}]);
    for name in ["eth0;reboot", "[Match]", "\"x", "$(id)", "*", "a=b", "-eth0", "#x", "é", "renderer", "a&b"]
    {
        assert!(refusal(name, &plain).contains("can't be rendered"), "{name}");
    }
    for text in ["a\nb", "a b", "[Network]", "x;y", "\"", "{x: y}", "~.", "#", "", "-a", "a\u{2028}b", "a'b"]
    {
        for dns in [json!({"search": [text]}), json!({"domain": text}), json!({"options": [text]})] {
            let said = refusal("eth0", &json!([{"address": "10.0.0.5/24", "dns": dns}]));
            assert!(said.contains("can't be rendered"), "{said}");
        }
    }
    for mac in ["", "02:00:00:00:00", "02:00:00:00:00:01\n[Match]", "01:00:5e:00:00:01", "00:00:00:00:00:00"]
    {
        refusal("eth0", &json!([{"address": "10.0.0.5/24", "mac": mac}]));
    }
}

#[test]
fn contradictions_are_refused() {
    let said = |addresses: Value| refusal("eth0", &addresses);
    let macs = json!([{"address": "10.0.0.5/24", "mac": "02:00:00:00:00:01"},
                      {"address": "10.0.1.5/24", "mac": "02:00:00:00:00:02"}]);
    assert!(said(macs).contains("two MAC addresses"));
    let small = json!([{"address": "10.0.0.5/24", "mtu": 900}, {"address": "2001:db8::5/64"}]);
    assert!(said(small).contains("IPv6 needs 1280"));
    let vlan =
        json!([{"address": "10.0.0.5/24", "mtu": 1500}, {"address": "10.1.0.5/24", "vlan": 7, "mtu": 9000}]);
    assert!(said(vlan).contains("VLAN device with 9000"));
    assert!(said(json!([{"address": "10.0.0.5/24", "vlan": 4095}])).contains("no VLAN id"));
    let route =
        json!([{"address": "10.0.0.5/24", "routes": [{"destination": "::/0", "gateway": "10.0.0.1"}]}]);
    assert!(said(route).contains("other family"));
    assert!(said(json!([])).contains("no addresses"));
    assert!(render(Format::Nmstate, &[]).is_err());
}

#[test]
fn a_vlan_device_has_its_parent_and_a_name_that_fits() {
    assert_eq!(vlan_device("eth0", 110), "eth0.110");
    assert_eq!(vlan_device("enp129s0f0np0", 110), "vlan110");
    let vlan = |name| netplan(&[interface(name, &json!([{"address": "10.1.0.5/24", "vlan": 110}]))]).unwrap();
    for (name, parent, device) in [
        ("eth0", "eth0", "eth0.110"),
        ("eth0.110", "eth0", "eth0.110"),
        ("enp129s0f0np0", "enp129s0f0np0", "vlan110"),
    ] {
        let found = vlan(name);
        assert_eq!(found["network"]["vlans"][device]["link"], parent);
        assert_eq!(found["network"]["vlans"][device]["addresses"], json!(["10.1.0.5/24"]));
        assert_eq!(found["network"]["ethernets"][parent]["addresses"], Value::Null);
    }
    // A device whose name contains the id, without its parent, exists already.
    assert_eq!(vlan("vlan110")["network"]["ethernets"]["vlan110"]["addresses"], json!(["10.1.0.5/24"]));
    // Priority tags make no device.
    let zero = netplan(&[interface("eth0", &json!([{"address": "10.1.0.5/24", "vlan": 0}]))]).unwrap();
    assert_eq!(zero["network"]["vlans"], Value::Null);
    // Two parents can't both have the short name.
    let addresses = json!([{"address": "10.1.0.5/24", "vlan": 110}]);
    let both = [interface("enp129s0f0np0", &addresses), interface("enp129s0f1np1", &addresses)];
    assert!(netplan(&both).unwrap_err().contains("two devices"));
}

#[test]
fn a_parent_has_room_for_the_packets_of_its_vlans() {
    let jumbo = json!([{"address": "10.1.0.5/24", "vlan": 110, "mtu": 9000}]);
    let found = netplan(&[interface("eth0", &jumbo)]).unwrap();
    assert_eq!(found["network"]["ethernets"]["eth0"]["mtu"], 9000);
    let small = json!([{"address": "10.1.0.5/24", "vlan": 110, "mtu": 1400}]);
    let found = netplan(&[interface("eth0", &small)]).unwrap();
    assert_eq!(found["network"]["ethernets"]["eth0"]["mtu"], Value::Null);
}

#[test]
fn a_default_route_of_the_list_stands_for_that_of_the_gateway() {
    let routes = json!([{"destination": "0.0.0.0/0", "gateway": "10.0.0.9"}]);
    let given = json!([{"address": "10.0.0.5/24", "gateway": "10.0.0.1", "routes": routes}]);
    let found = netplan(&[interface("eth0", &given)]).unwrap();
    let expected = json!([{"to": "0.0.0.0/0", "via": "10.0.0.9"}]);
    assert_eq!(found["network"]["ethernets"]["eth0"]["routes"], expected);
}

#[test]
fn a_host_is_no_gateway_of_itself() {
    let given = json!([{"address": "10.0.0.1/24", "gateway": "10.0.0.1"}]);
    let found = netplan(&[interface("eth0", &given)]).unwrap();
    assert_eq!(found["network"]["ethernets"]["eth0"]["routes"], Value::Null);
}

#[test]
fn routes_with_one_destination_differ_by_metric() {
    let of = |net: &str| json!([{"address": format!("10.0.{net}.5/24"), "gateway": format!("10.0.{net}.1")}]);
    let found = netplan(&[interface("eth0", &of("0")), interface("eth1", &of("1"))]).unwrap();
    assert_eq!(found["network"]["ethernets"]["eth0"]["routes"][0]["metric"], 100);
    assert_eq!(found["network"]["ethernets"]["eth1"]["routes"][0]["metric"], 101);
}

#[test]
fn names_that_yaml_reads_as_other_types_are_quoted() {
    for name in ["on", "no", "null", "1e3", "0x1f", "010", "12.5", "y"] {
        let interfaces = [interface(name, &json!([{"address": "10.0.0.5/24"}]))];
        let text = render(Format::CloudInit, &interfaces).unwrap().remove(0).content;
        assert!(text.contains(&format!("\"{name}\":")) || text.contains(&format!("'{name}':")), "{text}");
    }
}

/// A file of the image or of cloud-init may give the parent its address by DHCP.
#[test]
fn a_parent_without_addresses_keeps_its_dhcp() {
    let only_vlan = [interface("eth0", &json!([{"address": "10.1.0.5/24", "vlan": 110}]))];
    let network = netplan(&only_vlan).unwrap();
    assert_eq!(network["network"]["ethernets"]["eth0"], json!({}));
    assert_eq!(network["network"]["vlans"]["eth0.110"]["dhcp4"], json!(false));
    for format in Format::ALL {
        for file in render(format, &only_vlan).unwrap() {
            let is_of_parent = !file.path.contains("110") && !file.content.contains("110");
            assert!(!is_of_parent, "{format} configures the parent: {}", file.content);
            let parent = file.content.split("eth0.110").next().unwrap_or_default();
            assert!(!parent.contains("DHCP=no") && !parent.contains("method=disabled"), "{}", file.content);
        }
    }
}
