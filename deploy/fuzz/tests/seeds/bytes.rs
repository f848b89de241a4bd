//! Seeds of encoded data: messages, batches, rows and files, made of golden bytes where these exist.

use std::net::{Ipv4Addr, Ipv6Addr};

use fuzz::parts::{joined, joined_rows};
use ipam_agent::probe::frame::{answer, arp_probe, solicitation};
use ipam_machine::batch::Opened;
use ipam_machine::{At, Command, Journaled, RowKey, State, apply};
use ipam_meridio::wire::ipam::v1::{Child, Prefix, Subnet};
use ipam_meridio::wire::nsp::v1::{Conduit, ConduitResponse, Trench};
use ipam_raft::fuzzing::{store, transport};
use pnet_base::MacAddr;
use prost::Message as _;

use crate::Seed;

const GOLDEN: &str = include_str!("../../../../raft/machine/testdata/golden.txt");

/// Golden bytes whose names start with `beginning`.
fn golden(beginning: &str) -> Vec<(String, Vec<u8>)> {
    let unhex = |hex: &str| -> Vec<u8> {
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
    };
    let lines = GOLDEN.lines().filter_map(|line| line.strip_prefix(beginning));
    lines.map(|line| line.split_once(' ').unwrap()).map(|(name, hex)| (name.to_owned(), unhex(hex))).collect()
}

fn command(batch: &[u8]) -> Command {
    postcard::from_bytes::<Opened>(&batch[1..]).unwrap().commands.remove(0)
}

fn chosen(kind: u8, bytes: &[u8]) -> Vec<u8> {
    [&[kind], bytes].concat()
}

/// `value` in postcard, after the byte of the choice.
fn coded<T: serde::Serialize>(kind: u8, value: &T) -> Vec<u8> {
    postcard::to_extend(value, vec![kind]).unwrap()
}

pub(crate) fn all() -> Vec<Seed> {
    let mut all = Vec::new();
    machine(&mut all);
    messages(&mut all);
    files(&mut all);
    link(&mut all);
    meridio(&mut all);
    all
}

/// Messages of Meridio's clients and of its NSP service, and connections with them.
fn meridio(all: &mut Vec<Seed>) {
    let trench = || Some(Trench { name: "default".to_owned() });
    let conduit = |name: &str| Conduit { name: name.to_owned(), trench: trench() };
    let child = |name: &str, ip_family: i32, conduit: Option<Conduit>| {
        let subnet = Some(Subnet { conduit, node: "worker-1".to_owned(), ip_family });
        Child { name: name.to_owned(), subnet }.encode_to_vec()
    };
    let children = [
        ("bridge", child("bridge", 0, Some(conduit("conduit-a")))),
        ("other-family", child("c1-src", 1, Some(conduit("conduit-a")))),
        ("unknown-family", child("c1-dst", -1, Some(conduit("a/b")))),
        ("no-conduit", child("", 0, None)),
        ("empty", Vec::new()),
        ("unfinished", vec![0x12, 0x7f, 0x0a]),
    ];
    for (name, bytes) in &children {
        all.push(("meridio_message", format!("child-{name}"), chosen(0, bytes)));
    }
    let prefix = Prefix { address: "169.255.0.1".to_owned(), prefix_length: 24 };
    all.push(("meridio_message", "prefix".to_owned(), chosen(1, &prefix.encode_to_vec())));
    let conduits = ConduitResponse { conduits: vec![conduit("conduit-a"), conduit("")] };
    all.push(("meridio_message", "conduits".to_owned(), chosen(2, &conduits.encode_to_vec())));
    // The lowest bits of a tag are a method, 3 a frame of the type of the other bits.
    let calls = |tag: u8| joined(children.iter().map(|(_, bytes)| (tag, bytes.as_slice())));
    for (name, tag) in [
        ("allocate", 0),
        ("release", 1),
        ("watch", 2),
        ("unfinished", 4),
        ("cancelled", 4 | 8),
        ("too-short", 16),
        ("compressed", 32),
        ("priority", 3 | 2 << 2),
        ("continuation", 3 | 9 << 2),
    ] {
        all.push(("meridio_stream", format!("calls-{name}"), chosen(2, &calls(tag))));
    }
    let goaway = [0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 11];
    all.push(("meridio_stream", "goaway".to_owned(), chosen(1, &goaway)));
    all.push(("meridio_stream", "half-a-preface".to_owned(), chosen(0, b"PRI * HTTP/2.0\r\n\r\nS")));
    let request = b"POST /ipam.v1.Ipam/Allocate HTTP/1.1\r\nhost: ipam\r\ncontent-length: 0\r\n\r\n";
    all.push(("meridio_stream", "http1".to_owned(), chosen(0, request)));
}

/// The probes of the agent, and their answers.
fn link(all: &mut Vec<Seed>) {
    let (own, theirs) = (MacAddr(2, 0, 0, 0, 0, 1), MacAddr(2, 0, 0, 0, 0x99, 2));
    let target: Ipv6Addr = "2001:db8:99::2".parse().unwrap();
    let probe = arp_probe(own, Ipv4Addr::new(10, 99, 0, 2));
    let mut reply = arp_probe(theirs, Ipv4Addr::new(10, 99, 0, 1));
    // Operation, and the sender's protocol address.
    reply[21] = 2;
    reply[28..32].copy_from_slice(&[10, 99, 0, 2]);
    let solicitation = solicitation(own, Some("fe80::1".parse().unwrap()), target);
    let mut advertisement = solicitation.clone();
    // Type 136 replaces 135, and the checksum changes accordingly.
    advertisement[54] += 1;
    let sum = u32::from(!u16::from_be_bytes([advertisement[56], advertisement[57]])) + 0x100;
    let sum = !u16::try_from((sum & 0xffff) + (sum >> 16)).unwrap();
    advertisement[56..58].copy_from_slice(&sum.to_be_bytes());
    assert_eq!(answer(&reply), Some((Ipv4Addr::new(10, 99, 0, 2).into(), theirs)));
    assert_eq!(answer(&advertisement), Some((target.into(), own)));
    let seeds = [
        ("arp-probe", probe),
        ("arp-reply", reply),
        ("solicitation", solicitation),
        ("advertisement", advertisement),
    ];
    all.extend(seeds.map(|(name, frame)| ("probe_frame", name.to_owned(), frame)));
}

fn rows() -> Vec<(RowKey, Vec<u8>)> {
    let key = |name: &str| {
        let (table, id) = name.split_once('/').unwrap();
        RowKey { table: table.parse().unwrap(), id: id.parse().unwrap() }
    };
    golden("row/").into_iter().map(|(name, bytes)| (key(&name), bytes)).collect()
}

fn machine(all: &mut Vec<Seed>) {
    let mut sequence = Vec::new();
    for (name, bytes) in golden("batch/") {
        all.push(("batch", format!("batch-{name}"), chosen(0, &bytes)));
        for state in [0, 1] {
            all.push(("apply", format!("{name}-{state}"), chosen(state, &bytes[1..])));
        }
        sequence.extend_from_slice(&bytes[1..]);
    }
    all.push(("apply", "all".to_owned(), chosen(0, &sequence)));
    for (kind, beginning) in [(1, "outcome/"), (2, "event/")] {
        for (name, bytes) in golden(beginning) {
            all.push(("batch", format!("{}-{name}", &beginning[..5]), chosen(kind, &bytes)));
        }
    }
    for (number, frame) in frames().into_iter().enumerate() {
        all.push(("batch", format!("frame-{number}"), chosen(3, &frame)));
    }
    all.push(("rows", "golden".to_owned(), joined_rows(&rows())));
    let new: Vec<_> = State::new().rows().collect();
    all.push(("rows", "new".to_owned(), joined_rows(&new)));
    let twice: Vec<_> = rows().into_iter().flat_map(|row| [row.clone(), row]).collect();
    all.push(("rows", "twice".to_owned(), joined_rows(&twice)));
    let longer: Vec<_> = rows().into_iter().map(|(key, row)| (key, [row, vec![0]].concat())).collect();
    all.push(("rows", "longer".to_owned(), joined_rows(&longer)));
}

/// Frames of the journal, as a few commands write them.
fn frames() -> Vec<Vec<u8>> {
    let mut state = State::from_rows(rows()).unwrap();
    for (at_ms, (_, bytes)) in (70_000..).zip(golden("batch/")) {
        let mut command = command(&bytes);
        command.terms = ipam_machine::Terms::of(ipam_machine::Grant::of(ipam_api::access::Role::Admin));
        let _ = apply(&mut state, At { log_time_ms: at_ms, wall_ms: 7, leadership: 0 }, &command);
    }
    let frame = |journaled| match journaled {
        Journaled::Frame { bytes, .. } => Some(bytes),
        Journaled::Sealed { .. } => None,
    };
    let frames: Vec<Vec<u8>> = state.take_journaled().into_iter().filter_map(frame).take(4).collect();
    assert!(frames.len() > 1);
    frames
}

fn messages(all: &mut Vec<Seed>) {
    let batches = golden("batch/");
    let propose = command(&batches[0].1);
    let (leader, log_id) = ((2_u64, 1_u64), ((2_u64, 1_u64), 4_u64));
    let entry = (log_id, 1_u32, batches[0].1.clone());
    let append = ((leader, true), Some(((1_u64, 1_u64), 3_u64)), vec![entry], Some(log_id));
    let ask = |number: u32, rest: &[u8]| [coded(0, &(7_u64, number)), rest.to_vec()].concat();
    let bytes = |value: &dyn Fn() -> Vec<u8>| value();
    let requests = [
        ("ping", ask(0, &[])),
        ("append", ask(1, &bytes(&|| postcard::to_stdvec(&append).unwrap()))),
        ("vote", ask(2, &bytes(&|| postcard::to_stdvec(&((leader, false), Some(log_id), false)).unwrap()))),
        ("propose", ask(5, &bytes(&|| postcard::to_stdvec(&(&propose, 900_u64)).unwrap()))),
        ("read-index", ask(6, &[])),
        ("journal-piece", ask(7, &[3, 200, 1])),
    ];
    let mut stream = vec![7];
    for (name, request) in requests {
        assert!(transport::message(0, &[&[1], &request[1..]].concat()).is_some(), "{name} can't be read");
        stream.extend(transport::framed(&request[1..]).unwrap());
        all.push(("peer_message", format!("request-{name}"), request));
    }
    all.push(("peer_stream", "requests".to_owned(), stream));
    let answers = [
        ("pong", coded(1, &(7_u64, 0_u32))),
        ("outcome", [coded(1, &(7_u64, 4_u32, 0_u32)), golden("outcome/")[0].1.clone()].concat()),
        ("declined", coded(1, &(7_u64, 4_u32, 1_u32, 3_u32, true))),
        ("failed", coded(1, &(7_u64, 6_u32, "why"))),
        ("piece", coded(1, &(7_u64, 7_u32, vec![1_u8, 2], 9_u64))),
    ];
    for (name, answer) in answers {
        assert!(transport::message(1, &answer).is_some(), "{name} can't be read");
        all.push(("peer_message", format!("answer-{name}"), answer));
    }
    let identity = |name: &str| (name.to_owned(), 1_u64, "d".repeat(36));
    let handshake = ("c".repeat(36), identity("n1"), identity("n2"), "http://n1:7440", 1_u32);
    let opening = postcard::to_stdvec(&(1_u32, &handshake)).unwrap();
    let hello = ("n1", "d".repeat(36), "n1:7441", "http://n1:7440");
    let member = (2_u32, "c".repeat(36), 1_u64, vec![(1_u64, "n1", "d".repeat(36))]);
    for (kind, name, content) in [
        (4, "opening", opening.clone()),
        (transport::MESSAGES, "preface", opening.clone()),
        (5, "hello", postcard::to_stdvec(&(&hello, (0_u32, vec!["n1", "n2"]))).unwrap()),
        (5, "hello-member", postcard::to_stdvec(&(&hello, &member)).unwrap()),
        (3, "receipt", postcard::to_stdvec(&(1_u32, "no room")).unwrap()),
    ] {
        let read = transport::message(kind, &chosen(1, &content)).is_some();
        assert!(read || kind == transport::MESSAGES, "{name} can't be read");
        all.push(("peer_message", name.to_owned(), chosen(kind, &content)));
    }
    all.push(("peer_stream", "preface".to_owned(), chosen(0, &transport::preface(&opening).unwrap())));
    all.push(("peer_stream", "http".to_owned(), b"\x03GET / HTTP/1.1\r\n\r\n".to_vec()));
    all.push(("peer_stream", "long".to_owned(), chosen(1, &(60_u32 << 20).to_be_bytes())));
}

fn files(all: &mut Vec<Seed>) {
    let new: Vec<_> = State::new().rows().collect();
    for (name, rows) in [("golden", rows()), ("new", new)] {
        all.push(("snapshot", format!("rows-{name}"), chosen(1, &joined_rows(&rows))));
        all.push(("snapshot", format!("whole-{name}"), chosen(0, &store::snapshot_of(&rows, &[]))));
    }
    let frames = frames();
    let block = store::journal::block_of(&frames);
    let half = store::journal::block_of(&frames[..1]);
    let blocks = joined([(0, block.as_slice()), (0, half.as_slice())]);
    all.push(("journal", "blocks".to_owned(), chosen(2, &blocks)));
    all.push(("journal", "open".to_owned(), chosen(3, &chosen(3, &blocks))));
    all.push((
        "journal",
        "frames".to_owned(),
        chosen(4, &joined(frames.iter().map(|one| (0, one.as_slice())))),
    ));
    let path = std::env::temp_dir().join(format!("ipamd-seed-{}", std::process::id()));
    assert!(store::journal::seal(&path, &[block.clone(), half]).unwrap());
    let sealed = std::fs::read(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let at =
        usize::try_from(u64::from_be_bytes(*sealed[sealed.len() - 24..].first_chunk().unwrap())).unwrap();
    let footer = &sealed[at + 10..sealed.len() - 28];
    all.push(("journal", "footer".to_owned(), chosen(1, &joined([(0, block.as_slice()), (2, footer)]))));
    all.push(("journal", "sealed".to_owned(), chosen(0, &sealed)));
    // A head with a valid checksum and nothing after it.
    let mut claims = vec![0xE4, 1];
    claims.extend_from_slice(&(63_u32 << 20).to_be_bytes());
    claims.extend_from_slice(&crc32fast::hash(&claims).to_be_bytes());
    all.push(("journal", "open-claims".to_owned(), chosen(3, &chosen(1, &claims))));
    items(all);
}

fn items(all: &mut Vec<Seed>) {
    let (leader, log_id) = ((2_u64, 1_u64), ((2_u64, 1_u64), 4_u64));
    let numbers: Vec<u8> = [2_u64, 1, 4].iter().flat_map(|number| number.to_be_bytes()).collect();
    let payload = postcard::to_stdvec(&(1_u32, golden("batch/")[0].1.clone())).unwrap();
    let mark = (900_u64, Some(log_id), Some((leader, true)));
    let (key, row) = &rows()[1];
    let block = RowKey { id: key.id / 16 * 16, ..*key };
    let length = u32::try_from(row.len()).unwrap().to_be_bytes();
    let row_head = [vec![2, u8::try_from(key.id % 16).unwrap()], length.to_vec()];
    let record = [&[0, 0, 0, 2, 0xA1], numbers.as_slice()].concat();
    let entry = [numbers, payload].concat();
    let bodies = [
        ("record", record.clone()),
        ("entry", entry.clone()),
        ("block", [block.to_bytes().as_slice(), &row_head.concat(), row].concat()),
        ("marker", postcard::to_stdvec(&("boot", true, mark, Some(log_id))).unwrap()),
        ("point", postcard::to_stdvec(&(Some(log_id), (None::<u8>, (0_u8, 0_u8)), 7_u128)).unwrap()),
    ];
    for (kind, (name, body)) in (0_u8..).zip(bodies) {
        let bytes = store::item_of(kind, &body);
        assert!(store::item(kind, &bytes).is_some(), "{name} can't be read");
        all.push(("log", name.to_owned(), chosen(store::ITEMS + kind, &body)));
        all.push(("log", format!("{name}-whole"), chosen(kind, &bytes)));
    }
    let identity =
        br#"{"version":1,"disk_id":"d","name":"n1","cluster_id":null,"member_id":7,"founding":false}"#;
    all.push(("log", "identity".to_owned(), chosen(2 * store::ITEMS, identity)));
    let checkpoint = [0, 0, 0, 5, 1, 0, 0, 0, 0, 0];
    let synced = [&[0, 0, 0, 6], 90_u64.to_be_bytes().as_slice()].concat();
    let file = [(0, checkpoint.as_slice()), (1, &entry), (0, &synced), (0, &record), (2, &[0; 200])];
    for (name, end) in [("file", &[][..]), ("file-torn", &[(3, &[0, 0, 0, 1, 0xA1][..])])] {
        let data = joined(file.iter().chain(end).copied());
        for same_boot in [0, 1] {
            let kind = 2 * store::ITEMS + 1 + same_boot;
            all.push(("log", format!("{name}-{same_boot}"), chosen(kind, &data)));
        }
    }
}
