//! Node tokens: lifetime after joining, renewal, and the rights that a join may take over.

use ipam_api::Code;
use ipam_api::access::Role;
use ipam_api::limits::{NODE_TOKEN_DAMPING_MS, NODE_TOKEN_TTL_MS, NODE_TOKENS_MAX};
use ipam_machine::command::{Credential, Kind, Purpose, Stored, secret_hash};
use ipam_machine::model::Token;
use ipam_machine::{Action, Answer, EventKind, Grant, Outcome, Terms};

use crate::access::world::{World, add, admin, delete, node_key, put_in_realm, token, under_key};

fn stored(outcome: Outcome) -> (Token, Terms) {
    let Answer::Stored { resource, .. } = outcome.unwrap().answer else { panic!("no answer with a token") };
    let Stored::Token(token) = *resource else { panic!("no token") };
    let credential = Credential::Token { id: token.meta.id.into() };
    (token, Terms { credential, ..admin() })
}

fn join(node: &str, secret: &str) -> Action {
    Action::Join { node: node_key(node), secret_hash: secret_hash(secret) }
}

/// A join token for any node, for one, or for one whose tokens it replaces.
fn join_token(world: &mut World, name: &str, node: Option<&str>, replaces: bool) -> Terms {
    let grant = Grant { node: node.map(node_key), ..Grant::of(Role::Node) };
    let mut request = token(name, Purpose::Join, grant, Some(60_000));
    request.replaces = replaces;
    world.make(request)
}

fn allocates(world: &mut World, terms: &Terms, container: &str) -> Option<Code> {
    world.code(terms.clone(), Action::Allocate(add("n1", &format!("pod/web/{container}"), "web")))
}

#[test]
fn hardening_5_a_token_made_by_joining_ends_unless_its_node_renews_it() {
    let mut world = World::new();
    let with = join_token(&mut world, "join", None, false);
    let (first, node) = stored(world.run(with, join("n1", "mine")));
    assert_eq!(first.expires_ms, Some(world.log_time_ms + NODE_TOKEN_TTL_MS));
    // Too early to change anything, as often as it is asked.
    let digest = world.state.digest();
    let (same, _) = stored(world.run(node.clone(), Action::RenewToken));
    assert_eq!((same, world.state.digest()), (first.clone(), digest));
    world.log_time_ms += NODE_TOKEN_TTL_MS - 1;
    let (renewed, _) = stored(world.run(under_key(node.clone(), "key", 1), Action::RenewToken));
    assert_eq!(renewed.expires_ms, Some(world.log_time_ms + NODE_TOKEN_TTL_MS));
    assert_eq!((renewed.secret_hash, &renewed.name), (first.secret_hash, &first.name));
    // Again, with and without the key: the same answer.
    for terms in [under_key(node.clone(), "key", 1), node.clone()] {
        let digest = world.state.digest();
        assert_eq!(stored(world.run(terms, Action::RenewToken)).0, renewed);
        assert_eq!(world.state.digest(), digest);
    }
    world.log_time_ms += NODE_TOKEN_DAMPING_MS;
    let (later, _) = stored(world.run(node.clone(), Action::RenewToken));
    assert_eq!(later.expires_ms, Some(world.log_time_ms + NODE_TOKEN_TTL_MS));
    assert_eq!(allocates(&mut world, &node, "a"), None);
    world.log_time_ms += NODE_TOKEN_TTL_MS;
    assert_eq!(allocates(&mut world, &node, "b"), Some(Code::TokenExpired));
    assert_eq!(world.code(node, Action::RenewToken), Some(Code::TokenExpired));
}

#[test]
fn hardening_5_a_renewal_is_an_event_that_says_until_when() {
    let mut world = World::new();
    let with = join_token(&mut world, "join", None, false);
    let (first, node) = stored(world.run(with, join("n1", "mine")));
    world.log_time_ms += NODE_TOKEN_DAMPING_MS;
    let events = world.events(node, Action::RenewToken);
    let [EventKind::Changed { kind: Kind::Token, name, changes }] = events.as_slice() else {
        panic!("{events:?}")
    };
    assert_eq!((name.to_string(), changes.len()), (first.name.to_string(), 1));
    assert_eq!(changes[0].field.as_str(), "expires_at");
}

#[test]
fn hardening_5_no_other_token_is_renewed() {
    let mut world = World::new();
    let made = Grant::of_node(node_key("n1"));
    let made = world.make(token("made", Purpose::Bearer, made, Some(60_000)));
    let ops = world.make(token("ops", Purpose::Bearer, Grant::of(Role::Operator), Some(60_000)));
    let boss = world.make(token("boss", Purpose::Bearer, Grant::of(Role::Admin), None));
    let with = join_token(&mut world, "join", None, false);
    for terms in [made, ops, boss, admin(), with, crate::access::world::node("n1")] {
        assert_eq!(world.code(terms, Action::RenewToken), Some(Code::Forbidden));
    }
}

#[test]
fn red_team_hardening_6_a_join_takes_nothing_over_unless_an_administrator_said_so() {
    let mut world = World::new();
    let first = join_token(&mut world, "first", None, false);
    let (held, victim) = stored(world.run(first.clone(), join("n1", "mine")));
    // Any node's, and the node's own without the word that it replaces.
    let any = join_token(&mut world, "any", None, false);
    let refusal = world.run(any.clone(), join("n1", "stolen")).unwrap_err();
    assert_eq!(refusal.code(), Code::ForeignNode, "{refusal:?}");
    let own = join_token(&mut world, "own", Some("n1"), false);
    let refusal = world.run(own.clone(), join("n1", "stolen")).unwrap_err();
    assert_eq!(refusal.code(), Code::AlreadyExists);
    assert!(refusal.cause.detail().contains(held.name.as_str()), "{}", refusal.cause.detail());
    assert!(refusal.cause.help().unwrap().contains("--replace --node default/n1"));
    assert_eq!(allocates(&mut world, &victim, "a"), None);
    // An administrator's decision replaces it, in one command.
    let replacing = join_token(&mut world, "replacing", Some("n1"), true);
    let (new, node) = stored(world.run(replacing.clone(), join("n1", "new")));
    assert_eq!(allocates(&mut world, &victim, "b"), Some(Code::Unauthenticated));
    assert_eq!(allocates(&mut world, &node, "c"), None);
    // The answer was lost: the same again changes nothing.
    let digest = world.state.digest();
    assert_eq!(stored(world.run(replacing, join("n1", "new"))).0, new);
    assert_eq!(world.state.digest(), digest);
    // The one that was replaced can't be had again with the token that made it.
    assert_eq!(world.code(first, join("n1", "mine")), Some(Code::Unauthenticated));
    // Refused joins have used up nothing: elsewhere the token of any node is good.
    stored(world.run(any, join("n2", "other")));
}

#[test]
fn red_team_hardening_6_a_node_that_is_there_without_a_token_is_not_taken_over_either() {
    let mut world = World::new();
    world.run(admin(), put_in_realm(Kind::Node, "declared")).unwrap();
    world.run(crate::access::world::node("n1"), Action::Allocate(add("n1", "pod/web/a", "web"))).unwrap();
    let any = join_token(&mut world, "any", None, false);
    for node in ["declared", "n1"] {
        assert_eq!(world.code(any.clone(), join(node, "stolen")), Some(Code::ForeignNode), "{node}");
        let own = join_token(&mut world, node, Some(node), false);
        stored(world.run(own, join(node, &format!("{node}-own"))));
    }
    stored(world.run(any, join("fresh", "fresh")));
}

#[test]
fn hardening_6_a_node_whose_token_has_ended_joins_again_under_its_name() {
    let mut world = World::new();
    let with = join_token(&mut world, "join", None, false);
    let (ended, _) = stored(world.run(with, join("n1", "mine")));
    world.log_time_ms += NODE_TOKEN_TTL_MS;
    let any = join_token(&mut world, "any", None, false);
    assert_eq!(world.code(any, join("n1", "stolen")), Some(Code::ForeignNode));
    let own = join_token(&mut world, "own", Some("n1"), false);
    // A secret that was used before is not taken again.
    assert_eq!(world.code(own.clone(), join("n1", "mine")), Some(Code::AlreadyExists));
    let (new, node) = stored(world.run(own, join("n1", "new")));
    assert_ne!(new.name, ended.name);
    assert_eq!(allocates(&mut world, &node, "a"), None);
    // The one that had ended is gone.
    assert_eq!(world.code(admin(), delete(Kind::Token, ended.name.as_str())), Some(Code::NotFound));
}

#[test]
fn hardening_6_only_a_join_token_for_a_named_node_replaces() {
    let mut world = World::new();
    let mut any = token("a", Purpose::Join, Grant::of(Role::Node), Some(60_000));
    let mut bearer = token("b", Purpose::Bearer, Grant::of_node(node_key("n1")), None);
    let mut member = token("c", Purpose::JoinMember, Grant::of_node(node_key("n1")), Some(60_000));
    for request in [&mut any, &mut bearer, &mut member] {
        request.replaces = true;
        assert_eq!(world.code(admin(), Action::CreateToken(request.clone())), Some(Code::ConflictingFields));
    }
}

#[test]
fn hardening_6_a_node_has_few_tokens_and_all_of_them_are_replaced() {
    let mut world = World::new();
    let made = |at: usize| token(&format!("t{at}"), Purpose::Bearer, Grant::of_node(node_key("n1")), None);
    let all: Vec<Terms> = (0..NODE_TOKENS_MAX).map(|at| world.make(made(at))).collect();
    let refused = world.code(admin(), Action::CreateToken(made(NODE_TOKENS_MAX)));
    assert_eq!(refused, Some(Code::LimitExceeded));
    let with = join_token(&mut world, "join", Some("n1"), true);
    let (_, node) = stored(world.run(with, join("n1", "mine")));
    for terms in all {
        assert_eq!(allocates(&mut world, &terms, "a"), Some(Code::Unauthenticated));
    }
    assert_eq!(allocates(&mut world, &node, "a"), None);
    // There is room again.
    world.make(made(NODE_TOKENS_MAX));
}
