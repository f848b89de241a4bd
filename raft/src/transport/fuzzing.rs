//! Access for fuzz targets: messages of a peer, read as from a connection.

use std::io;

use bytes::{Bytes, BytesMut};
use ipam_api::limits::{FRAME_BYTES_MAX, PREFACE_BYTES_MAX};
use openraft::raft::SnapshotResponse;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio_util::codec::Decoder as _;

use super::append::check;
use super::frame::{Frames, decode, encode, encode_raw};
use super::message::{Answer, Numbered, Request};
use super::preface::{Handshake, Hello, Opening, PROTOCOL_VERSION, ask_hello, present, receive};
use super::snapshot::SnapshotHead;
use crate::types::Types;

/// Decodes input in pieces of this size into frames; returns them, the rest, and the largest buffer.
///
/// # Errors
/// If the input violates the protocol; a connection would be closed then.
pub fn frames(bytes: &[u8], piece_bytes: usize) -> io::Result<(Vec<Bytes>, Bytes, usize)> {
    let (mut frames, mut buffer) = (Frames::up_to(FRAME_BYTES_MAX), BytesMut::new());
    let (mut all, mut capacity) = (Vec::new(), 0);
    for piece in bytes.chunks(piece_bytes.max(1)) {
        buffer.extend_from_slice(piece);
        while let Some(frame) = frames.decode(&mut buffer)? {
            all.push(frame);
        }
        capacity = capacity.max(buffer.capacity());
    }
    Ok((all, buffer.freeze(), capacity))
}

/// Bytes as a frame that a peer would send.
///
/// # Errors
/// If there are too many bytes.
pub fn framed(bytes: &[u8]) -> io::Result<Vec<u8>> {
    encode_raw(bytes)
}

/// Reads the first frame of a caller; returns its purpose, encoded again.
#[must_use]
pub fn opening(stream: &[u8]) -> Option<Vec<u8>> {
    let mut both = tokio::io::join(stream, tokio::io::sink());
    let opening = in_time(receive(&mut both))?.ok()?;
    encode(&opening).ok()
}

/// The bytes of a first frame that holds this opening.
///
/// # Errors
/// If the opening is too long.
pub fn preface(opening: &[u8]) -> io::Result<Vec<u8>> {
    encode(&(*b"ipamd-pr", PROTOCOL_VERSION, opening.to_vec()))
}

/// Reads the first answer of the side that was called, in both situations in which one is waited for.
pub fn reply(stream: &[u8]) {
    let mut both = tokio::io::join(stream, tokio::io::sink());
    let _ = in_time(ask_hello(&mut both));
    let identity = || super::PeerIdentity { name: String::new(), member_id: 0, disk_id: String::new() };
    let handshake = Handshake {
        cluster_id: String::new(),
        from: identity(),
        to: identity(),
        client_url: String::new(),
        purpose: super::Purpose::Append,
        peer_address: None,
    };
    let mut both = tokio::io::join(stream, tokio::io::sink());
    let _ = in_time(present(&mut both, handshake));
}

/// Kinds of messages in frames.
pub const MESSAGES: u8 = 6;

/// Reads a frame's content as one kind of message, of [`MESSAGES`], and encodes it again.
#[must_use]
pub fn message(kind: u8, frame: &[u8]) -> Option<Vec<u8>> {
    match kind % MESSAGES {
        0 => {
            let request: Numbered<Request> = decode(frame).ok()?;
            if let (_, Request::Append(append)) = &request {
                let _ = check(append);
            }
            again(&request)
        }
        1 => again(&decode::<Numbered<Answer>>(frame).ok()?),
        2 => again(&decode::<SnapshotHead>(frame).ok()?),
        3 => again(&decode::<Result<SnapshotResponse<Types>, String>>(frame).ok()?),
        4 => again(&decode::<Opening>(frame).ok()?),
        _ => again(&decode::<Hello>(frame).ok()?),
    }
}

/// Re-encodes a value, without the length; nothing for a value that isn't canonical.
fn again<T: Serialize + DeserializeOwned>(value: &T) -> Option<Vec<u8>> {
    let frame = encode(value).unwrap_or_default();
    Some(frame.get(size_of::<u32>()..).unwrap_or_default().to_vec())
}

/// Maximum bytes of the first frame.
pub const OPENING_BYTES_MAX: usize = PREFACE_BYTES_MAX;

fn in_time<T>(future: impl Future<Output = T>) -> Option<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().ok()?;
    Some(runtime.block_on(future))
}
