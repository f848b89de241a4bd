//! Sampler: digests of all members while a run goes on.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::join_all;
use ipam_api::client::{Call, Client};
use ipam_api::cluster::Cluster;

use super::members::Controls;
use crate::checker::Sample;
use crate::history::Recorder;
use crate::sync::held;

const INTERVAL: Duration = Duration::from_millis(250);
/// Time limit of a sample, so that a member under a fault doesn't delay the samples of the others.
const PATIENCE: Duration = Duration::from_millis(200);
/// Maximum number of samples of a run.
const SAMPLES_MAX: usize = 200_000;

/// Samples of a run. Clones share them.
#[derive(Clone, Default)]
pub(super) struct Samples {
    taken: Arc<Mutex<Vec<Sample>>>,
}

impl Samples {
    /// Takes samples until this future is dropped.
    pub(super) async fn take(&self, controls: Controls, recorder: Recorder) {
        loop {
            tokio::time::sleep(INTERVAL).await;
            let members = controls.all();
            let taken = join_all(members.iter().map(|(name, client)| sample(name, client, &recorder))).await;
            let mut samples = held(&self.taken);
            let room = SAMPLES_MAX.saturating_sub(samples.len());
            samples.extend(taken.into_iter().flatten().take(room));
        }
    }

    /// Samples taken so far.
    pub(super) fn all(&self) -> Vec<Sample> {
        held(&self.taken).clone()
    }
}

/// Takes a sample: index and digest of a member are those of one state.
async fn sample(member: &str, client: &Client, recorder: &Recorder) -> Option<Sample> {
    let shown: Cluster = client.call(Call::get("/v1/cluster").within(PATIENCE)).await.ok()?;
    let Cluster { applied, digest, epoch, leader, term, .. } = shown;
    let (time_ns, member) = (recorder.now_ns(), member.to_owned());
    Some(Sample { time_ns, member, applied, digest, epoch, leader, term })
}
