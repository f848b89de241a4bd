//! openraft's network, made of channels.

use std::collections::VecDeque;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, StreamExt, stream};
use ipam_api::limits::APPENDS_UNANSWERED_MAX;
use openraft::base::{BoxFuture, BoxStream};
use openraft::errors::{NetworkError, RPCError, ReplicationClosed, StreamingError, Timeout, Unreachable};
use openraft::network::{RPCOption, RPCTypes, RaftNetworkFactory, RaftNetworkV2};
use openraft::raft::{
    AppendEntriesResponse, SnapshotResponse, TransferLeaderRequest, TransferLeaderResponse, VoteRequest,
    VoteResponse,
};
use openraft::type_config::alias::SnapshotOf;
use tokio::time::{Instant, sleep_until};

use super::append::{Span, divide};
use super::channel::{CallError, Channel, Pending};
use super::message::{Answer, Append, Appended, Request};
use super::peers::Peers;
use super::preface::Purpose;
use crate::store::SnapshotFile;
use crate::types::{Member, Types, Vote};

/// Time for a peer to write entries down. Far longer than openraft's own patience (a heartbeat): the
/// connection has its own sign of life, and entries sent twice make a slow disk slower.
const APPEND_PATIENCE: Duration = Duration::from_secs(10);

/// Time for which a leader delays a commit without new entries. The next entries or heartbeats, also those of
/// a linearizable read, usually carry it: a separate message would double the messages.
const COMMIT_DELAY: Duration = Duration::from_millis(10);

/// Factory of the links to peers.
#[derive(Clone)]
pub(crate) struct Network(pub(crate) Peers);

impl RaftNetworkFactory<Types> for Network {
    type Network = Link;

    async fn new_client(&mut self, target: u64, node: &Member) -> Link {
        self.link(target, node, Purpose::Append)
    }

    async fn new_heartbeat_client(&mut self, target: u64, node: &Member) -> Link {
        self.link(target, node, Purpose::Control)
    }
    // A snapshot opens a separate connection, whichever link sends it.
}

impl Network {
    fn link(&self, member_id: u64, member: &Member, appends: Purpose) -> Link {
        Link { peers: self.0.clone(), member_id, member: member.clone(), appends }
    }
}

/// A peer, as openraft sees it. It holds no connection; links to one peer share the channels.
pub(crate) struct Link {
    peers: Peers,
    member_id: u64,
    member: Member,
    appends: Purpose,
}

type Failure = RPCError<Types>;

fn unreachable(why: impl ToString) -> Failure {
    RPCError::Unreachable(Unreachable::from_string(why))
}

impl Link {
    fn channel(&self, purpose: Purpose) -> Arc<Channel> {
        self.peers.channel(self.member_id, &self.member, purpose)
    }

    fn failure(&self, error: CallError, action: RPCTypes, timeout: Duration) -> Failure {
        match error {
            CallError::NotSent(why) => unreachable(why),
            CallError::Lost(why) => RPCError::Network(NetworkError::from_string(why)),
            CallError::TimedOut => {
                RPCError::Timeout(Timeout { action, id: self.peers.my_id(), target: self.member_id, timeout })
            }
        }
    }

    async fn ask(&self, request: Request, action: RPCTypes, option: &RPCOption) -> Result<Answer, Failure> {
        let patience = option.soft_ttl();
        let answer = self.channel(Purpose::Control).call(request, Instant::now() + patience).await;
        match answer {
            Ok(Answer::Failed(why)) => Err(unreachable(why)),
            Ok(answer) => Ok(answer),
            Err(error) => Err(self.failure(error, action, patience)),
        }
    }
}

/// Appends in flight, and appends that wait to be sent.
struct Pipeline<'a, S> {
    link: &'a Link,
    channel: Arc<Channel>,
    patience: Duration,
    input: S,
    exhausted: bool,
    divided: VecDeque<Append>,
    /// A commit without entries, and the instant until which it is delayed.
    commit: Option<(Append, Instant)>,
    sent: VecDeque<(Span, Pending, Instant)>,
}

impl<S: Stream<Item = Append> + Unpin> Pipeline<'_, S> {
    /// Returns the next answer; none when the input has ended and all appends are answered.
    async fn next(&mut self) -> Option<Result<Appended, Failure>> {
        loop {
            while self.sent.len() < APPENDS_UNANSWERED_MAX
                && let Some(append) = self.divided.pop_front()
            {
                if let Err(error) = self.send(append) {
                    return Some(Err(error));
                }
            }
            let wants_more = !self.exhausted && self.divided.is_empty();
            let oldest = self.sent.front_mut();
            if oldest.is_none() && !wants_more {
                return None;
            }
            tokio::select! {
                biased;
                answer = wait(oldest) => {
                    let (span, ..) = self.sent.pop_front()?;
                    return Some(self.judge(span, answer));
                }
                more = self.input.next(), if wants_more => self.take(more),
                () = until_due(self.commit.as_ref()) => self.send_commit(),
            }
        }
    }

    /// Takes the next append of raft, or the end of the input.
    fn take(&mut self, append: Option<Append>) {
        match append {
            None => {
                self.exhausted = true;
                self.send_commit();
            }
            Some(append) if append.entries.is_empty() && self.link.appends == Purpose::Append => {
                let due = self.commit.take().map_or_else(|| Instant::now() + COMMIT_DELAY, |(_, due)| due);
                self.commit = Some((append, due));
            }
            // This append carries a newer commit.
            Some(append) => {
                self.commit = None;
                self.divided = divide(append);
            }
        }
    }

    fn send_commit(&mut self) {
        self.divided.extend(self.commit.take().map(|(append, _)| append));
    }

    fn send(&mut self, append: Append) -> Result<(), Failure> {
        let span = Span::of(&append);
        let pending = self
            .channel
            .submit(Request::Append(append))
            .map_err(|error| self.link.failure(error, RPCTypes::AppendEntries, self.patience))?;
        self.sent.push_back((span, pending, Instant::now() + self.patience));
        Ok(())
    }

    fn judge(&self, span: Span, answer: Result<Answer, CallError>) -> Result<Appended, Failure> {
        match answer {
            Ok(Answer::Append(appended)) if span.allows(&appended) => Ok(appended),
            Ok(Answer::Failed(why)) => Err(unreachable(why)),
            Ok(_) => Err(unreachable("it gave an answer that doesn't fit")),
            Err(error) => Err(self.link.failure(error, RPCTypes::AppendEntries, self.patience)),
        }
    }
}

async fn until_due(commit: Option<&(Append, Instant)>) {
    match commit {
        Some((_, due)) => sleep_until(*due).await,
        None => std::future::pending().await,
    }
}

async fn wait(oldest: Option<&mut (Span, Pending, Instant)>) -> Result<Answer, CallError> {
    match oldest {
        Some((_, pending, deadline)) => pending.wait(*deadline).await,
        None => std::future::pending().await,
    }
}

impl RaftNetworkV2<Types> for Link {
    type SnapshotData = SnapshotFile;

    async fn append_entries(
        &mut self,
        rpc: Append,
        option: RPCOption,
    ) -> Result<AppendEntriesResponse<Types>, Failure> {
        let answers = self.stream_append(stream::iter([rpc]), option).await?;
        let answers: Vec<_> = answers.collect().await;
        match answers.into_iter().next_back() {
            Some(answer) => Ok(answer?.into()),
            None => Err(unreachable("there was no answer")),
        }
    }

    fn stream_append<'s, S>(
        &'s mut self,
        input: S,
        option: RPCOption,
    ) -> BoxFuture<'s, Result<BoxStream<'s, Result<Appended, Failure>>, Failure>>
    where
        S: Stream<Item = Append> + Send + Unpin + 'static,
    {
        let patience = match self.appends {
            Purpose::Append => APPEND_PATIENCE,
            Purpose::Control | Purpose::Snapshot | Purpose::Journal => option.soft_ttl(),
        };
        let pipeline = Pipeline {
            channel: self.channel(self.appends),
            link: self,
            patience,
            input,
            exhausted: false,
            divided: VecDeque::new(),
            commit: None,
            sent: VecDeque::new(),
        };
        let answers = stream::unfold(Some(pipeline), |pipeline| async move {
            let mut pipeline = pipeline?;
            let answer = pipeline.next().await?;
            // After any answer but a match, openraft begins again from another position.
            let goes_on = matches!(answer, Ok(Ok(_)));
            Some((answer, goes_on.then_some(pipeline)))
        });
        let answers: BoxStream<'s, _> = Box::pin(answers);
        Box::pin(async move { Ok(answers) })
    }

    async fn vote(
        &mut self,
        rpc: VoteRequest<Types>,
        option: RPCOption,
    ) -> Result<VoteResponse<Types>, Failure> {
        match self.ask(Request::Vote(rpc), RPCTypes::Vote, &option).await? {
            Answer::Vote(vote) => Ok(vote),
            _ => Err(unreachable("it answered something else than a vote")),
        }
    }

    async fn pre_vote(
        &mut self,
        rpc: VoteRequest<Types>,
        option: RPCOption,
    ) -> Result<VoteResponse<Types>, Failure> {
        match self.ask(Request::PreVote(rpc), RPCTypes::Vote, &option).await? {
            Answer::Vote(vote) => Ok(vote),
            _ => Err(unreachable("it answered something else than a vote")),
        }
    }

    async fn transfer_leader(
        &mut self,
        request: TransferLeaderRequest<Types>,
        option: RPCOption,
    ) -> Result<TransferLeaderResponse<Types>, Failure> {
        match self.ask(Request::TransferLeader(request), RPCTypes::TransferLeader, &option).await? {
            Answer::TransferLeader(response) => Ok(response),
            _ => Err(unreachable("it answered something else than whether it leads")),
        }
    }

    async fn full_snapshot(
        &mut self,
        vote: Vote,
        snapshot: SnapshotOf<Types, SnapshotFile>,
        cancel: impl Future<Output = ReplicationClosed> + Send + 'static,
        option: RPCOption,
    ) -> Result<SnapshotResponse<Types>, StreamingError<Types>> {
        let patience = option.hard_ttl();
        tokio::select! {
            closed = cancel => Err(closed.into()),
            sent = self.peers.send_snapshot(self.member_id, &self.member, vote, snapshot, patience) => sent,
        }
    }
}
