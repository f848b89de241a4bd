//! Transfer of a snapshot between members: a head, pieces, an empty piece, and one answer. Each transfer has
//! a separate connection.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use ipam_api::limits::{FRAME_BYTES_MAX, PREFACE_BYTES_MAX, SNAPSHOT_PIECE_BYTES};
use openraft::errors::{NetworkError, StreamingError, Unreachable};
use openraft::raft::SnapshotResponse;
use openraft::type_config::alias::{SnapshotMetaOf, SnapshotOf};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;
use tokio_util::codec::FramedRead;

use super::frame::{Frames, decode, decode_raw, encode, encode_raw, invalid};
use super::host::Host;
use super::peers::Target;
use crate::rate_limit::RateLimit;
use crate::store::SnapshotFile;
use crate::types::{Types, Vote};

/// Time limit of one piece. A snapshot as a whole may take as long as it makes progress.
const PIECE_PATIENCE: Duration = Duration::from_secs(10);

/// The head before the pieces.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SnapshotHead {
    /// The leader that sends it.
    pub(crate) vote: Vote,
    /// The entry and the membership of the snapshot.
    pub(crate) meta: SnapshotMetaOf<Types>,
    /// Bytes of all pieces.
    pub(crate) length: u64,
}

/// Final response of the receiver.
type Receipt = Result<SnapshotResponse<Types>, String>;

/// Sends a snapshot and waits until it is installed.
pub(super) async fn send(
    target: &Target,
    vote: Vote,
    snapshot: SnapshotOf<Types, SnapshotFile>,
    rate_limit: RateLimit,
    install_patience: Duration,
) -> Result<SnapshotResponse<Types>, StreamingError<Types>> {
    let stream = target.connect().await.map_err(unreachable)?;
    let (read, write) = stream.into_inner();
    let sent = tokio::select! {
        // The receiver answers only at the end, or when it aborts.
        receipt = receipt(read) => receipt,
        error = send_all(write, vote, snapshot, rate_limit, install_patience) => Err(error),
    };
    match sent {
        Ok(Ok(response)) => Ok(response),
        // Reported as unreachable, so that openraft backs off: the receiver's disk may be full.
        Ok(Err(why)) => Err(unreachable(why)),
        Err(error) => Err(StreamingError::Network(NetworkError::new(&error))),
    }
}

fn unreachable(why: impl ToString) -> StreamingError<Types> {
    StreamingError::Unreachable(Unreachable::from_string(why))
}

/// Writes the whole snapshot, then waits; returns only an error.
async fn send_all(
    mut write: impl AsyncWrite + Unpin,
    vote: Vote,
    snapshot: SnapshotOf<Types, SnapshotFile>,
    mut rate_limit: RateLimit,
    install_patience: Duration,
) -> io::Error {
    let SnapshotOf::<Types, SnapshotFile> { meta, snapshot: mut file } = snapshot;
    let head = SnapshotHead { vote, meta, length: file.length() };
    let mut write_all = async || {
        write_in_time(&mut write, &encode(&head)?).await?;
        loop {
            let piece = file.read_piece(SNAPSHOT_PIECE_BYTES).await.map_err(io::Error::other)?;
            write_in_time(&mut write, &encode_raw(&piece)?).await?;
            if piece.is_empty() {
                return write.flush().await;
            }
            tokio::time::sleep(rate_limit.rest(piece.len() as u64)).await;
        }
    };
    match write_all().await {
        Ok(()) => {
            tokio::time::sleep(install_patience).await;
            io::Error::new(io::ErrorKind::TimedOut, "the snapshot was sent, but not installed in time")
        }
        Err(error) => error,
    }
}

async fn write_in_time(write: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) -> io::Result<()> {
    match timeout(PIECE_PATIENCE, write.write_all(bytes)).await {
        Ok(written) => written,
        Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "a piece of a snapshot got stuck")),
    }
}

async fn receipt(read: impl AsyncRead + Unpin) -> io::Result<Receipt> {
    let mut frames = FramedRead::new(read, Frames::up_to(PREFACE_BYTES_MAX));
    match frames.next().await {
        Some(frame) => decode(&frame?),
        None => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it hung up in the middle of a snapshot")),
    }
}

/// Receives and installs a snapshot, and sends the result.
pub(super) async fn receive<H: Host>(
    host: &H,
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
) -> io::Result<()> {
    let receipt: Receipt = take_in(host, &mut stream).await;
    let receipt = receipt.inspect_err(|why| tracing::warn!(%why, "a snapshot was not installed"));
    stream.write_all(&encode(&receipt)?).await?;
    stream.shutdown().await
}

async fn take_in<H: Host>(
    host: &H,
    stream: &mut (impl AsyncRead + Unpin),
) -> Result<SnapshotResponse<Types>, String> {
    let mut frames = FramedRead::new(stream, Frames::up_to(FRAME_BYTES_MAX));
    let head: SnapshotHead =
        next_frame(&mut frames).await.and_then(|frame| decode(&frame)).map_err(|error| error.to_string())?;
    let mut incoming = host.incoming().await?;
    let mut missing = head.length;
    loop {
        let piece = next_frame(&mut frames).await.and_then(|frame| decode_raw(&frame));
        let piece = piece.map_err(|error| error.to_string())?;
        if piece.is_empty() {
            break;
        }
        missing = missing
            .checked_sub(piece.len() as u64)
            .ok_or_else(|| "the snapshot is longer than it said".to_owned())?;
        incoming.write_piece(piece).await.map_err(|error| error.to_string())?;
    }
    if missing > 0 {
        return Err(format!("the snapshot ends {missing} bytes before it should"));
    }
    host.install(head, incoming).await
}

async fn next_frame(frames: &mut FramedRead<impl AsyncRead + Unpin, Frames>) -> io::Result<Bytes> {
    match timeout(PIECE_PATIENCE, frames.next()).await {
        Ok(Some(frame)) => frame,
        Ok(None) => {
            Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it hung up in the middle of a snapshot"))
        }
        Err(_) => Err(invalid("it fell silent in the middle of a snapshot")),
    }
}
