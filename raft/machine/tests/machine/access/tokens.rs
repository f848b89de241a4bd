//! Tokens: what they allow, how they end, and what can be joined with them.

use ipam_api::Code;
use ipam_api::access::Role;
use ipam_machine::command::{Credential, Expect, Kind, Purpose, Stored, secret_hash};
use ipam_machine::{Action, Answer, Grant, Outcome, Terms};

use crate::access::world::{World, add, admin, delete, network, node_key, token, under_key};

fn joined(outcome: Outcome) -> (bool, Terms) {
    match outcome.unwrap().answer {
        Answer::Stored { created, resource, .. } => match *resource {
            Stored::Token(token) => {
                assert_eq!(token.grant.role, Role::Node);
                let credential = Credential::Token { id: token.meta.id.into() };
                (created, Terms { credential, ..admin() })
            }
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_token_allows_what_its_role_allows() {
    let mut world = World::new();
    let viewer = world.make(token("eve", Purpose::Bearer, Grant::of(Role::Viewer), None));
    let operator = world.make(token("ops", Purpose::Bearer, Grant::of(Role::Operator), None));
    assert_eq!(world.code(viewer, network("blue")), Some(Code::Forbidden));
    assert_eq!(world.code(operator, network("blue")), None);
}

#[test]
fn red_team_a_revoked_token_is_worth_nothing_at_once() {
    let mut world = World::new();
    let terms = world.make(token("ops", Purpose::Bearer, Grant::of(Role::Operator), None));
    let keyed = || under_key(terms.clone(), "key", 1);
    assert_eq!(world.code(keyed(), network("blue")), None);
    world.run(admin(), delete(Kind::Token, "ops")).unwrap();
    assert_eq!(world.code(terms.clone(), network("red")), Some(Code::Unauthenticated));
    // Not even for an answer that was kept.
    assert_eq!(world.code(keyed(), network("blue")), Some(Code::Unauthenticated));
    // A namesake made later is another one.
    world.make(token("ops", Purpose::Bearer, Grant::of(Role::Operator), None));
    assert_eq!(world.code(terms, network("red")), Some(Code::Unauthenticated));
}

#[test]
fn red_team_an_expired_token_is_worth_nothing() {
    let mut world = World::new();
    let terms = world.make(token("ops", Purpose::Bearer, Grant::of(Role::Operator), Some(5_000)));
    world.log_time_ms += 4_999;
    assert_eq!(world.code(terms.clone(), network("blue")), None);
    world.log_time_ms += 1;
    assert_eq!(world.code(terms, network("red")), Some(Code::TokenExpired));
}

#[test]
fn a_rotated_token_has_another_secret_and_the_same_rights() {
    let mut world = World::new();
    world.make(token("ops", Purpose::Bearer, Grant::of(Role::Operator), None));
    let (id, _) = world.state.token_by_secret(&secret_hash("ops")).unwrap();
    let rotate = |hash| Action::RotateToken {
        name: "ops".parse().unwrap(),
        secret_hash: hash,
        expect: Expect::Anything,
    };
    world.run(admin(), rotate(secret_hash("new"))).unwrap();
    assert!(world.state.token_by_secret(&secret_hash("ops")).is_none());
    assert_eq!(world.state.token_by_secret(&secret_hash("new")).unwrap().0, id);
    // Two tokens with one secret could not be told apart.
    world.make(token("other", Purpose::Bearer, Grant::of(Role::Viewer), None));
    assert_eq!(world.code(admin(), rotate(secret_hash("other"))), Some(Code::AlreadyExists));
}

#[test]
fn a_node_joins_once_with_a_join_token() {
    let mut world = World::new();
    let join = world.make(token("join", Purpose::Join, Grant::of(Role::Node), Some(60_000)));
    let action =
        |node: &str, secret: &str| Action::Join { node: node_key(node), secret_hash: secret_hash(secret) };
    let (created, n1) = joined(world.run(join.clone(), action("n1", "mine")));
    assert!(created);
    assert_eq!(world.code(n1.clone(), Action::Allocate(add("n1", "pod/web/a", "web"))), None);
    assert_eq!(
        world.code(n1.clone(), Action::Allocate(add("n2", "pod/web/b", "web"))),
        Some(Code::ForeignNode)
    );
    // The answer was lost: the same node with the same secret gets it again.
    let (created, again) = joined(world.run(join.clone(), action("n1", "mine")));
    assert!(!created);
    assert_eq!(again, n1);
}

#[test]
fn red_team_a_join_token_is_replayed() {
    let mut world = World::new();
    let join = world.make(token("join", Purpose::Join, Grant::of(Role::Node), Some(60_000)));
    let action =
        |node: &str, secret: &str| Action::Join { node: node_key(node), secret_hash: secret_hash(secret) };
    joined(world.run(join.clone(), action("n1", "mine")));
    assert_eq!(world.code(join.clone(), action("n1", "stolen")), Some(Code::Unauthenticated));
    assert_eq!(world.code(join.clone(), action("n2", "mine")), Some(Code::Unauthenticated));
    // It is good for nothing else, used or not.
    assert_eq!(world.code(join.clone(), network("blue")), Some(Code::Forbidden));
    assert_eq!(
        world.code(join.clone(), Action::Allocate(add("n1", "pod/web/a", "web"))),
        Some(Code::Forbidden)
    );
    world.log_time_ms += 60_000;
    assert_eq!(world.code(join, action("n1", "mine")), Some(Code::TokenExpired));
}

#[test]
fn red_team_a_join_token_is_used_for_another_node_or_realm() {
    let mut world = World::new();
    let bound = Grant { node: Some(node_key("n1")), ..Grant::of(Role::Node) };
    let bound = world.make(token("bound", Purpose::Join, bound, Some(60_000)));
    let realm = Grant { realms: vec!["prod".parse().unwrap()], ..Grant::of(Role::Node) };
    let realm = world.make(token("realm", Purpose::Join, realm, Some(60_000)));
    let action = Action::Join { node: node_key("n2"), secret_hash: [5; 32] };
    assert_eq!(world.code(bound, action.clone()), Some(Code::ForeignNode));
    assert_eq!(world.code(realm, action), Some(Code::ForeignNode));
}

#[test]
fn red_team_a_caller_joins_without_a_join_token() {
    let mut world = World::new();
    let action = Action::Join { node: node_key("n1"), secret_hash: [5; 32] };
    let bearer = world.make(token("ops", Purpose::Bearer, Grant::of(Role::Operator), None));
    assert_eq!(world.code(bearer, action.clone()), Some(Code::Unauthenticated));
    assert_eq!(world.code(crate::access::world::node("n1"), action.clone()), Some(Code::Unauthenticated));
    assert_eq!(world.code(admin(), action), Some(Code::Unauthenticated));
}

#[test]
fn an_impossible_token_is_refused() {
    let mut world = World::new();
    let bearer = |name: &str, grant: Grant, ttl_ms| token(name, Purpose::Bearer, grant, ttl_ms);
    let node = || Grant::of_node(node_key("n1"));
    let many = Grant {
        realms: (0..65).map(|number| format!("r{number}").parse().unwrap()).collect(),
        ..Grant::of(Role::Viewer)
    };
    for (request, code) in [
        (bearer("anonymous", Grant::of(Role::Viewer), None), Code::InvalidField),
        (bearer("t", Grant::of(Role::Viewer), Some(0)), Code::InvalidField),
        (bearer("t", Grant::of(Role::Viewer), Some(u64::MAX)), Code::LimitExceeded),
        (bearer("t", Grant::of(Role::Node), None), Code::ConflictingFields),
        (bearer("t", Grant { role: Role::Admin, ..node() }, None), Code::ConflictingFields),
        (bearer("t", many, None), Code::LimitExceeded),
        (token("t", Purpose::Join, Grant::of(Role::Node), None), Code::ConflictingFields),
        (token("t", Purpose::Join, Grant::of(Role::Admin), Some(9)), Code::ConflictingFields),
        (token("t", Purpose::Join, node(), Some(40 * 24 * 3_600_000)), Code::LimitExceeded),
    ] {
        assert_eq!(world.code(admin(), Action::CreateToken(request.clone())), Some(code), "{request:?}");
    }
    world.make(bearer("t", Grant::of(Role::Viewer), None));
    let again = Action::CreateToken(bearer("t", Grant::of(Role::Viewer), None));
    assert_eq!(world.code(admin(), again), Some(Code::AlreadyExists));
}
