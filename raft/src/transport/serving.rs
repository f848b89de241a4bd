//! Established connection of a peer, on the server side.

use std::future::Future;
use std::io;
use std::time::Duration;

use futures::stream::{FuturesOrdered, FuturesUnordered};
use futures::{Stream, StreamExt};
use ipam_api::limits::{APPENDS_UNANSWERED_MAX, FRAME_BYTES_MAX, PEER_CALLS_MAX, PEER_SILENCE_MS_MAX};
use tokio::io::{AsyncWriteExt, BufWriter};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::codec::FramedRead;

use super::frame::{Frames, decode, encode, encode_up_to, invalid};
use super::host::Host;
use super::message::{Answer, Declined, Numbered, Request};
use super::stream::{PeerStream, ReadHalf, WriteHalf};

/// Maximum number of answers that wait to be written.
const ANSWERS_WAITING_MAX: usize = 1024;
/// Silence after which a caller counts as disconnected; callers send pings.
const SILENCE: Duration = Duration::from_millis(2 * PEER_SILENCE_MS_MAX);

/// Both ends of a connection: requests arrive here, and a separate task sends the answers. So a slow reader
/// doesn't block the reading of requests.
struct Lane {
    requests: FramedRead<ReadHalf, Frames>,
    answers: mpsc::Sender<Numbered<Answer>>,
}

impl Lane {
    fn split(stream: PeerStream) -> (Self, impl Future<Output = io::Result<()>>) {
        let (read, write) = stream.into_inner();
        let (answers, waiting) = mpsc::channel(ANSWERS_WAITING_MAX);
        let requests = FramedRead::new(read, Frames::up_to(FRAME_BYTES_MAX));
        (Self { requests, answers }, write_answers(write, waiting))
    }

    /// The next request that isn't a ping; none when the caller hung up.
    async fn next(&mut self) -> io::Result<Option<Numbered<Request>>> {
        loop {
            let frame = match timeout(SILENCE, self.requests.next()).await {
                Err(_) => return Err(invalid("it has been silent for too long")),
                Ok(None) => return Ok(None),
                Ok(Some(frame)) => frame?,
            };
            match decode(&frame)? {
                (number, Request::Ping) => {
                    // If the queue is full, the queued answers are sufficient signs of life.
                    let _ = self.answers.try_send((number, Answer::Pong));
                }
                numbered => return Ok(Some(numbered)),
            }
        }
    }

    async fn answer(&self, answer: Numbered<Answer>) -> io::Result<()> {
        self.answers.send(answer).await.map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

async fn write_answers(write: WriteHalf, mut waiting: mpsc::Receiver<Numbered<Answer>>) -> io::Result<()> {
    let mut write = BufWriter::with_capacity(64 << 10, write);
    while let Some(mut answer) = waiting.recv().await {
        loop {
            write.write_all(&encode_answer(&answer)?).await?;
            match waiting.try_recv() {
                Ok(next) => answer = next,
                Err(_) => break,
            }
        }
        write.flush().await?;
    }
    Ok(())
}

/// Encodes an answer as a frame. An answer that is too large becomes an error for its caller alone, since
/// other callers share the connection.
fn encode_answer(answer: &Numbered<Answer>) -> io::Result<Vec<u8>> {
    let bytes = match encode_up_to(FRAME_BYTES_MAX, answer)? {
        Ok(frame) => return Ok(frame),
        Err(bytes) => bytes,
    };
    let (number, answer) = answer;
    tracing::error!(bytes, "an answer to a peer is larger than a frame may be");
    let instead = match answer {
        Answer::Propose(_) => Answer::Propose(Err(Declined::TooLarge { bytes: bytes as u64 })),
        _ => Answer::Failed(format!("the answer has {bytes} bytes, and a frame at most {FRAME_BYTES_MAX}")),
    };
    encode(&(*number, instead))
}

/// Begins and answers requests in the order of their arrival, as log entries require.
pub(super) async fn in_order<H: Host>(host: H, stream: PeerStream) -> io::Result<()> {
    serve::<_, _, FuturesOrdered<_>>(host, stream, APPENDS_UNANSWERED_MAX + 1, answer).await
}

/// Answers all other requests as they complete.
pub(super) async fn as_they_come<H: Host>(host: H, stream: PeerStream) -> io::Result<()> {
    serve::<_, _, FuturesUnordered<_>>(host, stream, PEER_CALLS_MAX, answer).await
}

async fn answer<H: Host>(host: H, (number, request): Numbered<Request>) -> Numbered<Answer> {
    (number, host.answer(request).await)
}

/// Serves requests, a bounded number at once, in the order of `R`.
async fn serve<H, F, R>(
    host: H,
    stream: PeerStream,
    running_max: usize,
    answer: impl Fn(H, Numbered<Request>) -> F,
) -> io::Result<()>
where
    H: Host,
    F: Future<Output = Numbered<Answer>>,
    R: Stream<Item = Numbered<Answer>> + Extend<F> + Default + Unpin,
{
    let (mut lane, writer) = Lane::split(stream);
    let serving = async {
        let (mut running, mut count) = (R::default(), 0);
        loop {
            tokio::select! {
                biased;
                Some(answer) = running.next() => {
                    count -= 1;
                    lane.answer(answer).await?;
                }
                request = lane.next(), if count < running_max => match request? {
                    Some(request) => {
                        count += 1;
                        running.extend([answer(host.clone(), request)]);
                    }
                    None => return Ok(()),
                },
            }
        }
    };
    tokio::select! {
        written = writer => written,
        served = serving => served,
    }
}
