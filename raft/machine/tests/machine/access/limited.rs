//! At random: limited tokens among administrators. A model attributes each row to the token or to others.

use ipam_api::access::Role;
use ipam_machine::command::{Metadata, OnLinks, Text};
use ipam_machine::{Action, Answer, Applied, At, Command, Grant, State, Terms, apply};
use proptest::prelude::*;

use crate::access::world::{admin, name};
use crate::support::random::{Dice, Draw};

/// Rows that are none of a token's, as text: they stay as they are.
fn of_others(state: &State, grant: &Grant) -> Vec<String> {
    let fits = |metadata: &Metadata| {
        !grant.labels.is_empty() && metadata.labels.get("team").is_some_and(|team| &**team == "web")
    };
    let mut rows = Vec::new();
    rows.extend(state.networks.iter().filter(|(_, row)| !fits(&row.spec.metadata)).map(text));
    rows.extend(state.subnets.iter().filter(|(_, row)| !fits(&row.spec.metadata)).map(text));
    rows.extend(state.reservations.iter().filter(|(_, row)| !fits(&row.spec.metadata)).map(text));
    for (id, row) in state.pools.iter().filter(|(_, row)| !fits(&row.spec.metadata)) {
        // An automatic pool follows from its application's requests, and a terminating one goes with its last
        // address.
        if row.spec.terminating || (row.automatic.is_some() && grant.labels.is_empty()) {
            continue;
        }
        rows.push(text((id, row)));
        rows.extend(state.space(id).map(|space| format!("{id} offers {:?}", space.offered)));
    }
    let is_ours = |realm: &str| grant.realms.iter().any(|own| own.as_str() == realm);
    let nodes =
        state.nodes.iter().map(|(id, row)| (id.get(), &row.spec.realm, &row.spec.metadata, text((id, row))));
    let namespaces = state
        .namespaces
        .iter()
        .map(|(id, row)| (id.get(), &row.spec.realm, &row.spec.metadata, text((id, row))));
    let policies = state
        .host_policies
        .iter()
        .map(|(id, row)| (id.get(), &row.spec.realm, &row.spec.metadata, text((id, row))));
    for (_, realm, metadata, row) in nodes.chain(namespaces).chain(policies) {
        if !fits(metadata) && !is_ours(realm.as_str()) {
            rows.push(row);
        }
    }
    for (id, row) in state.allocations.iter() {
        let (pool, endpoint) =
            (state.pools.get(row.pool).unwrap(), state.endpoints.get(row.endpoint).unwrap());
        if !fits(&pool.spec.metadata) && !is_ours(endpoint.key.realm.as_str()) {
            rows.push(format!("{id} has {} of {}", row.address, endpoint.key));
        }
    }
    rows
}

fn text<Id: std::fmt::Debug, Row: std::fmt::Debug>((id, row): (Id, Row)) -> String {
    format!("{id:?} {row:?}")
}

/// Labels what an action writes, and lets nothing wait: a claim is served by its own rights.
fn prepared(action: &mut Action, dice: &mut Dice) {
    let team = dice.pick(&["web", "web", "db"]);
    let label = |metadata: &mut Metadata| {
        metadata.labels.insert(Text::given("team"), Text::given(team));
    };
    match action {
        Action::PutNetwork(put) => label(&mut put.spec.metadata),
        Action::PutSubnet(put) => label(&mut put.spec.metadata),
        Action::PutPool(put) => label(&mut put.spec.metadata),
        Action::PutReservation(put) => label(&mut put.spec.metadata),
        Action::PutNode(put) => label(&mut put.spec.metadata),
        Action::PutNamespace(put) => label(&mut put.spec.metadata),
        Action::PutHostPolicy(put) => label(&mut put.spec.metadata),
        Action::Allocate(request) | Action::AllocateOnLinks(OnLinks(request)) => {
            request.options.wait = false;
        }
        Action::Transaction(all) => all.steps.iter_mut().for_each(|step| prepared(step, dice)),
        _ => {}
    }
}

fn run(seeds: Vec<u64>, grant: &Grant) -> Result<u64, TestCaseError> {
    let mut state = State::new();
    let (mut issued, mut asked, mut accepted) = (Vec::new(), Vec::new(), 0);
    for (index, seed) in (0..).zip(seeds) {
        let now = state.log_time_ms();
        let mut draw = Draw { dice: Dice(seed), state: &state, issued: &issued, asked: &asked, index };
        let at = At { log_time_ms: draw.log_time_ms(now), wall_ms: now, leadership: 0 };
        let mut command = draw.command(now);
        prepared(&mut command.action, &mut draw.dice);
        let is_limited = index > 20 && draw.dice.chance(60);
        command.origin.not_after_ms = None;
        // Time ends it, no caller.
        let expire = Command { terms: admin(), action: Action::Expire, ..command.clone() };
        prop_assert!(apply(&mut state, at, &expire).0.is_ok());
        let before = is_limited.then(|| of_others(&state, grant));
        if is_limited {
            command.terms = Terms::of(grant.clone());
        }
        let (outcome, _) = apply(&mut state, at, &command);
        if let Ok(Applied { answer: Answer::Allocated { interfaces, .. }, .. }) = &outcome {
            issued
                .extend(interfaces.iter().flat_map(|one| &one.addresses).map(|given| given.allocation.get()));
        }
        if let Action::Allocate(request) | Action::AllocateOnLinks(OnLinks(request)) = &command.action {
            asked.push(request.clone());
        }
        if let Some(before) = before {
            accepted += u64::from(outcome.is_ok());
            let after = of_others(&state, grant);
            let gone: Vec<_> = before.iter().filter(|row| !after.contains(row)).collect();
            let new: Vec<_> = after.iter().filter(|row| !before.contains(row)).collect();
            let is_same = gone.is_empty() && new.is_empty();
            prop_assert!(is_same, "{:?}: {outcome:?}\ngone: {gone:#?}\nnew: {new:#?}", command.action);
        }
    }
    Ok(accepted)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn a_token_of_labels_leaves_alone_what_has_others(seeds in prop::collection::vec(any::<u64>(), 60..160)) {
        let grant = Grant { labels: "team=web".parse().unwrap(), ..Grant::of(Role::Operator) };
        run(seeds, &grant)?;
    }

    #[test]
    fn a_token_of_a_realm_leaves_alone_what_is_shared_and_of_others(
        seeds in prop::collection::vec(any::<u64>(), 60..160),
    ) {
        let grant = Grant { realms: vec![name("default")], ..Grant::of(Role::Operator) };
        run(seeds, &grant)?;
    }
}

#[test]
fn many_random_requests_of_limited_tokens_are_accepted() {
    let mut dice = Dice(7);
    let seeds: Vec<u64> = (0..2_000).map(|_| dice.below(u64::MAX)).collect();
    for grant in [
        Grant { labels: "team=web".parse().unwrap(), ..Grant::of(Role::Operator) },
        Grant { realms: vec![name("default")], ..Grant::of(Role::Operator) },
    ] {
        let accepted = run(seeds.clone(), &grant).unwrap();
        assert!(accepted > 100, "{accepted} of {grant:?}");
    }
}
