//! Order of journal and kernel, and kills between any two changes.

use std::collections::BTreeSet;
use std::path::Path;

use ipam_api::resource::Interface;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::fake::{FakeKernel, link};
use super::hold;
use super::kernel::{HostRoute, Link};
use super::session::Session;
use super::status::{HostState, HostStatus, Source};
use crate::fakes::FakeWire;
use crate::host_config::{HostConfig, InterfaceSection};

/// Points of one change of the tests at most: before and after each call.
const POINTS: u32 = 60;

fn config(pools: &str) -> HostConfig {
    let section = |name: &str| -> InterfaceSection {
        toml::from_str(&format!("name = \"{name}\"\nipv4_pools = [\"{pools}\"]")).unwrap()
    };
    let interval = |_: &str, ms| Ok(std::time::Duration::from_millis(ms));
    HostConfig::check(None, vec![section("eth1"), section("eth2")], interval).unwrap().unwrap()
}

fn open(kernel: &FakeKernel, dir: &Path, boot: &str) -> Session<FakeKernel> {
    open_as(kernel, dir, boot, "n1")
}

/// Opens the session of a node.
fn open_as(kernel: &FakeKernel, dir: &Path, boot: &str, node: &str) -> Session<FakeKernel> {
    let config = HostConfig { machine_id_file: dir.join("machine-id"), ..config("p") };
    let node = serde_json::from_value(json!({"name": node})).unwrap();
    Session::open(config, kernel.clone(), dir, boot, dir, &node).unwrap()
}

fn interfaces(value: Value) -> Vec<Interface> {
    serde_json::from_value(value).unwrap()
}

fn given(address: &str, more: Value) -> Value {
    let mut given = json!({"address": address, "pool": "p", "allocation": 1, "checked": true});
    given.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    given
}

/// Several configurations with different addresses, prefixes, gateways, MTUs and VLANs, and an empty one.
fn configurations() -> Vec<Vec<Interface>> {
    let route = json!([{"destination": "10.9.0.0/16", "gateway": "10.0.0.3"}]);
    [
        json!([]),
        json!([{"name": "eth1", "addresses": [given("10.0.0.7/24", json!({"gateway": "10.0.0.1"}))]}]),
        json!([{"name": "eth1", "addresses": [given("10.0.0.7/24", json!({"gateway": "10.0.0.2"}))]}]),
        json!([{"name": "eth1", "addresses": [given("10.0.0.7/25", json!({"gateway": "10.0.0.1"}))]}]),
        json!([
            {"name": "eth1", "addresses": [
                given("10.0.0.8/24", json!({"gateway": "10.0.0.1", "mtu": 1400, "routes": route})),
                given("2001:db8::7/64", json!({"gateway": "fe80::1"})),
            ]},
            {"name": "eth2", "addresses": [given("10.5.0.7/24", json!({"gateway": "10.5.0.1"}))]},
        ]),
        json!([
            {"name": "eth1", "addresses": [given("10.0.0.7/24", json!({"vlan": 100, "mtu": 1400}))]},
            {"name": "eth2", "addresses": [given("10.0.1.9/24", json!({"gateway": "10.0.1.1"}))]},
        ]),
        // This address exists already as a foreign one.
        json!([{"name": "eth2", "addresses": [given("10.0.1.5/24", json!({}))]}]),
    ]
    .map(interfaces)
    .into()
}

/// Kernel with foreign addresses and routes, and its state as text.
fn foreign(has_tags: bool) -> (FakeKernel, Vec<String>) {
    let kernel = FakeKernel::new(vec![link(1, "eth0", 1), link(2, "eth1", 2), link(3, "eth2", 3)], has_tags);
    for (link, address) in [(1, "192.0.2.1/24"), (2, "10.0.0.99/24"), (3, "10.0.1.5/24"), (3, "fe80::3/64")] {
        kernel.foreign(link, address);
    }
    let route = HostRoute {
        destination: "10.9.0.0/16".parse().unwrap(),
        gateway: "192.0.2.9".parse().unwrap(),
        metric: 0,
        on_link: false,
    };
    kernel.state().foreign.push((1, route));
    let shown = kernel.shown();
    (kernel, shown)
}

/// Adopts a configuration, and confirms it as a server would.
async fn take(session: &mut Session<FakeKernel>, interfaces: &[Interface]) {
    session.adopt(interfaces.to_vec(), BTreeSet::new()).await.unwrap();
    session.confirm().unwrap();
}

/// Configuration of a kernel that never had another one.
async fn expected(interfaces: &[Interface], has_tags: bool) -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    let (kernel, _) = foreign(has_tags);
    let mut session = open(&kernel, dir.path(), "b1");
    take(&mut session, interfaces).await;
    kernel.shown()
}

/// Adopts a configuration while the agent is killed at a point; returns false if the point was not reached.
async fn killed(kernel: &FakeKernel, dir: &Path, interfaces: &[Interface], point: u32) -> bool {
    kernel.state().kill_at = point;
    let mut session = open(kernel, dir, "b1");
    let run = async {
        session.repair().await.unwrap();
        take(&mut session, interfaces).await;
    };
    let is_killed = tokio::select! {
        biased;
        () = run => false,
        () = kernel.killed.notified() => true,
    };
    kernel.state().kill_at = 0;
    is_killed
}

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

#[test]
fn every_change_leads_to_the_wanted_configuration_and_back() {
    run(async {
        for has_tags in [true, false] {
            for from in configurations() {
                for to in configurations() {
                    let dir = tempfile::tempdir().unwrap();
                    let (kernel, before) = foreign(has_tags);
                    let mut session = open(&kernel, dir.path(), "b1");
                    take(&mut session, &from).await;
                    take(&mut session, &to).await;
                    assert_eq!(kernel.shown(), expected(&to, has_tags).await, "{from:?} {to:?}");
                    kernel.state().changes.clear();
                    take(&mut session, &to).await;
                    session.repair().await.unwrap();
                    assert_eq!(kernel.state().changes, [""; 0], "nothing changes if nothing changed");
                    take(&mut session, &[]).await;
                    let up = kernel.shown();
                    assert_eq!(up, before, "only what was added is removed");
                }
            }
        }
    });
}

#[test]
fn an_undone_change_leaves_the_former_configuration() {
    run(async {
        for from in configurations() {
            for to in configurations() {
                let dir = tempfile::tempdir().unwrap();
                let (kernel, _) = foreign(true);
                let mut session = open(&kernel, dir.path(), "b1");
                take(&mut session, &from).await;
                let before = kernel.shown();
                session.adopt(to.clone(), BTreeSet::new()).await.unwrap();
                if session.is_unconfirmed() {
                    assert_eq!(session.undo().await.unwrap(), to);
                    assert_eq!(kernel.shown(), before);
                }
            }
        }
    });
}

#[test]
fn the_journal_has_a_change_before_the_kernel() {
    run(async {
        let dir = tempfile::tempdir().unwrap();
        let (kernel, _) = foreign(true);
        let wanted = &configurations()[4];
        // Killed before the first change: the kernel has no addition, and the journal has all of them.
        assert!(killed(&kernel, dir.path(), wanted, 1).await);
        assert!(kernel.state().changes.is_empty());
        let mut session = open(&kernel, dir.path(), "b1");
        assert!(session.is_unconfirmed());
        session.repair().await.unwrap();
        assert_eq!(kernel.shown(), expected(wanted, true).await);
        // Another gateway adds nothing to the list in the journal, but the journal describes it.
        let all = configurations();
        take(&mut session, &all[1]).await;
        drop(session);
        assert!(killed(&kernel, dir.path(), &all[2], 1).await);
        let session = open(&kernel, dir.path(), "b1");
        assert!(session.is_unconfirmed());
        assert_eq!((&session.journal.applied, session.journal.former.as_ref()), (&all[2], Some(&all[1])));
    });
}

#[test]
fn other_addresses_of_a_prefix_stay_when_its_first_one_is_removed() {
    run(async {
        let dir = tempfile::tempdir().unwrap();
        let kernel = FakeKernel::new(vec![link(2, "eth1", 2)], true);
        let mut session = open(&kernel, dir.path(), "b1");
        let of =
            |address: &str| interfaces(json!([{"name": "eth1", "addresses": [given(address, json!({}))]}]));
        take(&mut session, &of("10.0.0.7/24")).await;
        take(&mut session, &of("10.0.0.8/24")).await;
        assert_eq!(kernel.shown(), ["eth1 10.0.0.8/24", "eth1 mtu 1500"]);
        kernel.foreign(2, "10.0.0.99/24");
        take(&mut session, &[]).await;
        assert_eq!(kernel.shown(), ["eth1 10.0.0.99/24", "eth1 mtu 1500"]);
    });
}

#[test]
fn another_boot_gets_the_last_confirmed_configuration_without_a_server() {
    run(async {
        let dir = tempfile::tempdir().unwrap();
        let (kernel, _) = foreign(true);
        let all = configurations();
        let mut session = open(&kernel, dir.path(), "b1");
        take(&mut session, &all[1]).await;
        session.adopt(all[2].clone(), BTreeSet::new()).await.unwrap();
        assert!(session.is_unconfirmed());
        drop(session);
        let (kernel, _) = foreign(true);
        let mut session = open(&kernel, dir.path(), "b2");
        assert!(!session.is_unconfirmed());
        session.repair().await.unwrap();
        assert_eq!(kernel.shown(), expected(&all[1], true).await);
    });
}

#[test]
fn a_missing_link_gets_its_addresses_when_it_comes_back() {
    run(async {
        let dir = tempfile::tempdir().unwrap();
        let (kernel, _) = foreign(true);
        let wanted = &configurations()[4];
        let mut session = open(&kernel, dir.path(), "b1");
        take(&mut session, wanted).await;
        let all = kernel.shown();
        let gone = |one: &u32| *one != 3;
        {
            let mut state = kernel.state();
            state.observed.links.retain(|link| gone(&link.index));
            state.observed.addresses.retain(|one| gone(&one.link));
            state.observed.routes.retain(|(link, _)| gone(link));
        }
        session.repair().await.unwrap();
        kernel.state().observed.links.push(link(3, "eth2", 3));
        kernel.foreign(3, "10.0.1.5/24");
        kernel.foreign(3, "fe80::3/64");
        session.repair().await.unwrap();
        assert_eq!(kernel.shown(), all);
    });
}

#[test]
fn a_lost_journal_removes_nothing_before_a_server_answers() {
    run(async {
        for damage in [None, Some("{\"version\": 1"), Some("{\"version\": 9, \"boot_id\": \"b1\"}")] {
            let dir = tempfile::tempdir().unwrap();
            let (kernel, _) = foreign(true);
            let all = configurations();
            take(&mut open(&kernel, dir.path(), "b1"), &all[1]).await;
            let file = dir.path().join("host.json");
            match damage {
                None => std::fs::remove_file(&file).unwrap(),
                Some(text) => std::fs::write(&file, text).unwrap(),
            }
            kernel.state().changes.clear();
            let mut session = open(&kernel, dir.path(), "b1");
            hold(&mut session, &FakeWire::default()).await;
            // A journal that was written before the first answer has no addresses, either.
            session.note_rendered(["x".into()].into()).unwrap();
            let mut session = open(&kernel, dir.path(), "b1");
            hold(&mut session, &FakeWire::default()).await;
            assert_eq!(kernel.state().changes, [""; 0], "{damage:?}");
            // The first answer after the damage is not confirmed: undoing it would remove all additions.
            session.adopt(all[2].clone(), BTreeSet::new()).await.unwrap();
            assert_eq!(kernel.shown(), expected(&all[2], true).await);
            assert!(!session.is_unconfirmed());
            let mut session = open(&kernel, dir.path(), "b1");
            take(&mut session, &[]).await;
            assert_eq!(kernel.shown(), foreign(true).1);
        }
    });
}

#[test]
fn a_withheld_address_stays_withheld_after_a_restart_and_a_reboot() {
    run(async {
        let dir = tempfile::tempdir().unwrap();
        let (kernel, _) = foreign(true);
        let wanted = configurations().swap_remove(1);
        let withheld: BTreeSet<_> = ["10.0.0.7".parse().unwrap()].into();
        let mut session = open(&kernel, dir.path(), "b1");
        session.adopt(wanted.clone(), withheld.clone()).await.unwrap();
        session.confirm().unwrap();
        for boot in ["b1", "b2"] {
            session = open(&kernel, dir.path(), boot);
            session.repair().await.unwrap();
            assert_eq!(kernel.shown(), foreign(true).1, "{boot}");
        }
        // The conflict ends. The address is now a change that a server confirms and that can be undone.
        session.adopt(wanted.clone(), BTreeSet::new()).await.unwrap();
        assert!(session.is_unconfirmed());
        assert_eq!(kernel.shown(), expected(&wanted, true).await);
        assert_eq!(session.undo().await.unwrap(), wanted);
        assert_eq!((kernel.shown(), &session.journal.withheld), (foreign(true).1, &withheld));
        // The same holds after a reboot without a confirmation.
        session.adopt(wanted.clone(), BTreeSet::new()).await.unwrap();
        let (kernel, before) = foreign(true);
        open(&kernel, dir.path(), "b3").repair().await.unwrap();
        assert_eq!(kernel.shown(), before);
    });
}

#[test]
fn the_journal_of_another_machine_or_node_is_not_applied() {
    run(async {
        let wanted = &configurations()[1];
        for (machine, node, is_same) in
            [("aa", "n1", true), ("bb", "n1", false), ("", "n1", false), ("aa", "n2", false)]
        {
            let dir = tempfile::tempdir().unwrap();
            let id = dir.path().join("machine-id");
            std::fs::write(&id, "aa").unwrap();
            let (kernel, _) = foreign(true);
            take(&mut open(&kernel, dir.path(), "b1"), wanted).await;
            std::fs::write(&id, machine).unwrap();
            // The clone boots.
            let (clone, before) = foreign(true);
            hold(&mut open_as(&clone, dir.path(), "b2", node), &FakeWire::default()).await;
            let shown = if is_same { expected(wanted, true).await } else { before };
            assert_eq!(clone.shown(), shown, "{machine} {node}");
            // A running host with another name keeps its addresses.
            let shown = kernel.shown();
            hold(&mut open_as(&kernel, dir.path(), "b1", node), &FakeWire::default()).await;
            assert_eq!(kernel.shown(), shown, "{machine} {node}");
            let mut session = open_as(&clone, dir.path(), "b2", node);
            take(&mut session, wanted).await;
            let session = open_as(&clone, dir.path(), "b2", node);
            assert_eq!(session.journal.node.as_deref(), Some(format!("default/{node}").as_str()));
            assert!(session.journal.is_known);
        }
    });
}

#[test]
fn a_vlan_device_of_another_manager_is_not_changed() {
    run(async {
        let dir = tempfile::tempdir().unwrap();
        let (kernel, _) = foreign(true);
        kernel.state().observed.links.push(Link { vlan: Some((2, 100)), ..link(4, "eth1.100", 2) });
        kernel.foreign(4, "10.0.0.50/24");
        std::fs::create_dir_all(dir.path().join("run/network")).unwrap();
        std::fs::write(dir.path().join("run/network/ifstate"), "eth1.100=eth1.100\n").unwrap();
        let before = kernel.shown();
        let mut session = open(&kernel, dir.path(), "b1");
        let given = given("10.0.0.7/24", json!({"vlan": 100, "mtu": 1400}));
        take(&mut session, &interfaces(json!([{"name": "eth1", "addresses": [given]}]))).await;
        assert_eq!(kernel.shown(), before);
        let view = session.view().await.unwrap();
        session.report(HostState::Applied, Source::Server, "", &view);
        let status = HostStatus::load(dir.path()).unwrap();
        assert_eq!(status.detail, "another network manager has eth1.100");
    });
}

#[test]
fn a_vlan_device_stays_while_others_use_it() {
    run(async {
        for use_of in ["address", "link", "port", "link-local"] {
            let dir = tempfile::tempdir().unwrap();
            let (kernel, before) = foreign(true);
            let mut session = open(&kernel, dir.path(), "b1");
            let given = given("10.0.0.7/24", json!({"vlan": 100, "mtu": 1400, "gateway": "10.0.0.1"}));
            take(&mut session, &interfaces(json!([{"name": "eth1", "addresses": [given]}]))).await;
            match use_of {
                "address" => kernel.foreign(4, "10.0.0.50/24"),
                "link-local" => kernel.foreign(4, "fe80::4/64"),
                "port" => kernel.state().observed.links.last_mut().unwrap().is_port = true,
                _ => kernel.state().observed.links.push(Link { parent: Some(4), ..link(5, "mac0", 5) }),
            }
            take(&mut session, &[]).await;
            let left: Vec<String> = kernel.shown().into_iter().filter(|one| !before.contains(one)).collect();
            let expected: &[&str] = match use_of {
                "address" => &["eth1.100 10.0.0.50/24", "eth1.100 mtu 1400"],
                "link" => &["eth1.100 mtu 1400", "mac0 mtu 1500"],
                "port" => &["eth1.100 mtu 1400"],
                _ => &[],
            };
            assert_eq!(left, expected, "{use_of}");
        }
    });
}

#[test]
fn a_vlan_device_stays_for_the_next_probe_of_its_withheld_address() {
    run(async {
        let dir = tempfile::tempdir().unwrap();
        let (kernel, _) = foreign(true);
        let given = given("10.0.0.7/24", json!({"vlan": 100, "mtu": 1400, "gateway": "10.0.0.1"}));
        let wanted = interfaces(json!([{"name": "eth1", "addresses": [given]}]));
        let withheld = BTreeSet::from(["10.0.0.7".parse().unwrap()]);
        let mut session = open(&kernel, dir.path(), "b1");
        session.prepare(&wanted).await.unwrap();
        kernel.state().changes.clear();
        session.adopt(wanted.clone(), withheld.clone()).await.unwrap();
        session.prepare(&wanted).await.unwrap();
        session.adopt(wanted, withheld).await.unwrap();
        assert_eq!(kernel.state().changes, [""; 0]);
        assert!(kernel.shown().contains(&"eth1.100 mtu 1500".to_owned()));
    });
}

#[test]
fn a_change_that_the_disk_refuses_is_made_later() {
    run(async {
        let dir = tempfile::tempdir().unwrap();
        let (kernel, before) = foreign(true);
        let wanted = &configurations()[5];
        let mut session = open(&kernel, dir.path(), "b1");
        let obstacle = dir.path().join("host.json.new");
        std::fs::create_dir(&obstacle).unwrap();
        assert!(session.adopt(wanted.clone(), BTreeSet::new()).await.is_err());
        assert!(session.prepare(wanted).await.is_err());
        assert!(session.note_rendered(["x".into()].into()).is_err());
        let journal = session.journal.clone();
        assert_eq!((journal.applied, journal.owned, journal.rendered), Default::default());
        session.repair().await.unwrap();
        assert_eq!(kernel.shown(), before);
        std::fs::remove_dir(&obstacle).unwrap();
        session.adopt(wanted.clone(), BTreeSet::new()).await.unwrap();
        // A refused confirmation is repeated.
        std::fs::create_dir(&obstacle).unwrap();
        assert!(session.confirm().is_err() && session.is_unconfirmed());
        assert!(session.undo().await.is_err() && session.is_unconfirmed());
        std::fs::remove_dir(&obstacle).unwrap();
        let session = open(&kernel, dir.path(), "b1");
        assert_eq!((&session.journal.applied, session.journal.owned.vlans.len()), (wanted, 1));
    });
}

#[test]
fn an_address_that_others_add_meanwhile_is_not_the_agents_after_a_restart() {
    run(async {
        let dir = tempfile::tempdir().unwrap();
        let kernel = FakeKernel::new(vec![link(2, "eth1", 2)], false);
        kernel.foreign(2, "10.0.0.7/24");
        let one = kernel.state().observed.addresses.pop();
        kernel.state().appears = one;
        let wanted = interfaces(json!([{"name": "eth1", "addresses": [given("10.0.0.7/24", json!({}))]}]));
        take_unconfirmed(&kernel, dir.path(), &wanted).await;
        take(&mut open(&kernel, dir.path(), "b1"), &[]).await;
        assert_eq!(kernel.shown(), ["eth1 10.0.0.7/24", "eth1 mtu 1500"]);
    });
}

/// Adopts a configuration in an agent that ends before a confirmation.
async fn take_unconfirmed(kernel: &FakeKernel, dir: &Path, interfaces: &[Interface]) {
    open(kernel, dir, "b1").adopt(interfaces.to_vec(), BTreeSet::new()).await.unwrap();
}

#[test]
fn a_removal_that_failed_is_tried_again_after_a_restart() {
    run(async {
        for has_tags in [true, false] {
            let dir = tempfile::tempdir().unwrap();
            let (kernel, before) = foreign(has_tags);
            let all = configurations();
            take(&mut open(&kernel, dir.path(), "b1"), &all[5]).await;
            kernel.state().refused = "remove".to_owned();
            take(&mut open(&kernel, dir.path(), "b1"), &[]).await;
            kernel.state().refused.clear();
            open(&kernel, dir.path(), "b1").repair().await.unwrap();
            assert_eq!(kernel.shown(), before);
        }
    });
}

#[test]
fn an_mtu_of_ipv4_leaves_foreign_ipv6_addresses() {
    run(async {
        let dir = tempfile::tempdir().unwrap();
        let (kernel, _) = foreign(true);
        let mut session = open(&kernel, dir.path(), "b1");
        let given = given("10.0.1.9/24", json!({"mtu": 576}));
        take(&mut session, &interfaces(json!([{"name": "eth2", "addresses": [given]}]))).await;
        for one in ["eth2 fe80::3/64", "eth2 10.0.1.9/24", "eth2 mtu 1500"] {
            assert!(kernel.shown().contains(&one.to_owned()), "{one}");
        }
        let view = session.view().await.unwrap();
        session.report(HostState::Applied, Source::Server, "", &view);
        let status = HostStatus::load(dir.path()).unwrap();
        assert!(status.detail.contains("MTU of eth2"), "{status:?}");
    });
}

#[test]
fn a_parent_has_the_mtu_of_its_vlan_devices_while_they_exist() {
    run(async {
        let dir = tempfile::tempdir().unwrap();
        let (kernel, before) = foreign(true);
        let mut session = open(&kernel, dir.path(), "b1");
        let given = given("10.0.0.7/24", json!({"vlan": 100, "mtu": 9000}));
        let wanted = interfaces(json!([{"name": "eth1", "addresses": [given]}]));
        for _ in 0..3 {
            take(&mut session, &wanted).await;
            for one in ["eth1 mtu 9000", "eth1.100 mtu 9000"] {
                assert!(kernel.shown().contains(&one.to_owned()), "{one}");
            }
            session = open(&kernel, dir.path(), "b1");
        }
        take(&mut session, &[]).await;
        assert_eq!(kernel.shown(), before);
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Kills between any two changes, in any sequence of configurations.
    #[test]
    fn n5_12_a_killed_agent_heals_and_touches_nothing_foreign(
        steps in prop::collection::vec((0..7_usize, 0..POINTS), 1..6),
        has_tags in any::<bool>(),
    ) {
        run(async {
            let all = configurations();
            let dir = tempfile::tempdir().unwrap();
            let (kernel, before) = foreign(has_tags);
            for (wanted, point) in steps {
                killed(&kernel, dir.path(), &all[wanted], point).await;
                let shown = kernel.shown();
                let is_kept = |one: &&String| one.contains(" mtu ") || shown.contains(one);
                assert!(before.iter().all(|one| is_kept(&one)), "{before:?} {shown:?}");
                // The agent restarts: first with the journal alone, then with the servers.
                let mut session = open(&kernel, dir.path(), "b1");
                session.repair().await.unwrap();
                take(&mut session, &all[wanted]).await;
                assert_eq!(kernel.shown(), expected(&all[wanted], has_tags).await);
            }
            let mut session = open(&kernel, dir.path(), "b1");
            take(&mut session, &[]).await;
            assert_eq!(kernel.shown(), before);
        });
    }
}
