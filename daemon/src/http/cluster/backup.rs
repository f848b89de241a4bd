//! `/v1/cluster/backup`: all of the state, as one file.

use std::io::{self, Write};

use axum::body::{Body, Bytes};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use futures::stream;
use ipam_api::access::{Target, Verb};
use ipam_api::brand::HEADER_REVISION;
use ipam_api::time::Timestamp;
use ipam_api::{Code, Problem};
use ipam_raft::{BlockingSender, blocking, channel_from_blocking};
use serde::Deserialize;
use tokio::sync::mpsc::Receiver;
use tokio::sync::watch;

use crate::http::request::{ApiError, Read};

/// Maximum number of pieces that wait for a slow reader.
const PIECES_WAITING_MAX: usize = 4;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct BackupQuery {
    #[serde(default = "yes")]
    history: bool,
}

fn yes() -> bool {
    true
}

pub(in crate::http) async fn write(read: Read<BackupQuery>) -> Result<Response, ApiError> {
    read.app.who(&read.caller).await?.check((Verb::Read, Target::Backup))?;
    let alone = read.app.backing_up.clone().try_lock_owned().map_err(|_| {
        Problem::new(Code::TooManyRequests, "this member is writing a backup already")
            .help("Wait until that one is written, or ask another member.")
    })?;
    let backup = read.app.node.backup(read.query.history, Timestamp::now(), read.caller.deadline).await?;
    let revision = backup.header().revision;
    let (to, from) = channel_from_blocking(PIECES_WAITING_MAX);
    let pipe = Pipe { to, stopping: read.app.node.stopping() };
    tokio::spawn(blocking(move || {
        let broken = pipe.to.clone();
        let written = read.app.node.guard(|| backup.write(pipe)).map_err(io::Error::other);
        match written.flatten() {
            Ok(_) => read.app.metrics.backed_up(),
            Err(error) => {
                tracing::warn!(%error, revision, "a backup was not written to its end");
                // A client that is still connected must see that the backup is truncated.
                let _ = broken.send(Err(error));
            }
        }
        drop(alone);
    }));
    let head =
        [(CONTENT_TYPE.as_str(), "application/octet-stream"), (HEADER_REVISION, &revision.to_string())];
    Ok((head, Body::from_stream(body(from))).into_response())
}

fn body(from: Receiver<io::Result<Bytes>>) -> impl futures::Stream<Item = io::Result<Bytes>> {
    stream::unfold(from, async |mut from| from.recv().await.map(|piece| (piece, from)))
}

/// Sending half of the response, for the thread that writes.
struct Pipe {
    to: BlockingSender<io::Result<Bytes>>,
    stopping: watch::Receiver<bool>,
}

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if *self.stopping.borrow() {
            return Err(io::Error::other("this member is stopping"));
        }
        let sent = self.to.send(Ok(Bytes::copy_from_slice(bytes)));
        sent.map_err(|_| io::Error::new(io::ErrorKind::BrokenPipe, "the client is gone"))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
