//! Writer of backups: the state of one instant as a snapshot, and the sealed segments of its journal. A
//! backup contains nothing of Raft: a restore founds another cluster.

use std::io::{self, BufWriter, Write};

use ipam_api::backup::{Counts, Header, Writer};
use ipam_api::time::Timestamp;

use crate::store::journal::{Journal, Sealed};
use crate::store::snapshot::{self, Instant};
use crate::store::state::SharedState;
use crate::types::StoredMembership;
use ipam_machine::State;

const BUFFER_BYTES: usize = 256 << 10;

/// Origin of a backup, as recorded in its header.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    pub(crate) cluster: String,
    pub(crate) member: String,
    pub(crate) taken_at: Timestamp,
}

/// A backup that waits to be written. Its content doesn't change any more, and no work waits for it.
pub struct Backup {
    header: Header,
    point: Instant,
    segments: Vec<Sealed>,
}

impl Backup {
    /// Captures the present state. Blocks, so it must not be called on async threads.
    ///
    /// # Errors
    /// If part of the history is missing or can't be read.
    pub(crate) fn take(
        shared: &SharedState,
        journal: &Journal,
        source: Source,
        history: bool,
    ) -> io::Result<Self> {
        let (applied, membership) = (None, StoredMembership::default());
        let point = Instant { applied, membership, ..shared.live().point() };
        let mut segments = Vec::new();
        if history {
            // A segment that was sealed a moment ago may still be in memory only.
            journal.files().write_out(shared, false)?;
            segments = journal.files().open_all(&point.state)?;
        }
        let Source { cluster, member, taken_at } = source;
        let state = &point.state;
        let header = Header {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            cluster,
            member,
            taken_at,
            epoch: state.header().epoch,
            revision: state.revision(),
            level: state.header().level,
            digest: format!("{:032x}", state.digest()),
            history,
            segments: segments.len() as u64,
            counts: counts(state, history),
        };
        Ok(Self { header, point, segments })
    }

    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Writes the backup, verifies each segment of the history, and returns the seal. Blocks for a long time,
    /// so it must not be called on async threads.
    ///
    /// # Errors
    /// If the backup can't be written, or a segment is damaged. A partial output has no seal.
    pub fn write(self, to: impl Write) -> io::Result<[u8; blake3::OUT_LEN]> {
        let Self { header, point, segments } = self;
        let mut writer = Writer::begin(BufWriter::with_capacity(BUFFER_BYTES, to), &header)?;
        let mut state = writer.state();
        snapshot::write(&mut state, &point)?;
        state.flush()?;
        for segment in segments {
            let number = segment.number();
            let named = |error: io::Error| {
                io::Error::new(error.kind(), format!("segment {number} of the journal: {error}"))
            };
            segment.verify().map_err(named)?;
            let (length, bytes) = segment.bytes()?;
            writer.segment(number, length, bytes)?;
        }
        writer.finish()
    }
}

fn counts(state: &State, history: bool) -> Counts {
    let sealed: u64 = state.segments.iter().map(|(_, segment)| segment.events).sum();
    Counts {
        networks: state.networks.len() as u64,
        subnets: state.subnets.len() as u64,
        pools: state.pools.len() as u64,
        reservations: state.reservations.len() as u64,
        endpoints: state.endpoints.len() as u64,
        allocations: state.allocations.len() as u64,
        tokens: state.tokens.len() as u64,
        events: state.header().journal.open.events + if history { sealed } else { 0 },
    }
}
