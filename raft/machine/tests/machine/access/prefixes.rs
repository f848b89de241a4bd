//! Prefixes that a limited token may change: those of its realms, in pools with its labels.

use ipam_api::Code;
use ipam_api::access::Role;
use ipam_machine::command::{
    Credential, Delegate, Kind, PrefixLevel, PrefixSource, Purpose, SetPrefixes, Transaction,
};
use ipam_machine::event::WaitReason;
use ipam_machine::id::PrefixClaimId;
use ipam_machine::{Action, Answer, Grant, Outcome, Terms};

use crate::access::world::{World, admin, delete, name, token, with_labels};

pub(crate) fn delegate(from: PrefixSource, realm: &str, owner: &str, length: u8) -> Action {
    let level =
        PrefixLevel { owner: owner.parse().unwrap(), length: Some(length), keep_edges: false, ttl_ms: None };
    Action::Delegate(Delegate { from, realm: name(realm), levels: vec![level] })
}

pub(crate) fn from_pool(owner: &str, length: u8) -> Action {
    delegate(PrefixSource::Pool(name("web")), "default", owner, length)
}

fn set(from: PrefixSource, realm: &str, owners: &[&str]) -> Action {
    let level = |owner: &&str| PrefixLevel {
        owner: owner.parse().unwrap(),
        length: Some(31),
        keep_edges: false,
        ttl_ms: None,
    };
    Action::SetPrefixes(SetPrefixes {
        from,
        realm: name(realm),
        prefixes: owners.iter().map(level).collect(),
    })
}

/// The id of what was asked for.
pub(crate) fn delegated(world: &mut World, action: Action) -> u64 {
    match world.run(admin(), action).unwrap().answer {
        Answer::Delegated { prefixes, .. } => prefixes.last().unwrap().id.get(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_token_of_a_realm_has_prefixes_of_that_realm_only() {
    let mut world = World::new();
    let ours = || Terms::of(Grant { realms: vec![name("default")], ..Grant::of(Role::Operator) });
    let web = || PrefixSource::Pool(name("web"));
    let theirs = delegated(&mut world, delegate(web(), "prod", "n1", 31));
    assert_eq!(world.code(ours(), delegate(web(), "prod", "n1", 31)), Some(Code::Forbidden));
    let below = delegate(PrefixSource::Prefix(theirs.into()), "default", "n1", 32);
    assert_eq!(world.code(ours(), below), Some(Code::Forbidden), "it is cut from another realm's");
    assert_eq!(world.code(ours(), Action::ReleasePrefix { id: theirs.into() }), Some(Code::Forbidden));
    let own = delegated(&mut world, from_pool("n1", 31));
    assert_eq!(world.code(ours(), delegate(PrefixSource::Prefix(own.into()), "default", "c1", 32)), None);
    assert_eq!(world.code(ours(), Action::ReleasePrefix { id: own.into() }), None);
}

#[test]
fn a_token_of_labels_has_prefixes_of_pools_that_have_them() {
    let mut world = World::new();
    let db = || with_labels(Role::Operator, "team=db");
    let id = delegated(&mut world, from_pool("n1", 31));
    // Not even the answer that there is one already.
    assert_eq!(world.code(db(), from_pool("n1", 31)), Some(Code::Forbidden));
    assert_eq!(world.code(db(), from_pool("n2", 31)), Some(Code::Forbidden));
    assert_eq!(
        world.code(db(), delegate(PrefixSource::Prefix(id.into()), "default", "c", 32)),
        Some(Code::Forbidden)
    );
    assert_eq!(world.code(db(), Action::ReleasePrefix { id: id.into() }), Some(Code::Forbidden));
    let own = delegate(PrefixSource::Pool(name("db")), "default", "n1", 31);
    assert_eq!(world.code(db(), own), None);
}

#[test]
fn a_list_ends_prefixes_within_the_rights_of_the_token_only() {
    let mut world = World::new();
    let ours = || Terms::of(Grant { realms: vec![name("default")], ..Grant::of(Role::Operator) });
    let web = || PrefixSource::Pool(name("web"));
    let theirs = delegated(&mut world, delegate(web(), "prod", "n1", 31));
    let refused = |world: &mut World, terms: Terms, action: Action| {
        let before = world.state.digest();
        assert_eq!(world.code(terms.clone(), action.clone()), Some(Code::Forbidden), "{action:?}");
        let wrapped = Transaction { preconditions: Vec::new(), steps: vec![action] };
        assert_eq!(world.code(terms, Action::Transaction(wrapped)), Some(Code::Forbidden));
        assert_eq!(world.state.digest(), before);
    };
    refused(&mut world, ours(), set(web(), "prod", &[]));
    refused(&mut world, ours(), set(PrefixSource::Prefix(theirs.into()), "default", &[]));
    refused(&mut world, with_labels(Role::Operator, "team=db"), set(web(), "default", &[]));
    refused(&mut world, with_labels(Role::Operator, "team=db"), set(web(), "default", &["n1"]));
    let of_node = Grant::of_node(crate::access::world::node_key("n1"));
    refused(&mut world, Terms::of(of_node), set(web(), "default", &[]));
    let own = delegated(&mut world, from_pool("n1", 31));
    assert_eq!(world.code(ours(), set(web(), "default", &["n2"])), None);
    assert!(
        world.state.prefixes.get(own.into()).is_none() && world.state.prefixes.get(theirs.into()).is_some()
    );
    assert_eq!(world.code(with_labels(Role::Operator, "team=web"), set(web(), "default", &[])), None);
}

#[test]
fn a_claim_is_served_with_the_present_rights_of_its_token() {
    let mut world = World::new();
    let wait = |owner| match from_pool(owner, 31) {
        Action::Delegate(request) => Action::DelegateOrWait(request),
        other => panic!("{other:?}"),
    };
    // All blocks of the pool.
    let mut held = Vec::new();
    while world.code(admin(), from_pool(&format!("n{}", held.len()), 31)).is_none() {
        held.push(delegated(&mut world, from_pool(&format!("n{}", held.len()), 31)));
    }
    let operator = Grant { realms: vec![name("default")], ..Grant::of(Role::Operator) };
    let ci = token("ci", Purpose::Bearer, operator, None);
    let made = world.run(admin(), Action::CreateToken(ci)).unwrap();
    let ours = || Terms { credential: Credential::Token { id: made.revision.into() }, ..admin() };
    let waits = |outcome: Outcome| match outcome.unwrap().answer {
        Answer::PrefixPending { pending, .. } => pending.claim,
        other => panic!("{other:?}"),
    };
    let first = waits(world.run(ours(), wait("waits")));
    let theirs = match wait("theirs") {
        Action::DelegateOrWait(request) => {
            Action::DelegateOrWait(Delegate { realm: name("prod"), ..request })
        }
        other => panic!("{other:?}"),
    };
    let theirs = waits(world.run(admin(), theirs));
    let withdraw = |id: PrefixClaimId| Action::ReleasePrefix { id: id.get().into() };
    assert_eq!(world.code(ours(), withdraw(theirs)), Some(Code::Forbidden), "a claim of another realm");
    world.run(admin(), delete(Kind::Token, "ci")).unwrap();
    world.run(admin(), Action::ReleasePrefix { id: held[0].into() }).unwrap();
    let claim = world.state.prefix_claims.get(first).unwrap();
    assert_eq!((claim.why, claim.missing.as_ref()), (WaitReason::AllocationFailed, None));
    assert!(world.state.prefix_claims.get(theirs).is_none(), "the next claim is served");
}
