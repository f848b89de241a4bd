//! Frame: the single envelope of everything that the store writes.
//!
//! `kind u8, version u8, length u32, crc32 of these six, body, crc32 of the body`, numbers in big-endian
//! order. The head has a checksum of its own because its length is used before the body can be checked: a
//! flipped length would otherwise look like a file that ends early, which is tolerated.

use std::io::{self, Read, Write};

use ipam_api::limits::STORE_FRAME_BYTES_MAX;

const HEAD: usize = 10;
const SUM: usize = 4;

/// Maximum bytes of a body. Protects memory from a wrong length whose checksum is valid.
pub(in crate::store) const BODY_BYTES_MAX: usize = STORE_FRAME_BYTES_MAX;

/// A frame as it was read.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::store) struct Frame {
    pub(in crate::store) version: u8,
    pub(in crate::store) body: Vec<u8>,
}

/// Writes a frame and returns its length.
pub(in crate::store) fn write(mut to: impl Write, kind: u8, version: u8, body: &[u8]) -> io::Result<usize> {
    let length = u32::try_from(body.len())
        .ok()
        .filter(|_| body.len() <= BODY_BYTES_MAX)
        .ok_or_else(|| invalid(format!("a frame of {} bytes is too long", body.len())))?;
    let [a, b, c, d] = length.to_be_bytes();
    let head = [kind, version, a, b, c, d];
    to.write_all(&head)?;
    to.write_all(&crc32fast::hash(&head).to_be_bytes())?;
    to.write_all(body)?;
    to.write_all(&crc32fast::hash(body).to_be_bytes())?;
    Ok(HEAD + body.len() + SUM)
}

/// Reads a frame. `UnexpectedEof` means that the source ends inside it, and nothing else does; present but
/// wrong bytes are `InvalidData`.
pub(in crate::store) fn read(mut from: impl Read, kind: u8) -> io::Result<Frame> {
    expect_kind(&mut from, kind)?;
    let [version, a, b, c, d] = read_array(&mut from)?;
    let sum: [u8; SUM] = read_array(&mut from)?;
    if crc32fast::hash(&[kind, version, a, b, c, d]) != u32::from_be_bytes(sum) {
        return Err(invalid("the head of a frame is damaged"));
    }
    let length = usize::try_from(u32::from_be_bytes([a, b, c, d])).unwrap_or(usize::MAX);
    if length > BODY_BYTES_MAX {
        return Err(invalid(format!("a frame claims {length} bytes")));
    }
    // The buffer grows with the received bytes: the length alone reserves nothing.
    let mut body = Vec::new();
    (&mut from).take(length as u64).read_to_end(&mut body)?;
    if body.len() < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let sum: [u8; SUM] = read_array(&mut from)?;
    if crc32fast::hash(&body) != u32::from_be_bytes(sum) {
        return Err(invalid("the body of a frame is damaged"));
    }
    Ok(Frame { version, body })
}

/// Reads the kind of the next frame. It is checked before anything else is read, so that bytes of another
/// kind never count as a file that ends early.
pub(in crate::store) fn expect_kind(from: impl Read, kind: u8) -> io::Result<()> {
    let [found] = read_array(from)?;
    if found == kind { Ok(()) } else { Err(invalid(format!("expected kind {kind:#x}, found {found:#x}"))) }
}

pub(in crate::store) fn read_array<const N: usize>(mut from: impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    from.read_exact(&mut bytes)?;
    Ok(bytes)
}

pub(in crate::store) fn invalid(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.into())
}

/// Converts a postcard error to an I/O error: the bytes aren't those that were written.
pub(in crate::store) fn codec(error: postcard::Error) -> io::Error {
    invalid(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reader that records the largest buffer it was given.
    struct CountingReader<'a>(&'a [u8], usize);

    impl Read for CountingReader<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.1 = self.1.max(buffer.len());
            self.0.read(buffer)
        }
    }

    #[test]
    fn a_length_reserves_nothing_and_an_early_end_is_told_from_damage() {
        let mut written = Vec::new();
        write(&mut written, 7, 1, &vec![5; 8 << 20]).unwrap();
        assert_eq!(read(written.as_slice(), 7).unwrap().body.len(), 8 << 20);
        for length in [HEAD, HEAD + 100, written.len() - 1] {
            let mut from = CountingReader(&written[..length], 0);
            assert_eq!(read(&mut from, 7).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
            assert!(length > 1000 || from.1 < 1 << 20, "{} bytes for {length}", from.1);
        }
    }
}
