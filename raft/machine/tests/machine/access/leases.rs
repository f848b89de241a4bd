//! Leases are renewed with the rights that allocating them needs.

use ipam_api::Code;
use ipam_api::access::Role;
use ipam_api::resource::Lifecycle;
use ipam_machine::command::{Allocate, AllocateOptions, Grant, Leases, Renew};
use ipam_machine::{Action, Outcome, Terms};

use crate::access::world::{World, admin, hold, ids, node};

fn lease(on_node: Option<&str>, endpoint: &str) -> Action {
    let options = AllocateOptions { ttl_ms: Some(60_000), ..AllocateOptions::default() };
    let request = hold(on_node, endpoint, "web");
    Action::Allocate(Allocate { lifecycle: Lifecycle::Leased, options, ..request })
}

/// A renewal by name, and one by number.
fn renewals(endpoint: &str, given: &Outcome) -> [Action; 2] {
    let renew = |which| Action::Renew(Renew { which, ttl_ms: Some(90_000) });
    [renew(Leases::Endpoint(endpoint.parse().unwrap())), renew(Leases::Allocation(ids(given)[0].into()))]
}

#[test]
fn a_node_renews_its_own_leases_only() {
    let mut world = World::new();
    let own = world.run(node("n1"), lease(Some("n1"), "host/n1"));
    let foreign = world.run(admin(), lease(Some("n2"), "host/n2"));
    let nowhere = world.run(admin(), lease(None, "host/printer"));
    for action in renewals("host/n1", &own) {
        assert_eq!(world.code(node("n1"), action), None);
    }
    let before = world.state.digest();
    for (endpoint, given) in [("host/n2", &foreign), ("host/printer", &nowhere)] {
        for action in renewals(endpoint, given) {
            assert_eq!(world.code(node("n1"), action), Some(Code::ForeignNode), "{endpoint}");
        }
    }
    assert_eq!(world.code(node("n1"), lease(Some("n1"), "host/n2")), Some(Code::ForeignNode));
    assert_eq!(world.state.digest(), before);
}

#[test]
fn a_token_with_labels_or_realms_renews_leases_that_it_could_request() {
    let mut world = World::new();
    let given = world.run(admin(), lease(None, "host/a"));
    let db = Grant { labels: "team=db".parse().unwrap(), ..Grant::of(Role::Operator) };
    let prod = Grant { realms: vec!["prod".parse().unwrap()], ..Grant::of(Role::Operator) };
    let before = world.state.digest();
    for grant in [db, prod, Grant::of(Role::Viewer)] {
        let credential = || Terms::of(grant.clone());
        for action in renewals("host/a", &given) {
            assert_eq!(world.code(credential(), action), Some(Code::Forbidden), "{grant:?}");
        }
        // The same request again renews, too.
        assert_eq!(world.code(credential(), lease(None, "host/a")), Some(Code::Forbidden), "{grant:?}");
    }
    assert_eq!(world.state.digest(), before);
}

#[test]
fn red_team_a_node_adopts_what_selectors_and_reservations_keep_from_it() {
    let mut world = World::new();
    let mut request = hold(Some("n1"), "host/n1", "web");
    request.options.adopt = true;
    request.interfaces[0].addresses = vec!["10.0.0.15".parse().unwrap()];
    assert_eq!(world.code(node("n1"), Action::Allocate(request.clone())), Some(Code::Forbidden));
    let limited = Grant { labels: "team=db".parse().unwrap(), ..Grant::of(Role::Operator) };
    assert_eq!(world.code(Terms::of(limited), Action::Allocate(request.clone())), Some(Code::Forbidden));
    assert_eq!(world.code(admin(), Action::Allocate(request)), None);
}
