//! Format of a sealed segment: every altered byte is detected.

use ipam_machine::command::Text;
use std::sync::Arc;

use crate::store::journal::block::{Block, key};
use crate::store::journal::recent::Recent;
use crate::store::journal::sealed::{self, Sealed};
use ipam_api::access::Role;
use ipam_api::limits::JOURNAL_SEGMENT_AGE_MS_MAX;
use ipam_machine::command::{Metadata, NetworkSpec};
use ipam_machine::journal::Segment;
use ipam_machine::{Action, At, Command, Grant, Journaled, Origin, State, Terms, apply, fixtures};

/// A sealed segment of several blocks.
pub(super) fn fixture() -> (u64, Segment, Vec<Arc<Block>>) {
    let mut state = State::new();
    let mut recent = Recent::new(&state.header().journal, Vec::new());
    for number in 0..700_u64 {
        let name = format!("network-{}", number % 40);
        let metadata =
            Metadata { description: Text::given(format!("{number}").repeat(40)), ..Metadata::default() };
        let origin = Origin {
            request_id: Text::given(format!("request-{number}")),
            comment: Some(Text::given("because".repeat(10))),
            ..fixtures::origin(&format!("somebody-{}", number % 90))
        };
        let put = fixtures::put(NetworkSpec { metadata, ..fixtures::network(&name) });
        let terms = Terms::of(Grant::of(Role::Admin));
        let command = Command { origin, terms, action: Action::PutNetwork(put) };
        let log_time_ms = if number < 699 { 1 } else { 1 + JOURNAL_SEGMENT_AGE_MS_MAX };
        apply(&mut state, At { log_time_ms, wall_ms: number, leadership: 0 }, &command).0.unwrap();
        let journaled = state.take_journaled();
        let sealed = journaled.iter().any(|one| matches!(one, Journaled::Sealed { .. }));
        recent.take(journaled);
        assert_eq!(sealed, number == 699);
    }
    let waiting = recent.sealed.remove(0);
    assert!(waiting.blocks.len() > 3, "{} blocks", waiting.blocks.len());
    (waiting.number, waiting.segment, waiting.blocks)
}

#[test]
fn written_events_are_read_and_found() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("segment");
    let (number, segment, blocks) = fixture();
    sealed::write(&path, number, &segment, &blocks).unwrap();
    let sealed = Sealed::open(&path, number, &segment).unwrap();
    sealed.verify().unwrap();
    assert_eq!(sealed.blocks(), blocks.len());
    for (at, block) in blocks.iter().enumerate() {
        assert_eq!(sealed.block(at).unwrap().bytes(), block.bytes());
        for key in block.keys() {
            assert!(sealed.find(*key).unwrap().contains(&at));
        }
    }
    let nobody = key("principal", "nobody");
    assert!(sealed.find(nobody).unwrap().is_empty());
    assert!(Sealed::open(&path, number + 1, &segment).is_err(), "another's number");
    assert!(Sealed::open(&path, number, &Segment { events: 1, ..segment }).is_err(), "another segment");
}

/// Checksums are valid wherever a stranger computed them. Reservations must depend on the received bytes.
#[test]
fn lengths_that_nothing_explains_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("segment");
    let refusal = |block: &sealed::Claim| {
        std::fs::write(&path, sealed::claiming(block)).unwrap();
        Sealed::open_any(&path).unwrap().block(0).unwrap_err().to_string()
    };
    let small = sealed::Claim { length: 20, bytes: 60 << 20 };
    assert!(refusal(&small).contains("more bytes than it can hold"), "{}", refusal(&small));
    let long = sealed::Claim { length: 60 << 20, bytes: 100 };
    assert!(refusal(&long).contains("beyond its end"), "{}", refusal(&long));
}

#[test]
fn a_byte_altered_anywhere_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("segment");
    let (number, segment, blocks) = fixture();
    sealed::write(&path, number, &segment, &blocks).unwrap();
    let content = std::fs::read(&path).unwrap();
    let whole = |content: &[u8]| {
        std::fs::write(&path, content).unwrap();
        let verified = Sealed::open(&path, number, &segment).and_then(|sealed| sealed.verify());
        // Blocks that are still served are unaltered.
        if let Ok(sealed) = Sealed::open(&path, number, &segment) {
            for (at, block) in blocks.iter().enumerate() {
                if let Ok(found) = sealed.block(at) {
                    assert_eq!(found.bytes(), block.bytes());
                }
            }
        }
        verified
    };
    whole(&content).unwrap();
    // The ends byte by byte, what lies between in steps that meet every residue.
    let middle = (200..content.len() - 600).step_by(211);
    for offset in (0..200).chain(middle).chain(content.len() - 600..content.len()) {
        let mut altered = content.clone();
        altered[offset] ^= 1 << (offset % 8);
        assert!(whole(&altered).is_err(), "flip at {offset} of {}", content.len());
    }
    for length in [0, 1, 23, 24, content.len() / 2, content.len() - 1] {
        assert!(whole(&content[..length]).is_err(), "cut at {length}");
    }
    assert!(whole(&[content.as_slice(), &[0]].concat()).is_err(), "something behind its end");
}
