use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::resource::Interface;
use crate::{Code, Family, Problem};

/// Policy of the proposal of kubernetes-nmstate.
fn seed() -> HostPolicy {
    policy(json!({
        "name": "static-ip",
        "capture": {
            "address-from-traffic-1": "ippool.traffic-1.allocate",
            "address-from-traffic-2": "ippool.traffic-2.allocate",
        },
        "desired_state": {"interfaces": [eth("eth1", "traffic-1"), eth("eth2", "traffic-2")]},
    }))
}

fn eth(name: &str, pool: &str) -> Value {
    json!({
        "name": name, "type": "ethernet", "state": "up",
        "ipv4": {
            "address": [{
                "ip": format!("{{{{ capture.address-from-{pool}.ip }}}}"),
                "prefix-length": format!("{{{{ capture.address-from-{pool}.prefix-length }}}}"),
            }],
            "dhcp": false, "enabled": true,
        },
    })
}

fn policy(value: Value) -> HostPolicy {
    serde_json::from_value(value).unwrap()
}

fn given(name: &str, addresses: &[&str]) -> Interface {
    let addresses = addresses.iter().map(
        |address| json!({"address": address, "pool": "p", "allocation": 1, "checked": false, "mtu": 1400}),
    );
    serde_json::from_value(json!({"name": name, "addresses": addresses.collect::<Vec<_>>()})).unwrap()
}

#[test]
fn the_proposals_example_is_resolved() {
    let policy = seed();
    policy.check().unwrap();
    let requests = interface_requests(&policy).unwrap();
    let named: Vec<_> = requests.iter().map(|one| (one.name.as_str(), one.ipv4_pools[0].as_str())).collect();
    assert_eq!(named, [("eth1", "traffic-1"), ("eth2", "traffic-2")]);
    assert!(requests.iter().all(|one| one.families == [Family::V4] && one.ipv6_pools.is_empty()));
    let interfaces = [given("eth1", &["10.10.10.8/24"]), given("eth2", &["10.10.11.9/24"])];
    let resolved = resolve(&policy, &interfaces).unwrap();
    assert!(resolved.capture.is_empty());
    let address = |index: usize| &resolved.desired_state["interfaces"][index]["ipv4"]["address"][0];
    assert_eq!(*address(0), json!({"ip": "10.10.10.8", "prefix-length": 24}));
    assert_eq!(*address(1), json!({"ip": "10.10.11.9", "prefix-length": 24}));
    assert_eq!(resolved.desired_state["interfaces"][1]["type"], "ethernet");
}

#[test]
fn captures_of_nmpolicy_stay_unchanged() {
    let policy = policy(json!({
        "name": "p",
        "interfaces": [{"name": "bond0", "ipv4_pools": ["a", "b"], "ipv6_pools": ["c"]}],
        "capture": {
            "base": "interfaces.type == \"ethernet\"",
            "v4": "ippool.a.allocate",
            "v6": "ippool.c.allocate",
        },
        "desired_state": {
            "x": "{{ capture.base.interfaces.0.name }}",
            "y": "{{capture.v6.ip}}",
            "mtu": "{{ capture.v4.mtu }}",
            "text": "a {{ capture.base.x }} b",
        },
    }));
    policy.check().unwrap();
    let resolved = resolve(&policy, &[given("bond0", &["10.0.0.1/16", "2001:db8::1/64"])]).unwrap();
    let expected = json!({
        "x": "{{ capture.base.interfaces.0.name }}",
        "y": "2001:db8::1", "mtu": 1400, "text": "a {{ capture.base.x }} b",
    });
    assert_eq!(resolved.desired_state, expected);
    assert_eq!(resolved.capture.keys().collect::<Vec<_>>(), ["base"]);
    let problem = resolve(&policy, &[given("bond0", &["10.0.0.1/16"])]).unwrap_err();
    assert_eq!(at(&problem), "/desired_state/y");
}

fn at(problem: &Problem) -> &str {
    &problem.errors[0].pointer
}

/// Problem with a policy whose capture `a` is of pool `p`, with these fields changed.
fn refused(change: Value) -> Problem {
    let mut value = json!({"name": "x", "capture": {"a": "ippool.p.allocate"}});
    value.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
    policy(value).check().unwrap_err()
}

#[test]
fn references_that_cannot_be_resolved_are_refused_with_their_place() {
    let listed = json!([{"name": "eth0", "ipv4_pools": ["p"]}]);
    for (text, detail) in [
        ("{{ capture.b.ip }}", "no capture has the name"),
        ("{{ capture.a.address }}", "has no field"),
        ("{{ capture.a }}", "has no field"),
        ("{{ capture.a.ip }}/24", "the whole string"),
        ("{{ capture.a.ip }} {{ capture.a.ip }}", "the whole string"),
    ] {
        let problem = refused(json!({"interfaces": listed, "desired_state": {"k~/": [text]}}));
        assert!(problem.detail.contains(detail), "{text}: {}", problem.detail);
        assert_eq!(at(&problem), "/desired_state/k~0~1/0");
    }
}

#[test]
fn a_capture_without_an_interface_says_to_list_it() {
    let element =
        |name: Value, v4: &str, v6: &str| json!({"interfaces": [{"name": name, "ipv4": v4, "ipv6": v6}]});
    let own = "{{ capture.a.ip }}";
    for state in [
        json!({}),
        json!({"routes": own}),
        element(json!("{{ capture.a.ip }}"), own, ""),
        element(json!(null), own, ""),
        element(json!("eth0"), own, own),
        json!({"interfaces": [{"name": "eth0", "x": own}]}),
        json!({"interfaces": [{"name": "eth0", "ipv4": own}, {"name": "eth1", "ipv4": own}]}),
    ] {
        let problem = refused(json!({"desired_state": state}));
        assert_eq!(at(&problem), "/capture/a", "{state}");
        assert!(problem.detail.contains("list the interface with pool p"), "{state}: {}", problem.detail);
    }
    let other = json!([{"name": "eth0", "ipv4_pools": ["q"]}]);
    let problem = refused(json!({"interfaces": other, "desired_state": element(json!("eth0"), own, "")}));
    assert!(problem.detail.contains("add the pool"), "{}", problem.detail);
}

#[test]
fn each_interface_has_one_address_of_a_family() {
    let two = json!({"a": "ippool.p.allocate", "b": "ippool.p.allocate"});
    let problem = refused(json!({"interfaces": [{"name": "eth0", "ipv4_pools": ["p"]}], "capture": two}));
    assert!(
        problem.detail.contains("already stands for the IPv4 address of interface eth0"),
        "{}",
        problem.detail
    );
    // References decide between interfaces that list the same pool.
    let both = policy(json!({
        "name": "x", "capture": two,
        "interfaces": [{"name": "eth0", "ipv4_pools": ["p"]}, {"name": "eth1", "ipv4_pools": ["p"]}],
        "desired_state": {"interfaces": [
            {"name": "eth1", "ipv4": "{{ capture.a.ip }}"}, {"name": "eth0", "ipv4": "{{ capture.b.ip }}"},
        ]},
    }));
    both.check().unwrap();
    let interfaces = [given("eth0", &["10.0.0.1/16"]), given("eth1", &["10.0.0.2/16"])];
    let state = resolve(&both, &interfaces).unwrap().desired_state;
    assert_eq!(
        (&state["interfaces"][0]["ipv4"], &state["interfaces"][1]["ipv4"]),
        (&json!("10.0.0.2"), &json!("10.0.0.1"))
    );
}

#[test]
fn limits_and_shapes_are_checked() {
    use crate::limits::{HOST_POLICY_CAPTURES_MAX, HOST_POLICY_DEPTH_MAX, HOST_POLICY_STATE_BYTES_MAX};
    let eth0 = json!({"name": "eth0", "ipv4_pools": ["p"]});
    let captures: serde_json::Map<_, _> =
        (0..=HOST_POLICY_CAPTURES_MAX).map(|number| (format!("c{number}"), json!("x"))).collect();
    let deep = (0..=HOST_POLICY_DEPTH_MAX).fold(json!(1), |value, _| json!({"a": value}));
    for (change, code, pointer) in [
        (json!({"desired_state": [1]}), Code::InvalidField, "/desired_state"),
        (
            json!({"desired_state": {"a": "x".repeat(HOST_POLICY_STATE_BYTES_MAX)}}),
            Code::LimitExceeded,
            "/desired_state",
        ),
        (json!({"capture": captures}), Code::LimitExceeded, "/capture"),
        (json!({"capture": {"1a": "x"}}), Code::InvalidField, "/capture/1a"),
        (json!({"capture": {"a": "ippool.P.allocate"}}), Code::InvalidField, "/capture/a"),
        (json!({"capture": {"a": "x".repeat(2000)}}), Code::InvalidField, "/capture/a"),
        (json!({"capture": {"a": "x\u{1b}[2J"}}), Code::InvalidField, "/capture/a"),
        (json!({"interfaces": [{"name": "eth0"}]}), Code::InvalidField, "/interfaces/0"),
        (json!({"interfaces": [eth0, eth0]}), Code::InvalidField, "/interfaces/1"),
        (
            json!({"interfaces": [{"name": "eth0", "ipv4_pools": ["p"], "ipv6_pools": ["p"]}]}),
            Code::InvalidField,
            "/interfaces/0",
        ),
    ] {
        let problem = refused(change.clone());
        assert_eq!((problem.code, at(&problem)), (code, pointer), "{change}: {}", problem.detail);
    }
    let problem = refused(json!({"interfaces": [eth0], "desired_state": deep}));
    assert_eq!(problem.code, Code::LimitExceeded);
    let reader = json!({"a": "ippool.p.allocate", "b": "interfaces.ipv4.ip == capture.a.ip"});
    let problem = refused(json!({"interfaces": [eth0], "capture": reader}));
    assert_eq!(at(&problem), "/capture/b");
    let other = json!({"a": "ippool.p.allocate", "b": "x == capture.ab.ip", "ab": "y"});
    policy(json!({"name": "x", "interfaces": [eth0], "capture": other})).check().unwrap();
}

#[test]
fn a_roll_out_changes_a_count_or_a_percentage() {
    let read = |value: Value| serde_json::from_value::<MaxUnavailable>(value);
    for (value, nodes, expected) in [
        (json!(3), 10, 3),
        (json!("50%"), 5, 3),
        (json!("1%"), 5, 1),
        (json!("100%"), 7, 7),
        (json!("50%"), 0, 1),
    ] {
        let max = read(value.clone()).unwrap();
        assert_eq!(max.of(nodes), expected, "{value}");
        assert_eq!(serde_json::to_value(max).unwrap(), value);
    }
    for bad in [
        json!(0),
        json!("0%"),
        json!("101%"),
        json!("-1"),
        json!(-1),
        json!(1.5),
        json!("%"),
        json!("x"),
        json!("4"),
        json!("050%"),
        json!("+5%"),
        json!(u64::MAX),
    ] {
        assert!(read(bad.clone()).is_err(), "{bad}");
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[{} .a-z0-9]{0,20}".prop_map(Value::from),
        "\\{\\{ ?capture\\.(foreign|a|b|)(\\.(ip|mtu|x|))? ?\\}\\}".prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 6, |inner| {
        let key = prop_oneof!["interfaces|ipv4|ipv6|name", any::<String>()];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(key, inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Compares both values, which may differ at references to capture `a` only.
fn same_but_references(old: &Value, new: &Value) {
    match (old, new) {
        (Value::Array(old), Value::Array(new)) => {
            assert_eq!(old.len(), new.len());
            old.iter().zip(new).for_each(|(old, new)| same_but_references(old, new));
        }
        (Value::Object(old), Value::Object(new)) => {
            assert!(old.keys().eq(new.keys()));
            old.values().zip(new.values()).for_each(|(old, new)| same_but_references(old, new));
        }
        (Value::String(text), _) if text.trim().starts_with("{{") && text.contains("capture.a.") => {
            assert!(*new == json!("10.0.0.1") || *new == json!(1400), "{text} became {new}");
        }
        _ => assert_eq!(old, new),
    }
}

proptest! {
    #[test]
    fn any_desired_state_is_refused_or_changed_at_references_only(state in any_json()) {
        let policy = policy(json!({
            "name": "x",
            "interfaces": [{"name": "eth0", "ipv4_pools": ["p"]}],
            "capture": {"a": "ippool.p.allocate", "foreign": "x"},
            "desired_state": state,
        }));
        let _ = policy.check();
        if let Ok(resolved) = resolve(&policy, &[given("eth0", &["10.0.0.1/24"])]) {
            same_but_references(&policy.desired_state, &resolved.desired_state);
        }
        // Without a listed interface, the desired state alone decides.
        let _ = interface_requests(&HostPolicy { interfaces: Vec::new(), ..policy });
    }

    #[test]
    fn any_capture_is_accepted_or_refused(
        name in any::<String>(),
        expression in ".*|ippool\\..*\\.allocate|capture\\..*",
    ) {
        let mut policy = seed();
        policy.capture.insert(name, expression);
        let _ = policy.check();
        let _ = interface_requests(&policy);
    }
}
