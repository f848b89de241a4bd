//! Established connection, on the calling side. One task writes requests, another reads responses, which find
//! their callers by number.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt;
use ipam_api::limits::{FRAME_BYTES_MAX, PEER_PING_MS, PEER_SILENCE_MS_MAX};
use tokio::io::{AsyncWriteExt, BufWriter};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_util::codec::FramedRead;

use super::channel::{Call, CallError};
use super::frame::{Frames, decode, encode, invalid};
use super::message::{Answer, Numbered, Request};
use super::stream::{PeerStream, ReadHalf, WriteHalf};
use crate::simulation::pausable;
use crate::sync::held;

/// Bytes that are written at once.
const WRITE_BYTES: usize = 64 << 10;
/// Request number of pings; no caller waits for their answers.
const PING: u64 = 0;

type Reply = oneshot::Sender<Result<Answer, CallError>>;

/// Callers, by the number of the answer that each waits for.
type Callers = Arc<Mutex<BTreeMap<u64, Reply>>>;

/// Serves calls until the connection ends; returns the reason, or none if the connection isn't needed any
/// more. Callers without an answer notice it by their dropped reply.
pub(super) async fn converse(
    stream: PeerStream,
    first: Call,
    waiting: &mut mpsc::Receiver<Call>,
) -> Option<String> {
    let (read, write) = stream.into_inner();
    let callers = Callers::default();
    let mut reader = tokio::spawn(pausable(read_answers(read, callers.clone())));
    let ended = tokio::select! {
        written = write_requests(write, first, waiting, &callers) => match written {
            Ok(()) => None,
            Err(error) => Some(error.to_string()),
        },
        ended = &mut reader => Some(ended.unwrap_or_else(|error| error.to_string())),
    };
    reader.abort();
    held(&callers).clear();
    ended
}

async fn write_requests(
    write: WriteHalf,
    first: Call,
    waiting: &mut mpsc::Receiver<Call>,
    callers: &Callers,
) -> io::Result<()> {
    let mut write = BufWriter::with_capacity(WRITE_BYTES, write);
    let mut ping = interval(Duration::from_millis(PEER_PING_MS));
    ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut number = PING;
    let mut next = Some(first);
    loop {
        while let Some(call) = next.take() {
            number += 1;
            write_one(&mut write, number, call, callers).await?;
            // Waiting calls are written together.
            next = waiting.try_recv().ok();
        }
        write.flush().await?;
        tokio::select! {
            call = waiting.recv() => match call {
                Some(call) => next = Some(call),
                None => return Ok(()),
            },
            _ = ping.tick() => write.write_all(&encode(&(PING, &Request::Ping))?).await?,
        }
    }
}

async fn write_one(
    write: &mut BufWriter<WriteHalf>,
    number: u64,
    call: Call,
    callers: &Callers,
) -> io::Result<()> {
    let frame = match encode(&(number, &call.request)) {
        Ok(frame) => frame,
        Err(error) => {
            call.fail(&error.to_string());
            return Ok(());
        }
    };
    if call.reply.is_closed() || !call.stage.try_send() {
        return Ok(());
    }
    held(callers).insert(number, call.reply);
    write.write_all(&frame).await
}

/// Delivers answers until the peer disconnects, is silent for too long, or violates the protocol.
async fn read_answers(read: ReadHalf, callers: Callers) -> String {
    let mut frames = FramedRead::new(read, Frames::up_to(FRAME_BYTES_MAX));
    let silence = Duration::from_millis(PEER_SILENCE_MS_MAX);
    loop {
        let answer = match timeout(silence, frames.next()).await {
            Err(_) => return format!("it has been silent for {PEER_SILENCE_MS_MAX} ms"),
            Ok(None) => return "it hung up".to_owned(),
            Ok(Some(frame)) => frame.and_then(|frame| decode::<Numbered<Answer>>(&frame)),
        };
        match answer {
            Ok((PING, _)) => {}
            Ok((number, answer)) => {
                // A missing receiver means that the caller has given up.
                let caller = held(&callers).remove(&number);
                if let Some(caller) = caller {
                    let _ = caller.send(Ok(answer));
                }
            }
            Err(error) => return invalid(format!("it answers nonsense: {error}")).to_string(),
        }
    }
}
