//! Messages of members of the first version, read by this one. `UPDATE=1` adds what isn't there yet; a
//! line that is there never changes, since members of two versions speak during every upgrade.

use ipam_machine::command::Text;
use std::collections::BTreeMap;
use std::fmt::{Debug, Write as _};
use std::path::{Path, PathBuf};

use openraft::EntryPayload;
use openraft::raft::{TransferLeaderRequest, VoteRequest, VoteResponse};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::frame::{decode, encode};
use super::message::{Append, Numbered};
use super::preface::Opening;
use super::*;
use crate::store::Checkpoint;
use crate::types::{Entry, LogId, Types, Vote};
use ipam_machine::batch::{Batch, Leadership, Opened};
use ipam_machine::{Action, Applied, Command, Origin, fixtures};

type LeaderId = openraft::type_config::alias::LeaderIdOf<Types>;

fn log_id(index: u64) -> LogId {
    LogId { leader_id: LeaderId { term: 3, node_id: 1 }, index }
}

fn vote() -> Vote {
    Vote { leader_id: LeaderId { term: 3, node_id: 1 }, committed: true }
}

fn command() -> Command {
    let request_id = Text::given("r1");
    let origin = Origin { request_id, not_after_ms: Some(9_000), ..fixtures::origin("alice") };
    Command { origin, ..fixtures::command(Action::Expire) }
}

fn requests() -> Vec<Request> {
    let opened =
        Opened { leadership: Leadership::Number(0), log_time_ms: 7, wall_ms: 8, commands: vec![command()] };
    let entry = Entry { log_id: log_id(5), payload: EntryPayload::Normal(Batch::seal(&opened).unwrap()) };
    vec![
        Request::Ping,
        Request::Append(Append {
            vote: vote(),
            prev_log_id: Some(log_id(4)),
            entries: vec![entry],
            leader_commit: Some(log_id(4)),
        }),
        Request::Vote(VoteRequest::new(vote(), Some(log_id(5)))),
        Request::PreVote(VoteRequest::new(vote(), None)),
        Request::TransferLeader(TransferLeaderRequest::new(vote(), 2, Some(log_id(5)))),
        Request::Propose { command: Box::new(command()), budget_ms: 1_500 },
        Request::ReadIndex,
        Request::JournalPiece { number: 4, offset: 65_536 },
        Request::Report,
        Request::SendSnapshot { to: 2, at_least: 900 },
    ]
}

fn answers() -> Vec<Answer> {
    let outcome = Ok(Applied {
        revision: 1 << 40 | 9,
        answer: ipam_machine::Answer::Expired { rows: 3 },
        replayed: false,
    });
    let checkpoint = Checkpoint { index: 64, revision: 1 << 40 | 9, digest: 1 << 100 };
    let peer_report =
        PeerReport { quarantine: Some("it differs".to_owned()), version: "0.1.0".to_owned(), level: 1 };
    vec![
        Answer::Pong,
        Answer::Append(Ok(Some(log_id(5)))),
        Answer::Vote(VoteResponse::new(vote(), Some(log_id(5)), true)),
        Answer::Propose(Ok(outcome)),
        Answer::Propose(Err(Declined::Expired { maybe_applied: true })),
        Answer::ReadIndex(Ok(log_id(5))),
        Answer::ReadIndex(Err(Declined::Unknown)),
        Answer::Failed("it isn't running".to_owned()),
        Answer::JournalPiece { piece: vec![1, 2, 3], length: 99 },
        Answer::Report(Box::new(Report { checkpoints: vec![checkpoint], waits: true, peer_report })),
        Answer::SnapshotSent,
        Answer::Propose(Err(Declined::TooLarge { bytes: 70 << 20 })),
        Answer::Propose(Err(Declined::Busy { why: Busy::Wait, retry_after_ms: 250 })),
    ]
}

fn identity(name: &str, member_id: u64) -> PeerIdentity {
    PeerIdentity { name: name.to_owned(), member_id, disk_id: format!("disk-{name}") }
}

fn openings() -> Vec<Opening> {
    let handshake = Handshake {
        cluster_id: "c0ffee".to_owned(),
        from: identity("n1", 1),
        to: identity("n2", 2),
        client_url: "http://n1:7440".to_owned(),
        purpose: Purpose::Control,
        peer_address: None,
    };
    vec![Opening::Hello, Opening::Member(handshake)]
}

fn file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/fixtures/v1/messages.txt")
}

/// Lines of the file: the name of a message, its frame and its meaning.
fn known() -> BTreeMap<String, (String, String)> {
    let text = std::fs::read_to_string(file()).unwrap_or_default();
    let parts = |line: &str| {
        let (name, rest) = line.split_once(' ').unwrap();
        let (frame, meaning) = rest.split_once(' ').unwrap();
        (name.to_owned(), (frame.to_owned(), meaning.to_owned()))
    };
    text.lines().map(parts).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

/// Compares messages of one kind with the file, both written and read.
fn hold<T: Serialize + DeserializeOwned + Debug>(kind: &str, messages: Vec<T>) {
    let mut added = String::new();
    let known = known();
    for (number, message) in messages.into_iter().enumerate() {
        let numbered: Numbered<T> = (7, message);
        let (name, frame, meaning) =
            (format!("{kind}-{number}"), hex(&encode(&numbered).unwrap()), format!("{:?}", numbered.1));
        match known.get(&name) {
            None if std::env::var_os("UPDATE").is_some() => {
                writeln!(added, "{name} {frame} {meaning}").unwrap();
            }
            None => panic!("{name} ({meaning}) has no fixture yet: UPDATE=1"),
            Some((old, meant)) => {
                assert_eq!(frame, *old, "{name} is written otherwise");
                // The decoder gets the frame without the length.
                let read: Numbered<T> = decode(&unhex(old)[4..]).unwrap();
                assert_eq!(format!("{:?}", read.1), *meant, "{name} means something else");
            }
        }
    }
    if !added.is_empty() {
        let text = std::fs::read_to_string(file()).unwrap_or_default() + &added;
        std::fs::create_dir_all(file().parent().unwrap()).unwrap();
        std::fs::write(file(), text).unwrap();
    }
}

/// All kinds are in one test, since all are in one file.
#[test]
fn messages_of_the_first_version_are_read_as_they_were_meant() {
    hold("request", requests());
    hold("answer", answers());
    hold("opening", openings());
}
