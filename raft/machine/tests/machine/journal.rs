//! The journal against the plainest one there is: a list of all events that `apply` returned.

use crate::support::random::{Dice, Draw};
use ipam_api::limits::{
    FIELD_CHANGE_CHARS_MAX, JOURNAL_FRAME_BYTES_MAX, JOURNAL_FRAME_EVENTS_MAX, JOURNAL_SEGMENT_AGE_MS_MAX,
};
use ipam_machine::command::{Answer, Metadata, NetworkSpec, Text, Transaction, Via};
use ipam_machine::event::Holding;
use ipam_machine::journal::{Chain, Frame, link};
use ipam_machine::{
    Action, At, Command, Event, EventId, EventKind, Grant, Journaled, Origin, State, Terms, apply, dry_run,
    fixtures,
};
use proptest::prelude::*;

/// Reader that knows only the segments that the state handed over.
#[derive(Default)]
struct Reader {
    chain: Chain,
    events: Vec<Event>,
    /// Numbers of the sealed segments with their last events.
    sealed: Vec<(u64, EventId)>,
}

impl Reader {
    fn take(&mut self, state: &mut State) {
        self.take_all(state.take_journaled());
        let head = &state.header().journal;
        assert_eq!(head.open.chain, self.chain, "the state vouches for every byte");
        assert_eq!(head.segment, self.sealed.len() as u64 + 1);
    }

    fn take_all(&mut self, journaled: Vec<Journaled>) {
        for journaled in journaled {
            match journaled {
                Journaled::Frame { bytes, first, before } => {
                    assert_eq!(before, self.chain);
                    self.chain = link(&self.chain, &bytes);
                    let frame = Frame::decode(&bytes).unwrap();
                    assert_eq!(frame.first(), first);
                    assert!(frame.whats().len() <= JOURNAL_FRAME_EVENTS_MAX);
                    self.events.extend(frame.into_events());
                }
                Journaled::Sealed { number, segment } => {
                    assert_eq!(number, self.sealed.len() as u64 + 1, "numbers without gaps");
                    assert_eq!(segment.chain, self.chain);
                    assert_eq!(segment.last, self.events.last().unwrap().id());
                    self.sealed.push((number, segment.last));
                }
            }
        }
    }
}

fn trim(through: u64) -> Command {
    task(Action::TrimJournal { through })
}

fn task(action: Action) -> Command {
    let origin = Origin { via: Via::Task, ..fixtures::origin("task/journal") };
    Command { origin, terms: Terms::of(Grant::of(ipam_api::access::Role::Admin)), action }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn the_journal_holds_what_apply_returned(seeds in prop::collection::vec(any::<u64>(), 1..150)) {
        let mut state = State::new();
        let mut reader = Reader::default();
        let (mut all, mut issued, mut asked) = (Vec::new(), Vec::new(), Vec::new());
        let mut day_ms = 0;
        for (index, seed) in (0..).zip(seeds) {
            let now = state.log_time_ms();
            let mut draw = Draw { dice: Dice(seed), state: &state, issued: &issued, asked: &asked, index };
            let log_time_ms = draw.log_time_ms(now) + day_ms;
            // Now and then a segment becomes old enough to be sealed.
            day_ms = if draw.dice.chance(5) { JOURNAL_SEGMENT_AGE_MS_MAX } else { 0 };
            let at = At { log_time_ms, wall_ms: 1 + index, leadership: 0 };
            let mut command = draw.command(now);
            let oldest = state.oldest_segment();
            if draw.dice.chance(5) && oldest < state.header().journal.segment {
                command = trim(oldest);
            }
            if draw.dice.chance(5) {
                command = task(Action::SealJournal);
            }
            if let Action::Allocate(request) = &command.action {
                asked.push(request.clone());
            }
            let before = state.revision();
            let _nothing_written = dry_run(&state, at, &command);
            let (outcome, events) = apply(&mut state, at, &command);
            if let Action::TrimJournal { through } = command.action {
                prop_assert_eq!(outcome.unwrap().answer, Answer::Trimmed { segments: 1 });
                prop_assert_eq!(state.oldest_segment(), through + 1);
                let last = reader.sealed.iter().find(|(number, _)| *number == through).unwrap().1;
                prop_assert_eq!(state.header().journal.trimmed, last);
                // What the trimming itself says may be the first of a new segment.
                let next = state.oldest_event();
                prop_assert!(next > last);
            }
            for event in &events {
                prop_assert!(event.revision > before);
                prop_assert!(!event.by.principal.is_empty() && !event.by.request_id.is_empty());
                if let EventKind::Allocated(Holding { allocation, .. }) = event.kind {
                    issued.push(allocation.get());
                }
                if let EventKind::Changed { changes, .. } = &event.kind {
                    prop_assert!(!changes.is_empty(), "a change of nothing");
                    let chars = |text: &str| text.chars().count();
                    prop_assert!(changes.iter().all(|one| chars(one.from.as_str()).max(chars(one.to.as_str())) <= FIELD_CHANGE_CHARS_MAX));
                }
                if command.action == Action::Expire {
                    prop_assert_eq!(event.by.via, Via::Task, "log time alone causes it");
                }
            }
            all.extend(events);
            reader.take(&mut state);
            prop_assert_eq!(&reader.events, &all);
            prop_assert!(all.is_sorted_by_key(Event::id));
        }
    }
}

#[test]
fn only_sealed_segments_go_and_only_admins_trim() {
    let mut state = State::new();
    let at = At { log_time_ms: 1, wall_ms: 1, leadership: 0 };
    assert!(apply(&mut state, at, &trim(1)).0.is_err(), "the open one stays");
    assert_eq!(apply(&mut state, at, &trim(0)).0.unwrap().answer, Answer::Trimmed { segments: 0 });
    let mut operator = trim(0);
    operator.terms = Terms::of(Grant::of(ipam_api::access::Role::Operator));
    assert!(apply(&mut state, at, &operator).0.is_err());
}

#[test]
fn an_old_segment_is_sealed_though_nothing_happens() {
    let mut state = State::new();
    let mut reader = Reader::default();
    let seal = task(Action::SealJournal);
    let mut sealed_at = |state: &mut State, log_time_ms: u64| {
        let (outcome, events) = apply(state, At { log_time_ms, wall_ms: 9, leadership: 0 }, &seal);
        assert!(events.is_empty(), "that is no news");
        reader.take(state);
        match outcome.unwrap().answer {
            Answer::Sealed { segment } => segment,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(sealed_at(&mut state, 10 * JOURNAL_SEGMENT_AGE_MS_MAX), None, "an empty one stays open");
    let born = state.log_time_ms();
    let at = At { log_time_ms: born, wall_ms: 1, leadership: 0 };
    let made = task(Action::PutNetwork(fixtures::put(fixtures::network("blue"))));
    apply(&mut state, at, &made).0.unwrap();
    let (revision, last) = (state.revision(), state.newest_event());
    assert_eq!(sealed_at(&mut state, born + JOURNAL_SEGMENT_AGE_MS_MAX - 1), None, "a day isn't over");
    assert_eq!(sealed_at(&mut state, born + JOURNAL_SEGMENT_AGE_MS_MAX), Some(1));
    assert_eq!(
        sealed_at(&mut state, born + 9 * JOURNAL_SEGMENT_AGE_MS_MAX),
        None,
        "what is open now is empty"
    );
    assert_eq!((state.revision(), state.newest_event()), (revision, last));
    assert_eq!(state.segments.get(1).unwrap().last, last);
    assert_eq!(state.header().journal.segment, 2);
    // It can be given up now.
    assert_eq!(apply(&mut state, at, &trim(1)).0.unwrap().answer, Answer::Trimmed { segments: 1 });
    let mut operator = seal.clone();
    operator.terms = Terms::of(Grant::of(ipam_api::access::Role::Operator));
    assert!(apply(&mut state, at, &operator).0.is_err());
}

#[test]
fn a_frame_has_so_many_bytes_and_its_events_go_on_in_the_next() {
    let mut state = State::new();
    let mut reader = Reader::default();
    let steps = (0..1000).map(|at| {
        // Four bytes each, and another one than before.
        let description = Text::given(if at % 2 == 0 { "\u{1F980}" } else { "\u{1F427}" }.repeat(300));
        let metadata = Metadata { description, ..Metadata::default() };
        Action::PutNetwork(fixtures::put(NetworkSpec { metadata, ..fixtures::network("net") }))
    });
    let steps: Vec<Action> = steps.collect();
    let command = task(Action::Transaction(Transaction { preconditions: Vec::new(), steps }));
    let mut events = Vec::new();
    let mut frames = Vec::new();
    for at in 0..3 {
        let (outcome, happened) =
            apply(&mut state, At { log_time_ms: at, wall_ms: 1, leadership: 0 }, &command);
        outcome.unwrap();
        events.extend(happened);
        let journaled = state.take_journaled();
        frames.extend(journaled.iter().filter_map(|one| match one {
            Journaled::Frame { bytes, .. } => Some(bytes.len()),
            Journaled::Sealed { .. } => None,
        }));
        reader.take_all(journaled);
    }
    assert!(frames.iter().sum::<usize>() > JOURNAL_FRAME_BYTES_MAX && frames.len() > 3, "{frames:?}");
    assert!(frames.iter().all(|bytes| *bytes <= JOURNAL_FRAME_BYTES_MAX), "{frames:?}");
    assert_eq!(reader.events, events, "in their order, under their numbers");
}
