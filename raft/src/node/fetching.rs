//! Background transfer of missing journal segments from other members, in pieces. Segments are missing after
//! a snapshot replaced the state, or if the local copy was damaged.

use std::sync::Arc;
use std::time::Duration;

use ipam_api::limits::JOURNAL_PIECE_BYTES;
use tokio::time::{Instant, sleep};

use super::lifecycle::Lifecycle;
use super::running::Running;
use crate::store::{self, Journal};
use crate::transport::{Answer, Purpose, Request};
use ipam_machine::journal::Segment;

/// Interval between two checks for missing segments.
const LOOK: Duration = Duration::from_millis(500);
/// Bytes beyond a multiple of the segment's events that its file may have, for the index.
const SLACK_BYTES: u64 = 1 << 20;
/// Time limit of one piece.
const PATIENCE: Duration = Duration::from_secs(10);

/// Fetches missing segments while the member runs.
pub(super) async fn run(lifecycle: Arc<Lifecycle>, journal: Journal) {
    loop {
        sleep(LOOK).await;
        let Some(running) = lifecycle.running() else { continue };
        for (number, segment) in journal.missing() {
            if let Err(why) = fetch(&journal, &running, number, &segment).await {
                tracing::debug!(number, why, "a segment of the journal can't be fetched yet");
                break;
            }
            tracing::info!(
                number,
                events = segment.events,
                "a segment of the journal was fetched from another member"
            );
        }
    }
}

/// Tries the other members in turn until one has the whole segment.
async fn fetch(journal: &Journal, running: &Running, number: u64, segment: &Segment) -> Result<(), String> {
    let mut why = "there is no other member".to_owned();
    for (id, member) in running.members() {
        if id == running.me.member_id {
            continue;
        }
        let channel = running.peers.channel(id, &member, Purpose::Journal);
        match fetch_from(journal, &channel, number, segment).await {
            Ok(()) => return Ok(()),
            Err(error) => why = format!("{}: {error}", member.name),
        }
    }
    Err(why)
}

async fn fetch_from(
    journal: &Journal,
    channel: &crate::transport::Channel,
    number: u64,
    segment: &Segment,
) -> Result<(), String> {
    loop {
        let offset = blocking(journal, move |journal| Ok(journal.files().come(number))).await?;
        let request = Request::JournalPiece { number, offset };
        let answer =
            channel.call(request, Instant::now() + PATIENCE).await.map_err(|error| error.to_string())?;
        let (piece, length) = match answer {
            Answer::JournalPiece { piece, length } => (piece, length),
            Answer::Failed(why) => return Err(why),
            _ => return Err("it answered something else".to_owned()),
        };
        if length > segment.bytes.saturating_mul(4).saturating_add(SLACK_BYTES) {
            return Err(format!("it has {length} bytes for a segment of {}", segment.bytes));
        }
        let come = offset.saturating_add(piece.len() as u64);
        let segment = segment.clone();
        let whole = blocking(journal, move |journal| {
            if come < length && !piece.is_empty() {
                return journal.files().add_piece(number, &piece).map(|()| false);
            }
            journal.files().add_piece(number, &piece)?;
            journal.files().accept(number, &segment).map(|()| true)
        })
        .await?;
        if whole {
            return Ok(());
        }
    }
}

/// Reads a piece of a segment for a peer that lacks it.
pub(super) async fn piece(journal: &Journal, number: u64, offset: u64) -> Result<Answer, String> {
    let read = move |journal: &Journal| journal.files().read_piece(number, offset, JOURNAL_PIECE_BYTES);
    let (piece, length) = blocking(journal, read).await?;
    Ok(Answer::JournalPiece { piece, length })
}

async fn blocking<T: Send + 'static>(
    journal: &Journal,
    work: impl FnOnce(&Journal) -> std::io::Result<T> + Send + 'static,
) -> Result<T, String> {
    let journal = journal.clone();
    store::blocking(move || work(&journal)).await.map_err(|error| error.to_string())
}
