//! Random commands on the machine and on a naive model of it, side by side.
//!
//! More of it by hand: `PROPTEST_CASES=20000 cargo test -p ipam-machine model`.

mod agree;
mod map;
mod naive;
mod probed;

use std::collections::{BTreeMap, VecDeque};

use crate::support::explained;
use crate::support::random::{Dice, Draw};
use agree::{Follower, agree};
use ipam_api::Code;
use ipam_api::limits::ROW_BYTES_MAX;
use ipam_api::name::Name;
use ipam_api::resource::Strategy;
use ipam_machine::batch::{Batch, Leadership, Opened};
use ipam_machine::command::{Allocate, Kind, ListedPrefix, OnLinks};
use ipam_machine::event::Holding;
use ipam_machine::explain::explain;
use ipam_machine::{
    Action, Answer, At, Command, Event, EventKind, Outcome, RowKey, State, apply, dry_run, fixtures,
};
use map::maps_agree;
use naive::{Model, Reply, skipped};
use probed::Probed;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::cell::RefCell;

/// Runs in the time of a coffee; `PROPTEST_CASES` says otherwise.
const CASES: u32 = 150;
/// Commands of one case, at most.
const COMMANDS: usize = 120;
/// Log time after the start of a leadership in which no lease ends; exceeds most random TTLs.
const GRACE_MS: u64 = 500;

/// The machine, the model, and a follower of the events.
struct Side {
    state: State,
    /// Rebuilt from rows now and then, and used from then on.
    twin: State,
    model: Model,
    follower: Follower,
    rows: BTreeMap<RowKey, Vec<u8>>,
    issued: Vec<u64>,
    asked: Vec<Allocate>,
    log: Vec<(At, Batch)>,
    /// Draws the log time of the next command.
    log_time: fn(&mut Draw<'_>, u64) -> u64,
    probed: Probed,
}

impl Side {
    fn new() -> Self {
        let state = State::new();
        let mut model = Model::default();
        let name = Name::default_name();
        model.networks.insert(name.clone(), fixtures::network(name.as_str()));
        let rows = state.rows().collect();
        let mut side = Self {
            twin: state.clone(),
            state,
            model,
            follower: Follower::default(),
            rows,
            issued: Vec::new(),
            asked: Vec::new(),
            log: Vec::new(),
            log_time: |draw, now| draw.log_time_ms(now),
            probed: Probed::default(),
        };
        side.note_revisions();
        side
    }

    /// Applies one random command, with the action that `action` draws, if any.
    fn step(&mut self, index: u64, seed: u64, action: Option<fn(&mut Draw<'_>) -> Action>) {
        let now = self.state.log_time_ms();
        let (dice, state) = (Dice(seed), &self.state);
        let mut draw = Draw { dice, state, issued: &self.issued, asked: &self.asked, index };
        let log_time_ms = (self.log_time)(&mut draw, now);
        let leadership = self.model.leadership.0;
        let (begins, is_late) = (draw.dice.chance(1), draw.dice.chance(2));
        // An entry of the leadership before this one reaches the log late.
        let at = At {
            log_time_ms,
            wall_ms: 1 + index,
            leadership: leadership - u64::from(is_late && leadership > 0),
        };
        let mut command = draw.command(now);
        if let Some(action) = action {
            command.action = action(&mut draw);
        }
        let rebuild = draw.dice.chance(10);
        if let Action::Allocate(request) | Action::AllocateOnLinks(OnLinks(request)) = &command.action {
            self.asked.push(request.clone());
        }
        if begins {
            self.lead(leadership + 1);
        } else {
            self.check(at, &command);
        }
        if rebuild {
            let mut rows: Vec<_> = self.state.rows().collect();
            rows.reverse();
            self.twin = State::from_rows(rows).unwrap();
            assert_eq!(self.twin.digest(), self.state.digest(), "rebuilt from rows");
            // Nothing that is derived outlives its rows.
            assert_eq!(self.state.index_differences(&self.twin), [""; 0], "rebuilt from rows");
        }
    }

    fn lead(&mut self, number: u64) {
        self.state.begin_leadership(number, GRACE_MS);
        self.twin.begin_leadership(number, GRACE_MS);
        self.model.lead(number, GRACE_MS);
        agree(&self.state, &self.model);
        let opened = Opened {
            leadership: Leadership::Begins { grace_ms: GRACE_MS },
            log_time_ms: 0,
            wall_ms: 0,
            commands: Vec::new(),
        };
        let at = At { leadership: number, ..At::default() };
        self.log.push((at, Batch::seal(&opened).unwrap()));
    }

    fn check(&mut self, at: At, command: &Command) {
        if at.leadership != self.state.leadership() {
            let before = (self.state.digest(), self.state.log_time_ms());
            let (outcome, events) = apply(&mut self.state, at, command);
            assert_eq!(heard(&outcome), self.model.apply(at, command));
            assert!(events.is_empty());
            assert_eq!((self.state.digest(), self.state.log_time_ms()), before, "an entry that came late");
            return;
        }
        let before = self.state.clone();
        let mut waited = self.state.clone();
        let expire = Command { action: Action::Expire, ..command.clone() };
        let (_, passed) = apply(&mut waited, at, &expire);
        let mut model_waited = self.model.clone();
        let _ = model_waited.apply(at, &expire);

        let rehearsed = dry_run(&self.state, at, command);
        let explanation = explain(&self.state, at, command);
        assert_eq!(self.state.digest(), before.digest(), "a dry run changes nothing");
        let (outcome, events) = apply(&mut self.state, at, command);
        explained::agrees(&explanation, &outcome, command);
        if at.leadership == model_waited.leadership.0 {
            skipped::counts(&explanation, &model_waited, command);
        }
        assert_eq!(rehearsed, (outcome.clone(), events.clone()), "a dry run says the same");
        assert_eq!(apply(&mut self.twin, at, command), (outcome.clone(), events.clone()), "rebuilt");
        assert_eq!(self.twin.digest(), self.state.digest(), "rebuilt from rows earlier");

        self.model.told = made(&events);
        let expected = self.model.apply(at, command);
        assert!(self.model.told.is_empty(), "pools that the model knows nothing of: {command:?}");
        assert_eq!(heard(&outcome), expected, "{command:?}\n{outcome:?}");
        self.check_inventory(command, &outcome);
        // A transaction may do and undo: that has happened, and its events say so.
        // The one refusal that leaves something: the memory of its boot.
        let is_refused = expected.is_err() && expected != Err(Code::BootUnconfirmed);
        if is_refused || (self.model == model_waited && events.len() == passed.len()) {
            assert_eq!(self.state.digest(), waited.digest(), "it changed something: {command:?}");
        }
        self.probed.count(&before, &self.state, &events);
        self.note_ids(&events, before.revision());
        self.check_revisions(&before, &outcome);
        self.check_rows(&before);
        drop(self.state.take_journaled());
        if self.log.len().is_multiple_of(8) {
            self.check_bounds();
        }
        agree(&self.state, &self.model);
        // Every map at every third step: they cost more than all the rest.
        if self.log.len().is_multiple_of(3) {
            maps_agree(&self.state, &self.model);
        }
        self.follower.hear(&events);
        self.follower.agree(&self.state);
        let commands = vec![command.clone()];
        let opened = Opened {
            leadership: Leadership::Number(at.leadership),
            log_time_ms: at.log_time_ms,
            wall_ms: at.wall_ms,
            commands,
        };
        self.log.push((at, Batch::seal(&opened).unwrap()));
    }

    /// The answer to a heartbeat has the inventory of the state, which `agree` compares with the model's.
    fn check_inventory(&self, command: &Command, outcome: &Outcome) {
        if let Action::Heartbeat(heartbeat) = &command.action
            && let Ok(applied) = outcome
        {
            let Answer::Heard { inventory, .. } = &applied.answer else { panic!("{:?}", applied.answer) };
            assert_eq!(*inventory, self.state.inventory(&heartbeat.node), "{command:?}");
        }
    }

    /// Gives the model the ids that it can't know, and sees that they are new.
    fn note_ids(&mut self, events: &[Event], revision_before: u64) {
        let mut given: Vec<u64> = Vec::new();
        for event in events {
            if let EventKind::Allocated(Holding { allocation, .. }) = &event.kind {
                assert!(
                    *allocation > revision_before.into() && *allocation <= event.revision.into(),
                    "an id came back"
                );
                given.push((*allocation).get());
            }
        }
        assert!(given.is_sorted());
        // What a transaction gave and took again has no place any more.
        let lasting = given.iter().filter(|id| self.state.allocations.get((**id).into()).is_some());
        for (held, id) in self.model.held.iter_mut().filter(|one| one.id == 0).zip(lasting) {
            held.id = *id;
        }
        self.issued.extend(given);
        let delegated = events.iter().filter_map(|event| match &event.kind {
            EventKind::Delegated { of, .. } => Some(of.prefix),
            _ => None,
        });
        let delegated: Vec<u64> = delegated.map(u64::from).collect();
        assert!(delegated.iter().all(|id| *id > revision_before), "an id came back");
        let lasting = delegated.iter().filter(|id| self.state.prefixes.get((**id).into()).is_some());
        for (block, id) in self.model.blocks.iter_mut().filter(|one| one.id == 0).zip(lasting) {
            block.id = *id;
        }
        for (claim, (id, _)) in self.model.prefix_claims.iter_mut().zip(self.state.prefix_claims.iter()) {
            claim.id = id.get();
        }
        self.note_revisions();
    }

    fn note_revisions(&mut self) {
        self.model.revisions.clear();
        for kind in [
            Kind::Network,
            Kind::Subnet,
            Kind::Pool,
            Kind::Reservation,
            Kind::Node,
            Kind::Namespace,
            Kind::HostPolicy,
        ] {
            for (name, _) in self.state.names(kind, None) {
                let revision = self.state.meta(kind, name).unwrap().revision;
                self.model.revisions.insert((kind, name.clone()), revision);
            }
        }
        let subnets = self.state.subnets.iter().map(|(id, row)| (row.spec.name.clone(), id.get()));
        self.model.subnet_ids = subnets.collect();
    }

    /// A resource's revision moves with its spec, and with nothing else.
    fn check_revisions(&self, before: &State, outcome: &Outcome) {
        assert!(self.state.revision() >= before.revision());
        if let Ok(applied) = outcome {
            assert_eq!(applied.revision, self.state.revision());
        }
        for (id, pool) in before.pools.iter() {
            let Some(now) = self.state.pools.get(id) else { continue };
            assert_eq!(now.spec == pool.spec, now.meta.revision == pool.meta.revision);
            assert_eq!((now.meta.id.into(), now.meta.created_wall_ms), (id, pool.meta.created_wall_ms));
        }
        for (id, subnet) in before.subnets.iter() {
            let Some(now) = self.state.subnets.get(id) else { continue };
            assert_eq!(now.spec == subnet.spec, now.meta.revision == subnet.meta.revision);
        }
    }

    /// The touched rows suffice to keep the stored rows current, and the revision identifies the state.
    fn check_rows(&mut self, before: &State) {
        let earlier = self.rows.clone();
        for key in self.state.take_touched() {
            match self.state.row(key) {
                Some(bytes) => self.rows.insert(key, bytes),
                None => self.rows.remove(&key),
            };
        }
        let now: BTreeMap<RowKey, Vec<u8>> = self.state.rows().collect();
        assert_eq!(self.rows, now, "rows kept by what was touched");
        let without_header = |rows: &BTreeMap<RowKey, Vec<u8>>| {
            rows.iter().filter(|(key, _)| key.table != 0).map(|(k, v)| (*k, v.clone())).collect::<Vec<_>>()
        };
        if without_header(&earlier) != without_header(&now) {
            assert!(self.state.revision() > before.revision(), "two states have one revision");
        }
    }

    /// Bounds of every row.
    fn check_bounds(&self) {
        for (key, row) in &self.rows {
            assert!(row.len() <= ROW_BYTES_MAX, "row {key:?} has {} bytes", row.len());
        }
    }

    /// The log from the beginning gives the same state.
    fn replay(&self) {
        let mut state = State::new();
        for (at, batch) in &self.log {
            let opened = batch.open().unwrap();
            if let Leadership::Begins { grace_ms } = opened.leadership {
                state.begin_leadership(at.leadership, grace_ms);
            }
            for command in opened.commands {
                let _ = apply(&mut state, *at, &command);
            }
        }
        assert_eq!(state.digest(), self.state.digest(), "replayed");
        assert!(state.rows().eq(self.state.rows()));
        // And a snapshot from before later changes is not touched by them: the clone is a state of its own.
        assert_eq!(self.state.clone().digest(), State::from_rows(self.state.rows()).unwrap().digest());
    }
}

/// Pools that a request made, in this order.
fn made(events: &[Event]) -> VecDeque<Name> {
    let made = events.iter().filter_map(|event| match &event.kind {
        EventKind::Created { kind: Kind::Pool, name } => {
            name.name().filter(|name| name.as_str().starts_with("auto"))
        }
        _ => None,
    });
    made.collect()
}

fn heard(outcome: &Outcome) -> Result<Reply, Code> {
    outcome.as_ref().map(|applied| said(&applied.answer)).map_err(|refusal| refusal.code())
}

fn said(answer: &Answer) -> Reply {
    match answer {
        Answer::Stored { created, .. } => Reply::Stored { created: *created },
        Answer::Gone => Reply::Gone,
        Answer::Draining { held } => Reply::Draining(*held),
        Answer::Released { late: true, .. } => Reply::Late,
        Answer::Released { addresses, more: _, late: _ } => Reply::Released(addresses.clone()),
        Answer::Expired { rows } => Reply::Expired(*rows),
        Answer::Trimmed { .. } | Answer::Sealed { .. } => {
            panic!("the model has no journal; tests/journal.rs has")
        }
        Answer::Level { .. } => panic!("the model has one level; the machine's own tests have more"),
        Answer::Confirmed { .. } => panic!("the model restores nothing; tests/epoch.rs does"),
        Answer::Pending(pending) => Reply::Pending { repeated: pending.repeated, why: pending.why },
        Answer::PrefixPending { repeated, pending } => {
            Reply::Pending { repeated: *repeated, why: pending.why }
        }
        Answer::Renewed { leases, more: _ } => {
            Reply::Renewed(leases.iter().map(|one| (one.address, one.lease.until_ms)).collect())
        }
        Answer::Members { .. } => panic!("the model has no members; tests/members.rs has"),
        Answer::Delegated { repeated, prefixes } => {
            Reply::Delegated { repeated: *repeated, cidrs: prefixes.iter().map(|one| one.cidr).collect() }
        }
        Answer::PrefixReleased { cidrs, ending } => {
            Reply::TakenBack { cidrs: cidrs.clone(), ending: *ending }
        }
        Answer::Heard { boot, inventory } => {
            Reply::Heard { boot: boot.clone(), attachments: inventory.attachments() }
        }
        Answer::OrphansReleased { addresses, stale } => {
            Reply::OrphansReleased { addresses: addresses.clone(), stale: *stale }
        }
        Answer::Probed { recorded, refused } => Reply::Probed { recorded: *recorded, refused: *refused },
        Answer::Reclaimed { addresses, stale } => {
            Reply::Reclaimed { addresses: addresses.clone(), stale: *stale }
        }
        Answer::PodsReported => Reply::PodsReported,
        Answer::PrefixesSet { prefixes, released, ending } => Reply::PrefixesSet {
            prefixes: prefixes
                .iter()
                .map(|one| match one {
                    ListedPrefix::Delegated(given) => Ok(given.cidr),
                    ListedPrefix::Waiting(pending) => Err(pending.why),
                })
                .collect(),
            released: released.iter().map(|one| (one.owner.clone(), one.cidr)).collect(),
            ending: *ending,
        },
        Answer::AllocatedMany(many) => Reply::GivenMany {
            repeated: many.repeated.clone(),
            addresses: many.addresses.iter().map(|given| (given.endpoint, given.address)).collect(),
        },
        Answer::AllocationsReleased { addresses, gone } => {
            let mut addresses = addresses.clone();
            addresses.sort_unstable();
            Reply::ReleasedMany { addresses, gone: *gone }
        }
        Answer::Steps(answers) => Reply::Steps(answers.iter().map(said).collect()),
        Answer::Allocated { repeated, interfaces } => Reply::Given {
            repeated: *repeated,
            addresses: interfaces
                .iter()
                .flat_map(|one| one.addresses.iter().map(|given| (one.name.clone(), given.address.addr())))
                .collect(),
        },
    }
}

fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(CASES)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: cases(),
        max_shrink_iters: 4000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]
    #[test]
    fn the_machine_does_what_a_naive_model_says(seeds in prop::collection::vec(any::<u64>(), 1..COMMANDS)) {
        let mut side = Side::new();
        for (index, seed) in (0..).zip(seeds) {
            side.step(index, seed, None);
        }
        side.replay();
    }

    #[test]
    fn prefixes_cool_as_a_naive_model_says(seeds in prop::collection::vec(any::<u64>(), 1..COMMANDS)) {
        let mut side = Side::new();
        for (index, seed) in (0..).zip(seeds) {
            side.step(index, seed, Some(|draw| draw.prefixes_only()));
        }
        side.replay();
    }

    /// Of addresses drawn at random the model knows nothing; what explains and what does must still agree.
    #[test]
    fn random_explanations_match_the_results(seeds in prop::collection::vec(any::<u64>(), 1..COMMANDS)) {
        let (mut state, mut twin) = (State::new(), State::new());
        let (mut issued, mut asked) = (Vec::new(), Vec::new());
        for (index, seed) in (0..).zip(seeds) {
            let now = state.log_time_ms();
            let (dice, issued_so_far) = (Dice(seed), &issued);
            let mut draw = Draw { dice, state: &state, issued: issued_so_far, asked: &asked, index };
            let at = At { log_time_ms: draw.log_time_ms(now), wall_ms: 1 + index, leadership: 0 };
            let mut command = draw.command(now);
            by_chance(&mut command.action);
            let explanation = explain(&state, at, &command);
            let (outcome, events) = apply(&mut state, at, &command);
            explained::agrees(&explanation, &outcome, &command);
            assert_eq!(apply(&mut twin, at, &command), (outcome, events.clone()), "chance is the log's");
            if let Action::Allocate(request) | Action::AllocateOnLinks(OnLinks(request)) = command.action {
                asked.push(request);
            }
            issued.extend(events.iter().filter_map(|event| match event.kind {
                EventKind::Allocated(Holding { allocation, .. }) => Some(allocation.get()),
                _ => None,
            }));
        }
        assert_eq!(state.digest(), twin.digest());
    }
}

#[test]
fn probes_do_as_a_naive_model_says() {
    let config = Config { cases: cases(), failure_persistence: None, ..Config::default() };
    let probed = RefCell::new(Probed::default());
    let seeds = prop::collection::vec(any::<u64>(), 1..COMMANDS);
    // The same seeds in each run: the counts below don't depend on chance.
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let run = TestRunner::new_with_rng(config, rng).run(&seeds, |seeds| {
        let mut side = Side { log_time: |draw, now| draw.log_time_of_probes(now), ..Side::new() };
        for (index, seed) in (0..).zip(seeds) {
            side.step(index, seed, Some(|draw| draw.probes_only()));
        }
        side.replay();
        probed.borrow_mut().add(&side.probed);
        Ok(())
    });
    run.unwrap();
    probed.borrow().check();
}

/// Lets all pools draw their addresses.
fn by_chance(action: &mut Action) {
    match action {
        Action::PutPool(put) => put.spec.strategy = Strategy::Random,
        Action::Transaction(transaction) => transaction.steps.iter_mut().for_each(by_chance),
        _ => {}
    }
}
