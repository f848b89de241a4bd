//! Writing a backup, from its header to its seal.

use std::io::{self, Read, Write};

use super::{BODY_BYTES_MAX, END, HEADER, Header, MAGIC, PIECE, SEGMENT, STATE, VERSION};

/// Writer of a backup. An unfinished backup lacks the end frame and the seal, so a reader detects it.
pub struct Writer<W> {
    to: W,
    seal: blake3::Hasher,
    frames: u64,
}

impl<W: Write> Writer<W> {
    /// Starts a backup with its header.
    ///
    /// # Errors
    /// If writing fails.
    pub fn begin(to: W, header: &Header) -> io::Result<Self> {
        let mut writer = Self { to, seal: blake3::Hasher::new(), frames: 0 };
        writer.put(MAGIC)?;
        writer.put(&[VERSION])?;
        writer.frame(HEADER, &serde_json::to_vec(header)?)?;
        Ok(writer)
    }

    /// Writer of the state. The caller flushes it at the end.
    pub fn state(&mut self) -> StateWriter<'_, W> {
        StateWriter { writer: self, buffer: Vec::with_capacity(BODY_BYTES_MAX) }
    }

    /// Adds a segment of the history.
    ///
    /// # Errors
    /// If reading or writing fails, or if `from` ends before `length` bytes.
    pub fn segment(&mut self, number: u64, length: u64, mut from: impl Read) -> io::Result<()> {
        let mut head = number.to_be_bytes().to_vec();
        head.extend_from_slice(&length.to_be_bytes());
        self.frame(SEGMENT, &head)?;
        let mut left = length;
        while left > 0 {
            let mut piece = Vec::new();
            (&mut from).take(left.min(BODY_BYTES_MAX as u64)).read_to_end(&mut piece)?;
            if piece.is_empty() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            left -= piece.len() as u64;
            self.frame(PIECE, &piece)?;
        }
        Ok(())
    }

    /// Writes the end frame and the seal; returns the seal.
    ///
    /// # Errors
    /// If writing fails.
    pub fn finish(mut self) -> io::Result<[u8; blake3::OUT_LEN]> {
        let frames = self.frames;
        self.frame(END, &frames.to_be_bytes())?;
        let seal = *self.seal.finalize().as_bytes();
        self.to.write_all(&seal)?;
        self.to.flush()?;
        Ok(seal)
    }

    fn frame(&mut self, kind: u8, body: &[u8]) -> io::Result<()> {
        let length = u32::try_from(body.len()).map_err(io::Error::other)?.to_be_bytes();
        let mut sum = crc32fast::Hasher::new();
        sum.update(&[kind]);
        sum.update(&length);
        sum.update(body);
        self.put(&[kind])?;
        self.put(&length)?;
        self.put(body)?;
        self.put(&sum.finalize().to_be_bytes())?;
        self.frames += 1;
        Ok(())
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.seal.update(bytes);
        self.to.write_all(bytes)
    }
}

/// Divides the state into frames.
pub struct StateWriter<'a, W: Write> {
    writer: &'a mut Writer<W>,
    buffer: Vec<u8>,
}

impl<W: Write> Write for StateWriter<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = BODY_BYTES_MAX - self.buffer.len();
        let taken = bytes.get(..room.min(bytes.len())).unwrap_or(bytes);
        self.buffer.extend_from_slice(taken);
        if self.buffer.len() == BODY_BYTES_MAX {
            self.flush()?;
        }
        Ok(taken.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if !self.buffer.is_empty() {
            self.writer.frame(STATE, &self.buffer)?;
            self.buffer.clear();
        }
        Ok(())
    }
}
