//! Directory of the journal: its writer and its files.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use super::block::Block;
use super::recent::{Recent, Waiting, rebuild};
use super::sealed::{self, Sealed};
use super::source::JournalSource;
use crate::store::directory::{StoreError, disk, frame};
use crate::sync::held;
use ipam_machine::journal::{Chain, JournalHead, Segment};
use ipam_machine::{EventId, State};

const CHUNK: u8 = 0xE4;
const CHUNK_VERSION: u8 = 1;

#[derive(Debug)]
pub(crate) struct JournalFiles {
    dir: PathBuf,
    writing: Mutex<Option<OpenFile>>,
    /// Sealed segments that are here, by number.
    here: Mutex<BTreeSet<u64>>,
}

/// The open segment's file, and how much of the segment is in it.
#[derive(Debug)]
struct OpenFile {
    number: u64,
    install_count: u64,
    file: File,
    path: PathBuf,
    block: usize,
    byte: usize,
}

impl JournalFiles {
    /// Opens the directory, and removes unfinished files.
    pub(in crate::store) fn open(data_dir: &Path) -> Result<Self, StoreError> {
        let dir = data_dir.join("journal");
        disk::create_dir(&dir).map_err(StoreError::io(&dir))?;
        let mut here = BTreeSet::new();
        for entry in fs::read_dir(&dir).map_err(StoreError::io(&dir))? {
            let entry = entry.map_err(StoreError::io(&dir))?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name.ends_with(".new") {
                fs::remove_file(entry.path()).map_err(StoreError::io(&entry.path()))?;
            } else if let Some(number) = name.strip_prefix("segment-").and_then(|number| number.parse().ok())
            {
                here.insert(number);
            }
        }
        Ok(Self { dir, writing: Mutex::new(None), here: Mutex::new(here) })
    }

    /// Loads the open segment of a state from its file. Later frames in the file are ignored, since the
    /// replay of the log adds them again.
    pub(in crate::store) fn load_open(&self, head: &JournalHead) -> io::Result<Vec<Arc<Block>>> {
        if head.open.frames == 0 {
            return Ok(Vec::new());
        }
        let blocks = match disk::if_there(fs::read(self.open_path(head.segment)))? {
            Some(content) => read_chunks(&content, head)?,
            // The segment was sealed after the rows were written.
            None => {
                let sealed = Sealed::open_any(&self.path_of(head.segment))?;
                (0..sealed.blocks()).map(|number| sealed.block(number)).collect::<io::Result<_>>()?
            }
        };
        rebuild(head, blocks.iter().flat_map(Block::raw))
    }

    /// Forgets segments that the state doesn't have yet; they are written again once it has them.
    pub(in crate::store) fn fit(&self, state: &State) {
        held(&self.here).retain(|number| state.segments.get(*number).is_some());
    }

    /// Writes the part of the journal that is only in memory; with `sync`, durably.
    pub(in crate::store) fn write_out(&self, source: &dyn JournalSource, sync: bool) -> io::Result<()> {
        let mut writing = held(&self.writing);
        let (recent, oldest) = source.to_write();
        self.write_sealed(&recent)?;
        let before = writing.take();
        let open = match before {
            Some(open) if open.number == recent.number && open.install_count == recent.install_count => {
                let mut open = open;
                open.append(&recent)?;
                open
            }
            before => {
                let open = OpenFile::create(self.open_path(recent.number), &recent)?;
                if let Some(before) = before.filter(|before| before.path != open.path) {
                    disk::if_there(fs::remove_file(&before.path))?;
                }
                open
            }
        };
        if sync {
            open.file.sync_data()?;
        }
        *writing = Some(open);
        if let Some(last) = recent.sealed.last() {
            source.written(last.number, recent.install_count);
        }
        self.trim(oldest)
    }

    /// Writes the sealed segments that are only in memory.
    pub(in crate::store) fn write_sealed(&self, recent: &Recent) -> io::Result<()> {
        for waiting in recent.sealed.iter().filter(|waiting| !self.has(waiting.number)) {
            let Waiting { number, segment, blocks } = waiting;
            sealed::write(&self.path_of(*number), *number, segment, blocks)?;
            held(&self.here).insert(*number);
        }
        Ok(())
    }

    /// Registers the segments of a state whose files are present and match.
    pub(in crate::store) fn look_again(&self, state: &State) {
        for (number, segment) in state.segments.iter() {
            if Sealed::open(&self.path_of(number), number, segment).is_ok() {
                held(&self.here).insert(number);
            }
        }
    }

    /// Removes the trimmed segments.
    fn trim(&self, oldest: u64) -> io::Result<()> {
        let gone: Vec<u64> = held(&self.here).range(..oldest).copied().collect();
        for number in gone {
            disk::if_there(fs::remove_file(self.path_of(number)))?;
            held(&self.here).remove(&number);
        }
        Ok(())
    }

    /// Returns true if the file of a sealed segment is present.
    pub(in crate::store) fn has(&self, number: u64) -> bool {
        held(&self.here).contains(&number)
    }

    /// Opens a sealed segment; fails if its file isn't the segment that the state has.
    pub(super) fn sealed(&self, number: u64, segment: &Segment) -> io::Result<Sealed> {
        Sealed::open(&self.path_of(number), number, segment)
    }

    /// Opens all sealed segments of a state: they stay readable even if they are trimmed meanwhile.
    pub(in crate::store) fn open_all(&self, state: &State) -> io::Result<Vec<Sealed>> {
        let open = |(number, segment)| {
            if !self.has(number) {
                return Err(frame::invalid(format!(
                    "segment {number} of the journal isn't here yet; another member has it"
                )));
            }
            self.sealed(number, segment)
        };
        state.segments.iter().map(open).collect()
    }

    /// Puts a damaged segment aside, for an analysis.
    pub(super) fn put_aside(&self, number: u64) {
        let path = self.path_of(number);
        if held(&self.here).remove(&number)
            && let Err(error) = fs::rename(&path, path.with_extension("damaged"))
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(%error, path = %path.display(), "a damaged segment of the journal can't be put aside");
        }
    }

    /// A piece of a sealed segment's file, for a peer, with the file's length.
    pub(crate) fn read_piece(
        &self,
        number: u64,
        offset: u64,
        bytes_max: usize,
    ) -> io::Result<(Vec<u8>, u64)> {
        if !self.has(number) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let file = File::open(self.path_of(number))?;
        let length = file.metadata()?.len();
        let left = usize::try_from(length.saturating_sub(offset)).unwrap_or(usize::MAX);
        let mut piece = vec![0; left.min(bytes_max)];
        file.read_exact_at(&mut piece, offset)?;
        Ok((piece, length))
    }

    /// Number of received bytes of a segment.
    pub(crate) fn come(&self, number: u64) -> u64 {
        fs::metadata(self.incoming_path(number)).map_or(0, |metadata| metadata.len())
    }

    /// Appends a piece that a peer has sent to the pieces received before.
    pub(crate) fn add_piece(&self, number: u64, piece: &[u8]) -> io::Result<()> {
        OpenOptions::new().append(true).create(true).open(self.incoming_path(number))?.write_all(piece)
    }

    /// Checks every received byte against the state. Keeps the segment if it is intact, else deletes the
    /// file.
    pub(crate) fn accept(&self, number: u64, segment: &Segment) -> io::Result<()> {
        let path = self.incoming_path(number);
        let whole = Sealed::open(&path, number, segment).and_then(|sealed| sealed.verify());
        if let Err(error) = whole {
            fs::remove_file(&path)?;
            return Err(error);
        }
        File::open(&path)?.sync_all()?;
        disk::rename(&path, &self.path_of(number))?;
        held(&self.here).insert(number);
        Ok(())
    }

    pub(super) fn path_of(&self, number: u64) -> PathBuf {
        self.dir.join(format!("segment-{number:010}"))
    }

    pub(super) fn open_path(&self, number: u64) -> PathBuf {
        self.dir.join(format!("open-{number:010}"))
    }

    fn incoming_path(&self, number: u64) -> PathBuf {
        self.dir.join(format!("incoming-{number:010}"))
    }
}

impl OpenFile {
    /// Creates the file with all frames of the open segment so far.
    fn create(path: PathBuf, recent: &Recent) -> io::Result<Self> {
        let aside = path.with_extension("new");
        let file = File::create(&aside)?;
        let mut open = Self {
            number: recent.number,
            install_count: recent.install_count,
            file,
            path,
            block: 0,
            byte: 0,
        };
        open.append(recent)?;
        disk::rename(&aside, &open.path)?;
        Ok(open)
    }

    /// Appends the frames that were added since the last write.
    fn append(&mut self, recent: &Recent) -> io::Result<()> {
        let mut content = Vec::new();
        for (number, block) in recent.open.iter().enumerate().skip(self.block) {
            let from = if number == self.block { self.byte } else { 0 };
            let bytes = block.bytes();
            let chunk = bytes.get(from..).unwrap_or_default();
            if !chunk.is_empty() {
                frame::write(&mut content, CHUNK, CHUNK_VERSION, chunk)?;
            }
            (self.block, self.byte) = (number, bytes.len());
        }
        self.file.write_all(&content)
    }
}

/// Chunks of an open segment's file, as far as they are whole and the state needs them.
pub(super) fn read_chunks(mut content: &[u8], head: &JournalHead) -> io::Result<Vec<Block>> {
    let mut blocks = Vec::new();
    let (mut chain, mut frames) = (head.open.before, 0);
    while frames < head.open.frames {
        let chunk = frame::read(&mut content, CHUNK)?;
        if chunk.version != CHUNK_VERSION {
            return Err(frame::invalid(format!("a chunk of the journal has version {}", chunk.version)));
        }
        let (block, after) = Block::parse(chunk.body, chain)?;
        (chain, frames) = (after, frames + block.frames());
        blocks.push(block);
    }
    Ok(blocks)
}

/// The content of an open segment's file.
pub(super) struct OpenChunks {
    pub(super) frames: u64,
    /// Chain after the last frame.
    pub(super) chain: Chain,
    /// True if the file ends within a chunk.
    pub(super) torn: bool,
}

/// Checks all chunks of an open segment's file. The first event follows `behind`, each other one its
/// predecessor.
pub(super) fn open_chunks(
    mut content: &[u8],
    before: Chain,
    mut behind: Option<EventId>,
) -> io::Result<OpenChunks> {
    let mut open = OpenChunks { frames: 0, chain: before, torn: false };
    while !content.is_empty() {
        let chunk = match frame::read(&mut content, CHUNK) {
            Ok(chunk) => chunk,
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                open.torn = true;
                break;
            }
            Err(error) => return Err(error),
        };
        if chunk.version != CHUNK_VERSION {
            return Err(frame::invalid(format!("a chunk of it has version {}", chunk.version)));
        }
        let (block, chain) = Block::parse(chunk.body, open.chain)?;
        for read in block.decoded() {
            let first = read?.first();
            if behind.is_some_and(|behind| first <= behind) {
                return Err(frame::invalid(format!("event {first} of it comes too late")));
            }
            behind = Some(first);
        }
        (open.chain, open.frames) = (chain, open.frames + block.frames());
    }
    Ok(open)
}
