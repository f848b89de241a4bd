//! Election campaigns of a member, and the times at which they begin.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use openraft::async_runtime::watch::WatchReceiver;
use openraft::metrics::RaftServerMetrics;
use openraft::raft::{VoteRequest, VoteResponse};
use tokio::time::{Instant, sleep_until, timeout};

use super::super::config::Timing;
use super::super::counters::Counters;
use super::super::raft::RaftHandle;
use super::signs::Elections;
use super::timer::Timer;
use crate::durations::as_ms;
use crate::simulation::random_id;
use crate::transport::{Answer, Peers, Purpose, Request};
use crate::types::{Types, Vote};

/// Terms that one campaign tries; each but the first follows a vote for a lower candidate.
const TERMS_MAX: usize = 3;

/// Result of a campaign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Campaign {
    Won,
    /// A leader is alive, or no majority would vote for this member now.
    Refused,
    /// Another candidate has a higher vote.
    Overtaken,
    /// No majority of votes arrived in time.
    Late,
}

/// Task that runs the campaigns of this member.
pub(in super::super) struct Candidate {
    pub(in super::super) raft: RaftHandle,
    pub(in super::super) peers: Peers,
    pub(in super::super) elections: Arc<Elections>,
    pub(in super::super) timing: Timing,
    pub(in super::super) counters: Arc<Counters>,
}

/// The view of openraft's metrics on which a campaign is decided.
struct View {
    vote: Vote,
    leader: Option<u64>,
    me: u64,
    voter: bool,
    alone: bool,
}

impl View {
    fn of(metrics: &RaftServerMetrics<Types>) -> Self {
        let (me, effective) = (metrics.id, &metrics.membership_config);
        let voters: BTreeSet<u64> = effective.voter_ids().collect();
        Self {
            vote: metrics.vote,
            leader: metrics.current_leader,
            me,
            // A member whose removal isn't committed may be the only one that has the entry of the removal.
            voter: voters.contains(&me) || metrics.committed_membership_config.voter_ids().any(|id| id == me),
            alone: voters.len() == 1 && voters.contains(&me),
        }
    }
}

impl Candidate {
    /// Campaigns whenever no leader is heard, until raft ends.
    pub(in super::super) async fn run(self) {
        let mut timer = Timer::new(self.timing);
        let mut changes = self.raft.server_metrics();
        let mut random = draw();
        let mut view = View::of(&changes.borrow_and_update());
        let mut not_before = Instant::now() + ms(timer.start_ms(view.alone, random));
        let mut retry_at = Instant::now();
        let mut warned_ms = self.timing.election_min_ms;
        loop {
            self.note_timeout(&timer, &mut warned_ms);
            let before = std::mem::replace(&mut view, View::of(&changes.borrow_and_update()));
            if view.leader.is_some() {
                timer.reset();
            }
            // A founder becomes a voter while openraft's first election runs.
            if view.vote != before.vote || view.voter && !before.voter {
                random = draw();
                not_before = Instant::now() + ms(timer.vote_ms(self.flush_ms(), random));
                retry_at = Instant::now();
            }
            let heard = self.elections.heard_at().map(|heard| heard + ms(timer.silence_ms(random)));
            let silent = heard.map_or(not_before, |heard| heard.max(not_before));
            let gone = self.elections.gone_at(&view.vote).map(|gone| gone + ms(timer.gone_ms(random)));
            let deadline = gone.map_or(silent, |gone| gone.max(retry_at).min(silent));
            let campaigns = view.voter && view.leader != Some(view.me) && self.elections.allowed();
            if campaigns && deadline <= Instant::now() {
                let ended = self.campaign(&timer, &view).await;
                random = draw();
                let wait_ms = match ended {
                    Some(Campaign::Won) => 0,
                    Some(Campaign::Refused) => timer.retry_ms(random),
                    Some(Campaign::Overtaken) => timer.vote_ms(self.flush_ms(), random),
                    Some(Campaign::Late) => {
                        timer.fail();
                        timer.vote_ms(self.flush_ms(), random)
                    }
                    None => return,
                };
                not_before = Instant::now() + ms(wait_ms);
                retry_at = not_before;
                continue;
            }
            let look = Instant::now() + ms(self.timing.election_max_ms);
            tokio::select! {
                changed = changes.changed() => if changed.is_err() {
                    return;
                },
                () = self.elections.lost.notified() => {}
                () = sleep_until(if campaigns { deadline } else { look }) => {}
            }
        }
    }

    /// Runs one campaign; returns none if raft has ended.
    async fn campaign(&self, timer: &Timer, view: &View) -> Option<Campaign> {
        let mut own = self.own().await?;
        // The metrics lag behind the disk, and still show a leadership that ended with an earlier process:
        // only the leader ids are compared.
        if own.vote.leader_id() != view.vote.leader_id() {
            return Some(Campaign::Overtaken);
        }
        let mut vote = next(&own, view.me);
        if !view.alone {
            let asked = VoteRequest::new(vote, own.last_log_id);
            let patience = ms(self.timing.election_min_ms);
            // A leader's lease that is valid here is also valid at the other voters.
            if !self.elections.pre_vote(&self.raft, asked.clone()).await.ok()?.vote_granted
                || !self.ask_voters(Request::PreVote, asked, own.vote, patience).await?
            {
                return Some(Campaign::Refused);
            }
            if own.vote.leader_id().node_id == view.me && !own.vote.committed {
                own = self.stand_down(own).await?;
                if own.vote.leader_id().node_id == view.me {
                    return Some(Campaign::Overtaken);
                }
                vote = next(&own, view.me);
            }
            Counters::add(&self.counters.elections);
            let mut terms = 1;
            loop {
                let asked = VoteRequest::new(vote, own.last_log_id);
                let patience = ms(timer.timeout_ms(self.flush_ms()));
                let granted = self.ask_voters(Request::Vote, asked, own.vote, patience).await?;
                let before = std::mem::replace(&mut own, self.own().await?);
                if own.vote > vote {
                    return Some(Campaign::Overtaken);
                }
                if !granted {
                    return Some(Campaign::Late);
                }
                if own.vote == before.vote {
                    break;
                }
                // Meanwhile this member voted for a lower candidate. Its own candidacy continues in the next
                // term.
                if terms == TERMS_MAX {
                    return Some(Campaign::Overtaken);
                }
                terms += 1;
                vote = next(&own, view.me);
            }
        } else {
            Counters::add(&self.counters.elections);
        }
        self.raft.trigger().elect(false).await.ok()?;
        // Raft answers again once its own vote is on disk.
        self.own().await?;
        let patience = ms(timer.timeout_ms(self.flush_ms()));
        let ended = timeout(patience, self.decided(&vote, view.me)).await;
        let ended = ended.unwrap_or(Some(Campaign::Late))?;
        if ended == Campaign::Won {
            Counters::add(&self.counters.elections_won);
        }
        Some(ended)
    }

    /// Waits until this member leads, or has a higher vote for another member.
    async fn decided(&self, vote: &Vote, me: u64) -> Option<Campaign> {
        let mut changes = self.raft.server_metrics();
        loop {
            let view = View::of(&changes.borrow_and_update());
            if view.leader == Some(me) {
                return Some(Campaign::Won);
            }
            if view.vote > *vote && view.vote.leader_id().node_id != me {
                return Some(Campaign::Overtaken);
            }
            changes.changed().await.ok()?;
        }
    }

    /// Returns the vote and the last log entry of this member. A pre-vote changes neither.
    async fn own(&self) -> Option<VoteResponse<Types>> {
        let me = self.peers.my_id();
        self.raft.pre_vote(VoteRequest::new(Vote::new(0, me), None)).await.ok()
    }

    /// Requests the votes of all others; true once a majority, this member included, has granted them. This
    /// member votes for itself in openraft's election.
    async fn ask_voters(
        &self,
        kind: fn(VoteRequest<Types>) -> Request,
        asked: VoteRequest<Types>,
        own: Vote,
        patience: Duration,
    ) -> Option<bool> {
        let me = self.peers.my_id();
        let (voters, members) = {
            let metrics = self.raft.server_metrics();
            let metrics = metrics.borrow_watched();
            let members = metrics.membership_config.nodes().map(|(id, member)| (*id, member.clone()));
            (metrics.membership_config.get_joint_config().clone(), members.collect::<Vec<_>>())
        };
        let mut granted = BTreeSet::from([me]);
        let until = Instant::now() + patience;
        let others =
            members.into_iter().filter(|(id, _)| *id != me && voters.iter().any(|set| set.contains(id)));
        let mut answers: FuturesUnordered<_> = others
            .map(|(id, member)| {
                let (channel, asked) = (self.peers.channel(id, &member, Purpose::Control), asked.clone());
                async move { (id, channel.call(kind(asked), until).await) }
            })
            .collect();
        while let Some((id, answer)) = answers.next().await {
            match answer {
                Ok(Answer::Vote(answer)) if answer.vote_granted => {
                    granted.insert(id);
                }
                Ok(Answer::Vote(answer)) if answer.vote > own => self.adopt(&answer.vote).await?,
                _ => {}
            }
            if voters.iter().all(|set| 2 * set.intersection(&granted).count() > set.len()) {
                return Some(true);
            }
        }
        Some(false)
    }

    /// Adopts a higher term of the cluster; otherwise this member would be refused for ever. The adopted vote
    /// names no member, so that a candidate of that term can still get this member's vote.
    async fn adopt(&self, higher: &Vote) -> Option<()> {
        let last_log_id = self.own().await?.last_log_id;
        let vote = Vote::new(higher.leader_id().term, 0);
        self.elections.vote(&self.raft, VoteRequest::new(vote, last_log_id)).await.ok().map(drop)
    }

    /// Ends openraft's own election for the vote of this member, by a vote for no member in the next term.
    ///
    /// Otherwise a late answer could make this member the leader of its term while the voters have the term
    /// that the campaign names: openraft would stay leader without followers, and start no other election.
    async fn stand_down(&self, own: VoteResponse<Types>) -> Option<VoteResponse<Types>> {
        let vote = Vote::new(own.vote.leader_id().term.saturating_add(1), 0);
        self.raft.vote(VoteRequest::new(vote, own.last_log_id)).await.ok()?;
        self.own().await
    }

    fn flush_ms(&self) -> u64 {
        // A flush in progress counts as well, once it takes longer than the median.
        let outstanding_ms = as_ms(self.counters.store.flush.outstanding());
        self.counters.store.flush.median_ms().max(outstanding_ms)
    }

    /// Publishes the timeout; warns when the disk doubles it.
    fn note_timeout(&self, timer: &Timer, warned_ms: &mut u64) {
        let (least_ms, flush_ms) = (self.timing.election_min_ms, self.flush_ms());
        let timeout_ms = timer.timeout_ms(flush_ms);
        self.counters.election_timeout_ms.store(timeout_ms, Relaxed);
        if timeout_ms >= warned_ms.saturating_mul(2) {
            tracing::warn!(
                flush_ms,
                election_timeout_ms = timeout_ms,
                election_min_ms = least_ms,
                "votes need longer than the configured election timeout; the disk is slow"
            );
            *warned_ms = timeout_ms;
        } else if timeout_ms == least_ms && *warned_ms > least_ms {
            tracing::info!(
                election_timeout_ms = timeout_ms,
                "the election timeout is the configured one again"
            );
            *warned_ms = least_ms;
        }
    }
}

/// The vote of the next term for a member.
fn next(own: &VoteResponse<Types>, me: u64) -> Vote {
    Vote::new(own.vote.leader_id().term.saturating_add(1), me)
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A random number; uuid is the source of randomness here.
fn draw() -> u64 {
    random_id().as_u64_pair().0
}
