//! Limited administrators make, rotate and delete no token with rights beyond their own.

use ipam_api::Code;
use ipam_api::access::{NodeKey, Role};
use ipam_machine::command::{Expect, Kind, Purpose, secret_hash};
use ipam_machine::{Action, Grant, Terms};

use crate::access::world::{World, admin, delete, name, token};

const FORBIDDEN: Option<Code> = Some(Code::Forbidden);

fn of_realms(role: Role, realms: &[&str]) -> Grant {
    Grant { realms: realms.iter().map(|realm| name(realm)).collect(), ..Grant::of(role) }
}

fn of_labels(role: Role, labels: &str) -> Grant {
    Grant { labels: labels.parse().unwrap(), ..Grant::of(role) }
}

fn node_of(realm: &str) -> Grant {
    Grant::of_node(NodeKey { realm: name(realm), name: "n1".parse().unwrap() })
}

/// Returns true if a caller makes, rotates and deletes a token of these rights: all of it or nothing.
fn handles(caller: &Grant, wanted: Grant, purpose: Purpose) -> bool {
    let mut world = World::new();
    let ttl_ms = (purpose != Purpose::Bearer).then_some(60_000);
    let request = |name: &str| Action::CreateToken(token(name, purpose, wanted.clone(), ttl_ms));
    world.run(admin(), request("there")).unwrap();
    let before = world.state.digest();
    let rotate = Action::RotateToken {
        name: name("there"),
        secret_hash: secret_hash("another"),
        expect: Expect::Anything,
    };
    let codes = [request("new"), rotate, delete(Kind::Token, "there")]
        .map(|action| world.code(Terms::of(caller.clone()), action));
    assert!(codes.iter().all(|code| *code == codes[0]), "{codes:?}");
    if codes[0].is_some() {
        assert_eq!(codes[0], FORBIDDEN);
        assert_eq!(world.state.digest(), before);
    }
    codes[0].is_none()
}

#[test]
fn red_team_an_administrator_of_a_realm_makes_wider_tokens() {
    let prod = of_realms(Role::Admin, &["prod"]);
    let shared = |grant: Grant| Grant { allow_shared: true, ..grant };
    let bearer = |wanted: Grant| handles(&prod, wanted, Purpose::Bearer);
    for role in [Role::Viewer, Role::Operator, Role::Admin] {
        assert!(bearer(of_realms(role, &["prod"])), "{role}");
        assert!(!bearer(Grant::of(role)), "{role} of every realm");
        assert!(!bearer(of_realms(role, &["prod", "test"])), "{role} of two realms");
        assert!(!bearer(shared(of_realms(role, &["prod"]))), "{role} of what realms share");
    }
    assert!(bearer(node_of("prod")));
    assert!(!bearer(node_of("test")));
    assert!(handles(&prod, of_realms(Role::Node, &["prod"]), Purpose::Join));
    assert!(handles(&prod, node_of("prod"), Purpose::Join));
    assert!(!handles(&prod, Grant::of(Role::Node), Purpose::Join));
    assert!(
        !handles(&prod, of_realms(Role::Node, &["prod"]), Purpose::JoinMember),
        "a member is the cluster"
    );
    assert!(handles(&shared(prod.clone()), shared(of_realms(Role::Operator, &["prod"])), Purpose::Bearer));
}

#[test]
fn red_team_an_administrator_of_labels_makes_wider_tokens() {
    let web = of_labels(Role::Admin, "team in (web, shop)");
    for (labels, is_within) in [
        ("team=web", true),
        ("team in (shop)", true),
        ("team=web,zone=a", true),
        ("team=db", false),
        ("team", false),
        ("team in (web,db)", false),
        ("zone=a", false),
        ("", false),
    ] {
        assert_eq!(handles(&web, of_labels(Role::Operator, labels), Purpose::Bearer), is_within, "{labels}");
    }
}

#[test]
fn administrators_without_limits_make_every_token() {
    for grant in [Grant::of(Role::Admin), of_labels(Role::Operator, "team=web"), node_of("prod")] {
        assert!(handles(&Grant::of(Role::Admin), grant, Purpose::Bearer));
    }
    assert!(handles(&Grant::of(Role::Admin), Grant::of(Role::Node), Purpose::JoinMember));
}

#[test]
fn allow_shared_takes_realms() {
    let wanted = Grant { allow_shared: true, ..Grant::of(Role::Operator) };
    let request = Action::CreateToken(token("t", Purpose::Bearer, wanted, None));
    assert_eq!(World::new().code(admin(), request), Some(Code::ConflictingFields));
}
