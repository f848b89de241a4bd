//! nmstate: the crate reads each state, and applies it to the kernel of a namespace.

use ipam_api::render::{Format, render};
use nmstate::NetworkState;

use super::observed::{expected, is_applied};
use super::room::{Room, cases};
use crate::namespace::wire::inside;
use crate::support::until;

#[tokio::test]
async fn n5_10_nmstate_applies_each_case() {
    for (case, interfaces) in cases() {
        let text = render(Format::Nmstate, &interfaces).unwrap().remove(0).content;
        let mut state =
            NetworkState::new_from_yaml(&text).unwrap_or_else(|error| panic!("{case}: {error}\n{text}"));
        let room = Room::make();
        if case == "vlan" && !room.has_vlans() {
            println!("{case}: the kernel has no VLANs, so nmstate only reads the state");
            continue;
        }
        // Name servers are NetworkManager's; a kernel has none.
        state.dns = nmstate::DnsState::default().into();
        state.set_kernel_only(true);
        // Without NetworkManager, nmstate compares the MTU and does not set it.
        for (device, mtu) in expected(&interfaces).mtus {
            room.run(&["ip", "link", "set", &device, "mtu", &mtu.to_string()]);
        }
        // A kernel does not record how an interface was found.
        state.set_verify_change(case != "mac");
        // Without NetworkManager, nmstate adds routes in no order, so those to gateways come first.
        let mut direct = state.clone();
        let is_direct = |route: &nmstate::RouteEntry| route.next_hop_addr.as_deref() == Some("0.0.0.0");
        direct.routes.config.iter_mut().for_each(|routes| routes.retain(is_direct));
        inside(&room.network(), || direct.apply()).unwrap_or_else(|error| panic!("{case}: {error}\n{text}"));
        // Twice: what is applied stays as it is.
        for _ in 0..2 {
            inside(&room.network(), || state.apply())
                .unwrap_or_else(|error| panic!("{case}: {error}\n{text}"));
        }
        until(&format!("nmstate applies {case}"), async || is_applied(&room, &interfaces)).await;
    }
}
