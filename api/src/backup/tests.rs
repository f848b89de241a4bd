//! Detection of damage: each flipped or missing byte is found.

use std::io::Write as _;

use super::{Counts, Header, Piece, Reader, Unusable, Writer, check};
use crate::time::Timestamp;

fn header(segments: u64) -> Header {
    Header {
        version: "0.1.0".to_owned(),
        cluster: "7f3c".to_owned(),
        member: "n1".to_owned(),
        taken_at: Timestamp(1_795_132_800_123),
        epoch: 1,
        revision: (1 << 40) + 7,
        level: 1,
        digest: "0123".to_owned(),
        history: true,
        segments,
        counts: Counts { allocations: 3, ..Counts::default() },
    }
}

fn written(state: &[u8], segments: &[&[u8]]) -> Vec<u8> {
    let mut file = Vec::new();
    let mut writer = Writer::begin(&mut file, &header(segments.len() as u64)).unwrap();
    let mut to = writer.state();
    to.write_all(state).unwrap();
    to.flush().unwrap();
    for (segment, number) in segments.iter().zip(5..) {
        writer.segment(number, segment.len() as u64, *segment).unwrap();
    }
    writer.finish().unwrap();
    file
}

#[test]
fn a_written_backup_is_read_back() {
    let state: Vec<u8> = (0..600_000_u32).map(|at| at.to_be_bytes()[3]).collect();
    let file = written(&state, &[&[1; 300_000], &[], &[9]]);
    let mut reader = Reader::begin(file.as_slice()).unwrap();
    assert_eq!(*reader.header(), header(3));
    let (mut read, mut segments) = (Vec::new(), Vec::new());
    while let Some(piece) = reader.next_piece().unwrap() {
        match piece {
            Piece::State(bytes) => read.extend(bytes),
            Piece::Segment { number, length } => segments.push((number, length, 0)),
            Piece::Bytes(bytes) => segments.last_mut().unwrap().2 += bytes.len(),
        }
    }
    assert!(read == state);
    assert_eq!(segments, [(5, 300_000, 300_000), (6, 0, 0), (7, 1, 1)]);
    let checked = check(file.as_slice()).unwrap();
    assert_eq!((checked.bytes, Some(checked.seal.as_str())), (file.len() as u64, reader.seal()));
}

#[test]
fn a_flip_of_any_byte_is_found() {
    let file = written(b"all rows", &[b"a segment", b"another"]);
    check(file.as_slice()).unwrap();
    for at in 0..file.len() {
        for bit in [1, 0x80] {
            let mut flipped = file.clone();
            flipped[at] ^= bit;
            assert!(check(flipped.as_slice()).is_err(), "byte {at}");
        }
    }
}

#[test]
fn an_end_at_any_length_is_found_and_so_is_more() {
    let file = written(b"all rows", &[b"a segment"]);
    for length in 0..file.len() {
        match check(&file[..length]).unwrap_err() {
            Unusable::Foreign if length < 8 => {}
            Unusable::Damaged { at, .. } if at <= length as u64 => {}
            other => panic!("{length}: {other}"),
        }
    }
    assert!(check([&file[..], &[0]].concat().as_slice()).is_err());
}

#[test]
fn pieces_in_another_order_or_number_are_found() {
    // The backup has one segment less than the header announces.
    let mut file = Vec::new();
    let mut writer = Writer::begin(&mut file, &header(1)).unwrap();
    writer.state().write_all(b"x").unwrap();
    let mut to = writer.state();
    to.write_all(b"x").unwrap();
    to.flush().unwrap();
    writer.finish().unwrap();
    assert!(matches!(check(file.as_slice()), Err(Unusable::Damaged { .. })));
    // The backup has no state at all.
    let mut file = Vec::new();
    Writer::begin(&mut file, &header(0)).unwrap().finish().unwrap();
    assert!(matches!(check(file.as_slice()), Err(Unusable::Damaged { .. })));
}

#[test]
fn a_newer_or_foreign_file_is_reported_as_such() {
    let mut file = written(b"x", &[]);
    assert!(matches!(check(&b"#!/bin/sh\n"[..]), Err(Unusable::Foreign)));
    file[7] = 9;
    let why = check(file.as_slice()).unwrap_err();
    assert!(why.to_string().contains("version 9"), "{why}");
}
