//! Comparison rounds: this member compares its state with the others' and acts on the verdict.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ipam_api::limits::{
    CHECKPOINT_COMPARE_MS, CHECKPOINT_IDLE_MS, CHECKPOINT_UNDECIDED_MS_MAX, STATE_REBUILDS_MAX,
};
use tokio::time::{Instant, sleep, timeout};

use super::super::counters::Counters;
use super::super::error::Failure;
use super::super::lifecycle::Lifecycle;
use super::super::raft::{Leader, leader};
use super::super::running::Running;
use super::super::transfer::hand_over;
use super::integrity::Integrity;
use super::judging::{Verdict, judge};
use super::{rebuilding, report};
use crate::store::Quarantine;
use crate::sync::held;
use crate::transport::Report;

/// Time limit for a leadership transfer, and for adding an entry with a checkpoint.
const PATIENCE: Duration = Duration::from_secs(2);

/// Compares checkpoints while the member runs.
pub(in super::super) async fn run(lifecycle: Arc<Lifecycle>, integrity: Arc<Integrity>) {
    let mut comparing = Comparing::default();
    loop {
        sleep(Duration::from_millis(CHECKPOINT_COMPARE_MS)).await;
        if let Some(running) = lifecycle.running() {
            comparing.round(&lifecycle, &integrity, &running).await;
        }
    }
}

/// State kept between rounds.
#[derive(Default)]
struct Comparing {
    rebuilds: u32,
    undecided_since: Option<Instant>,
    /// Index of the last applied entry, and the instant since which no further entry was applied.
    idle_since: Option<(u64, Instant)>,
}

impl Comparing {
    async fn round(&mut self, lifecycle: &Lifecycle, integrity: &Integrity, running: &Running) {
        let reports = report::ask_all(integrity, running).await;
        self.prompt(integrity, running, &reports).await;
        let (checkpoints, peer_report) = reports
            .into_iter()
            .map(|(id, report)| ((id, report.checkpoints), (id, report.peer_report)))
            .unzip();
        *held(&integrity.reports) = peer_report;
        let verdict = judge(running.me.member_id, &running.voters(), &checkpoints);
        if !matches!(verdict, Verdict::Undecided { .. }) {
            self.undecided_since = None;
        }
        match verdict {
            Verdict::Nothing => {}
            Verdict::Agrees => integrity.trust.restore(&running.elections).await,
            Verdict::Odd { index, right, fellows } => {
                self.correct(lifecycle, integrity, running, (index, right), &fellows).await;
            }
            Verdict::Undecided { index } => {
                let since = *self.undecided_since.get_or_insert_with(Instant::now);
                if since.elapsed() >= Duration::from_millis(CHECKPOINT_UNDECIDED_MS_MAX) {
                    let why = format!(
                        "at log entry {index} two members have different states, and too few others answer to \
                         say which is wrong; start the other members"
                    );
                    integrity.trust.quarantine(Quarantine::quarantined(why)).await;
                }
            }
            Verdict::Split { index } => {
                let why = format!(
                    "at log entry {index} no majority of the members has the same state, and which one is right \
                     can't be told from here; stop all members, compare what they hold with the network \
                     (ipamctl status names their digests), and found the cluster anew from a backup: ipamd restore"
                );
                integrity.trust.quarantine(Quarantine::halted(why)).await;
            }
        }
    }

    /// Corrects a state that a majority contradicts.
    async fn correct(
        &mut self,
        lifecycle: &Lifecycle,
        integrity: &Integrity,
        running: &Running,
        (index, right): (u64, u128),
        fellows: &[u64],
    ) {
        let names = running.names(fellows);
        let why =
            format!("at log entry {index} its state differs from that of {names}; it is being made again");
        integrity.trust.quarantine(Quarantine::quarantined(why)).await;
        Counters::add(&integrity.counters.divergences);
        // A member with a wrong state must not lead, since a leader answers from its state.
        running.elections.allow(false);
        if matches!(leader(&running.raft), Leader::Me) {
            hand_over(running, integrity.timing, Instant::now() + PATIENCE, |_| true).await;
        }
        self.rebuilds += 1;
        if self.rebuilds > STATE_REBUILDS_MAX {
            lifecycle.fail(Failure::Other(format!(
                "its state differs from that of {names} again, after it was made again {STATE_REBUILDS_MAX} times: \
                 this machine's memory or disk corrupts data, or this program differs from the others'; check \
                 both, then put {} aside and take the member in anew with an empty one",
                integrity.trust.dir().display()
            )));
            return;
        }
        // The own snapshot and log are tried once: this costs the other members nothing.
        let own = self.rebuilds == 1 && rebuilding::from_own(integrity, running, index, right).await;
        if !own {
            rebuilding::from_peers(integrity, running, fellows).await;
        }
    }

    /// Adds an entry for a new checkpoint if this member leads. It does so when a suspect member can't be
    /// compared yet, and when applied entries have stayed uncompared for long.
    async fn prompt(&mut self, integrity: &Integrity, running: &Running, reports: &BTreeMap<u64, Report>) {
        let mine = reports.get(&running.me.member_id).and_then(|report| report.checkpoints.last());
        let applied = integrity.state.applied().map_or(0, |applied| applied.index);
        let since = match self.idle_since {
            Some((index, since)) if index == applied => since,
            _ => self.idle_since.insert((applied, Instant::now())).1,
        };
        let idle = mine.is_none_or(|newest| newest.index < applied)
            && since.elapsed() >= Duration::from_millis(CHECKPOINT_IDLE_MS);
        let is_comparable = |report: &Report| {
            let noted = &mut report.checkpoints.iter();
            mine.is_some_and(|newest| noted.any(|noted| noted.index == newest.index))
        };
        let waits = reports.values().any(|report| report.waits && !is_comparable(report));
        if (idle || waits) && matches!(leader(&running.raft), Leader::Me) {
            // A failure is harmless: the next round tries again.
            let _ = timeout(PATIENCE, running.raft.write_blank()).await;
        }
    }
}

impl Running {
    fn names(&self, ids: &[u64]) -> String {
        let members = self.members().into_iter().filter(|(id, _)| ids.contains(id));
        members.map(|(_, member)| member.name).collect::<Vec<_>>().join(" and ")
    }
}
