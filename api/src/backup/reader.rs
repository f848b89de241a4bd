//! Reader of backups, piece by piece. Each piece is checked before it is returned.

use std::io::{self, Read};

use super::{
    BODY_BYTES_MAX, END, FRAME_BYTES, HEADER, Header, MAGIC, PIECE, SEGMENT, STATE, Unusable, VERSION,
};

/// A piece of a backup.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece {
    /// The next bytes of the state.
    State(Vec<u8>),
    /// A segment of the history begins.
    Segment {
        /// Number of the segment.
        number: u64,
        /// Number of bytes that follow.
        length: u64,
    },
    /// The next bytes of that segment.
    Bytes(Vec<u8>),
}

/// Summary of a complete, verified backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// Header of the backup.
    pub header: Header,
    /// Length of the backup, in bytes.
    pub bytes: u64,
    /// Seal of the backup: the BLAKE3 hash of all its other bytes, in hexadecimal.
    pub seal: String,
}

/// Reads every byte of a backup and checks it.
///
/// # Errors
/// The defect, and its offset.
pub fn check(from: impl Read) -> Result<Checked, Unusable> {
    let mut reader = Reader::begin(from)?;
    while reader.next_piece()?.is_some() {}
    let (header, bytes, seal) = (reader.header, reader.at, reader.sealed.unwrap_or_default());
    Ok(Checked { header, bytes, seal })
}

/// A backup being read.
pub struct Reader<R> {
    from: R,
    seal: blake3::Hasher,
    /// Offset of the reader, in bytes.
    at: u64,
    frames: u64,
    header: Header,
    /// Remaining bytes of the current segment.
    left: u64,
    segments: u64,
    state: bool,
    sealed: Option<String>,
}

impl<R: Read> Reader<R> {
    /// Reads the header.
    ///
    /// # Errors
    /// If the file isn't a backup, is damaged, or has a newer format.
    pub fn begin(mut from: R) -> Result<Self, Unusable> {
        let mut head = [0; MAGIC.len() + 1];
        match from.read_exact(&mut head) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Err(Unusable::Foreign),
            read => read?,
        }
        let [magic @ .., version] = head;
        if magic != *MAGIC {
            return Err(Unusable::Foreign);
        }
        if version > VERSION {
            return Err(Unusable::TooNew { version });
        }
        let mut reader = Self {
            from,
            seal: blake3::Hasher::new(),
            at: head.len() as u64,
            frames: 0,
            header: Header::default(),
            left: 0,
            segments: 0,
            state: false,
            sealed: None,
        };
        if version == 0 {
            return Err(reader.damaged("there is no version 0"));
        }
        reader.seal.update(&head);
        let (kind, body) = reader.frame()?;
        if kind != HEADER {
            return Err(reader.damaged("the header is missing"));
        }
        reader.header = serde_json::from_slice(&body)
            .map_err(|error| reader.damaged(format!("the header can't be parsed: {error}")))?;
        Ok(reader)
    }

    /// Header of the backup.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Seal of the backup, once all of it has been read.
    pub fn seal(&self) -> Option<&str> {
        self.sealed.as_deref()
    }

    /// Returns the next piece; `None` after the last one, once the seal is verified.
    ///
    /// # Errors
    /// The defect, and its offset.
    pub fn next_piece(&mut self) -> Result<Option<Piece>, Unusable> {
        if self.sealed.is_some() {
            return Ok(None);
        }
        let (kind, body) = self.frame()?;
        match kind {
            STATE if self.left == 0 && self.segments == 0 && !body.is_empty() => {
                self.state = true;
                Ok(Some(Piece::State(body)))
            }
            SEGMENT if self.left == 0 && self.state => {
                let (number, length) = self.announced(&body)?;
                (self.left, self.segments) = (length, self.segments + 1);
                Ok(Some(Piece::Segment { number, length }))
            }
            PIECE if body.len() as u64 <= self.left && !body.is_empty() => {
                self.left -= body.len() as u64;
                Ok(Some(Piece::Bytes(body)))
            }
            END if self.left == 0 && self.state => self.end(&body).map(|()| None),
            _ => Err(self.damaged("a piece is not where it belongs")),
        }
    }

    fn announced(&self, body: &[u8]) -> Result<(u64, u64), Unusable> {
        let (number, length) = body.split_first_chunk().unwrap_or((&[0; 8], &[]));
        let length =
            length.try_into().map_err(|_| self.damaged("a segment isn't announced as it should be"))?;
        Ok((u64::from_be_bytes(*number), u64::from_be_bytes(length)))
    }

    fn end(&mut self, body: &[u8]) -> Result<(), Unusable> {
        if body != (self.frames - 1).to_be_bytes() || self.segments != self.header.segments {
            return Err(self.damaged("it has another number of pieces than it says"));
        }
        let seal = self.seal.finalize();
        let mut found = [0; blake3::OUT_LEN];
        self.fill(&mut found)?;
        if seal != found {
            return Err(self.damaged("its seal is broken"));
        }
        if self.from.read(&mut [0])? != 0 {
            return Err(self.damaged("something follows its end"));
        }
        self.sealed = Some(seal.to_hex().to_string());
        Ok(())
    }

    fn frame(&mut self) -> Result<(u8, Vec<u8>), Unusable> {
        let begin = self.at;
        let mut head = [0; 5];
        self.fill(&mut head)?;
        let [kind, length @ ..] = head;
        let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
        if length > BODY_BYTES_MAX {
            return Err(Unusable::Damaged { at: begin, what: format!("a piece claims {length} bytes") });
        }
        let mut body = vec![0; length];
        self.fill(&mut body)?;
        let mut sum = [0; 4];
        self.fill(&mut sum)?;
        let mut right = crc32fast::Hasher::new();
        right.update(&head);
        right.update(&body);
        if right.finalize().to_be_bytes() != sum {
            let what = format!("a piece of {length} bytes is not as it was written");
            return Err(Unusable::Damaged { at: begin, what });
        }
        for part in [&head[..], &body, &sum] {
            self.seal.update(part);
        }
        debug_assert_eq!(self.at - begin, FRAME_BYTES + length as u64);
        self.frames += 1;
        Ok((kind, body))
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), Unusable> {
        match self.from.read_exact(bytes) {
            Ok(()) => {
                self.at += bytes.len() as u64;
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                Err(self.damaged("it ends too early"))
            }
            Err(error) => Err(error.into()),
        }
    }

    fn damaged(&self, what: impl Into<String>) -> Unusable {
        Unusable::Damaged { at: self.at, what: what.into() }
    }
}
