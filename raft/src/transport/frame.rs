//! Frames: four bytes of length, one of version, and a value in postcard.
//!
//! `LengthDelimitedCodec` reserves any announced length at once; the buffer of this decoder grows only with
//! received bytes.

use std::io;

use bytes::{Buf, Bytes, BytesMut};
use ipam_api::limits::FRAME_BYTES_MAX;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio_util::codec::Decoder;

/// Version of what follows in a frame.
pub(crate) const FRAME_VERSION: u8 = 1;
/// Bytes of the length.
const HEAD_BYTES: usize = 4;
/// The first bytes of TLS; as a length they exceed every limit.
const TLS_RECORD: [u8; 2] = [22, 3];
const _: () = assert!(FRAME_BYTES_MAX < 22 << 24);
/// Maximum bytes that the buffer reserves beyond the received bytes.
const RESERVE_BYTES_MAX: usize = 256 << 10;

/// Cuts a stream into frames of at most `bytes_max`.
#[derive(Debug)]
pub(crate) struct Frames {
    bytes_max: usize,
}

impl Frames {
    /// Decoder with this limit, which differs before and after the handshake.
    pub(crate) fn up_to(bytes_max: usize) -> Self {
        Self { bytes_max }
    }
}

impl Decoder for Frames {
    type Item = Bytes;
    type Error = io::Error;

    fn decode(&mut self, buffer: &mut BytesMut) -> io::Result<Option<Bytes>> {
        let Some(head) = buffer.first_chunk::<HEAD_BYTES>() else { return Ok(None) };
        let length = usize::try_from(u32::from_be_bytes(*head)).unwrap_or(usize::MAX);
        if head.starts_with(&TLS_RECORD) {
            return Err(invalid("it speaks TLS, and here is no [peer_tls]"));
        }
        if length > self.bytes_max {
            return Err(invalid(format!("a frame of {length} bytes, where {} are allowed", self.bytes_max)));
        }
        let missing = (HEAD_BYTES + length).saturating_sub(buffer.len());
        if missing > 0 {
            buffer.reserve(missing.min(RESERVE_BYTES_MAX));
            return Ok(None);
        }
        buffer.advance(HEAD_BYTES);
        Ok(Some(buffer.split_to(length).freeze()))
    }

    /// Reports an end within a frame as `UnexpectedEof`: the caller's process ended while it wrote.
    fn decode_eof(&mut self, buffer: &mut BytesMut) -> io::Result<Option<Bytes>> {
        match self.decode(buffer)? {
            None if !buffer.is_empty() => Err(io::ErrorKind::UnexpectedEof.into()),
            frame => Ok(frame),
        }
    }
}

/// Encodes a value as a whole frame, ready to be written.
///
/// # Errors
/// If the value is larger than any peer accepts.
pub(crate) fn encode<T: Serialize>(value: &T) -> io::Result<Vec<u8>> {
    let too_long = |length| invalid(format!("a message of {length} bytes is larger than a frame may be"));
    encode_up_to(FRAME_BYTES_MAX, value)?.map_err(too_long)
}

/// Encodes a value as a frame, or returns the length of a value that exceeds `bytes_max`.
///
/// # Errors
/// If the value can't be encoded.
pub(super) fn encode_up_to<T: Serialize>(bytes_max: usize, value: &T) -> io::Result<Result<Vec<u8>, usize>> {
    let mut frame = postcard::to_extend(value, vec![0, 0, 0, 0, FRAME_VERSION]).map_err(invalid)?;
    let length = frame.len() - HEAD_BYTES;
    match (frame.first_chunk_mut::<HEAD_BYTES>(), u32::try_from(length)) {
        (Some(head), Ok(announced)) if length <= bytes_max => *head = announced.to_be_bytes(),
        _ => return Ok(Err(length)),
    }
    Ok(Ok(frame))
}

/// The value in a frame.
///
/// # Errors
/// If the frame has another version, or doesn't hold such a value.
pub(crate) fn decode<T: DeserializeOwned>(frame: &[u8]) -> io::Result<T> {
    match frame.split_first() {
        Some((&FRAME_VERSION, body)) => postcard::from_bytes(body).map_err(invalid),
        Some((version, _)) => Err(invalid(format!("a frame of version {version}"))),
        None => Err(invalid("an empty frame")),
    }
}

/// Wraps bytes in a frame without encoding them.
pub(crate) fn encode_raw(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let length = u32::try_from(bytes.len() + 1).map_err(invalid)?;
    let mut frame = Vec::with_capacity(HEAD_BYTES + 1 + bytes.len());
    frame.extend_from_slice(&length.to_be_bytes());
    frame.push(FRAME_VERSION);
    frame.extend_from_slice(bytes);
    Ok(frame)
}

/// Returns the bytes in a frame of [`encode_raw`].
pub(crate) fn decode_raw(frame: &Bytes) -> io::Result<Bytes> {
    match frame.first() {
        Some(&FRAME_VERSION) => Ok(frame.slice(1..)),
        _ => Err(invalid("a frame of another version")),
    }
}

/// An error for what a peer shouldn't have sent.
pub(crate) fn invalid(what: impl ToString) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_framed_value_is_decoded_from_any_pieces() {
        let value = (7_u64, "seven".to_owned(), vec![1_u8, 2, 3]);
        let frame = encode(&value).unwrap();
        let mut frames = Frames::up_to(64);
        let mut buffer = BytesMut::new();
        for byte in &frame[..frame.len() - 1] {
            buffer.extend_from_slice(&[*byte]);
            assert!(frames.decode(&mut buffer).unwrap().is_none());
        }
        buffer.extend_from_slice(&frame[frame.len() - 1..]);
        let body = frames.decode(&mut buffer).unwrap().unwrap();
        assert_eq!(decode::<(u64, String, Vec<u8>)>(&body).unwrap(), value);
        assert!(buffer.is_empty());
    }

    #[test]
    fn an_announced_length_costs_no_memory() {
        let mut frames = Frames::up_to(FRAME_BYTES_MAX);
        let mut buffer = BytesMut::from(&(60_u32 << 20).to_be_bytes()[..]);
        assert!(frames.decode(&mut buffer).unwrap().is_none());
        assert!(buffer.capacity() < 2 * RESERVE_BYTES_MAX);
    }

    #[test]
    fn other_lengths_and_versions_are_refused() {
        let mut frames = Frames::up_to(64);
        assert!(frames.decode(&mut BytesMut::from(&b"GET / HTTP/1.1"[..])).is_err());
        assert!(frames.decode(&mut BytesMut::from(&[0xff; 8][..])).is_err());
        let tls = frames.decode(&mut BytesMut::from(&[22, 3, 1, 2, 0][..])).unwrap_err();
        assert!(tls.to_string().contains("no [peer_tls]"), "{tls}");
        assert!(decode::<u64>(&[]).is_err());
        assert!(decode::<u64>(&[FRAME_VERSION + 1, 0]).is_err());
        assert!(decode::<u64>(&[FRAME_VERSION]).is_err());
    }
}
