//! nmstate: a program with its crate reads each state, and applies it to the kernel of a namespace.

use std::fs;

use ipam_api::render::Format;

use super::observed::{expected, is_applied};
use super::room::{Room, cases, target};
use crate::support::until;

#[tokio::test]
async fn n5_10_nmstate_applies_each_case() {
    let program = target().join("tools/nmstate/debug/nmstate-apply");
    assert!(program.exists(), "{} is missing; first: cargo xtask test --only packages", program.display());
    for (case, interfaces) in cases() {
        let room = Room::make();
        let path = room.furnish(Format::Nmstate, &interfaces)[0].path.clone();
        let nmstate = |mode: &str| room.run(&["sh", "-c", &format!("{} {mode} < {path}", program.display())]);
        nmstate("");
        if case == "vlan" && !room.has_vlans() {
            println!("{case}: the kernel has no VLANs, so nmstate only reads the state");
            continue;
        }
        // Without NetworkManager, nmstate compares the MTU and does not set it.
        for (device, mtu) in expected(&interfaces).mtus {
            room.run(&["ip", "link", "set", &device, "mtu", &mtu.to_string()]);
        }
        // Without NetworkManager, nmstate adds direct routes in a scope that gateways can't be in.
        if case == "on-link" {
            room.run(&["ip", "link", "set", "eth0", "up"]);
            for gateway in ["10.0.9.1", "10.0.9.2"] {
                room.run(&["ip", "route", "add", gateway, "dev", "eth0", "proto", "static"]);
            }
        }
        // A kernel does not record how an interface was found.
        let mode = if case == "mac" { "apply-unverified" } else { "apply" };
        nmstate(mode);
        // What is applied stays as it is.
        nmstate(mode);
        until(&format!("nmstate applies {case}"), async || is_applied(&room, &interfaces)).await;
    }
}

/// A state that nmstate refuses would otherwise look like an accepted one.
#[test]
fn nmstate_refuses_unknown_fields() {
    let room = Room::make();
    fs::write(
        room.path("/run/state.yml"),
        "interfaces:\n- name: eth0\n  type: ethernet\n  ipv4: {adress: []}\n",
    )
    .unwrap();
    let program = target().join("tools/nmstate/debug/nmstate-apply");
    let output = room.output(&["sh", "-c", &format!("{} < /run/state.yml", program.display())]);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && error.contains("adress"), "{error}");
}
