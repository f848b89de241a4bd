//! Test access, behind an unshipped feature: broken invariants, and snapshots without a directory.

use std::io;

use crate::progress::Progress;
use crate::store::journal::Recent;
use crate::store::snapshot::{self, Instant};
use ipam_machine::model::word_of;
use ipam_machine::{Journaled, RowKey, State, broken};

/// Request id of a command or a read that breaks an invariant wherever it is carried out.
pub const BREAKING_REQUEST: &str = "break-an-invariant";

/// Breaks an invariant if the request has that id.
pub fn break_if_asked(request_id: &str) {
    if request_id == BREAKING_REQUEST {
        broken("a command of a test breaks nothing", BREAKING_REQUEST);
    }
}

/// Name of a network whose row breaks an invariant when it is loaded.
pub const BREAKING_TO_LOAD: &str = "break-when-loaded";
/// Name of a network whose row breaks an invariant when the row writer writes it.
pub const BREAKING_TO_WRITE: &str = "break-when-written";
/// Name of a network whose row breaks an invariant when a snapshot is written.
pub const BREAKING_TO_SEND: &str = "break-when-sent";

/// Breaks an invariant if the row is that of the network with this name.
pub(super) fn break_if_named(name: &str, key: RowKey, row: &[u8]) {
    if word_of(key.table) == "network" && row.windows(name.len()).any(|part| part == name.as_bytes()) {
        broken("a row of a test breaks nothing", name);
    }
}

/// Bytes of one piece of a snapshot on its way in this test.
const PIECE_BYTES: usize = 100;

/// Writes a snapshot of a state and of its journal, hands it over in pieces, and reads the state in it.
///
/// # Errors
/// If a member would fail to write or to read the snapshot.
pub fn through_a_snapshot(state: &State, journaled: Vec<Journaled>) -> io::Result<State> {
    let mut recent = Recent::new(&State::new().header().journal, Vec::new());
    recent.take(journaled);
    let mut written = Vec::new();
    let instant = Instant { state: state.clone(), journal: recent.open().to_vec(), ..Instant::default() };
    snapshot::write(&mut written, &instant)?;
    let received: Vec<u8> = written.chunks(PIECE_BYTES).flatten().copied().collect();
    Ok(snapshot::load(received.as_slice(), &Progress::default())?.state)
}
