//! Final states: the state of each member after all faults are healed and all clients have ended.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use futures::future::try_join_all;
use ipam_api::client::{Call, Client};
use ipam_api::cluster::Cluster;
use ipam_api::resource::Page;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep};

use crate::checker::Final;

const PATIENCE: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(100);

/// Reads the states of all members at one index, without their times.
///
/// Background tasks continue: the reads are repeated until no member has applied an entry meanwhile.
///
/// # Errors
/// If the members don't agree within the time.
pub(super) async fn collect(members: &[(String, Arc<Client>)], within: Duration) -> Result<Vec<Final>> {
    let deadline = Instant::now() + within;
    loop {
        let told = match attempt(members).await {
            Ok(Ok(finals)) => return Ok(finals),
            Ok(Err(told)) => told,
            Err(error) => format!("{error:#}"),
        };
        if Instant::now() > deadline {
            bail!("the members have no common state after {within:?}: {told}");
        }
        sleep(LOOK).await;
    }
}

/// States, or the reason for which they can't be compared.
async fn attempt(members: &[(String, Arc<Client>)]) -> Result<Result<Vec<Final>, String>> {
    let before = try_join_all(members.iter().map(|(_, client)| shown(client))).await?;
    let places: Vec<(u64, u64)> = before.iter().map(|one| (one.applied, one.revision)).collect();
    if places.windows(2).any(|pair| matches!(pair, [one, other] if one != other)) {
        return Ok(Err(format!("applied index and revision of each: {places:?}")));
    }
    let reads = members.iter().zip(&before).map(|((name, client), state)| read(name, client, state));
    let finals = try_join_all(reads).await?;
    let after = try_join_all(members.iter().map(|(_, client)| shown(client))).await?;
    let is_same = |(one, other): (&Cluster, &Cluster)| one.applied == other.applied;
    Ok(match before.iter().zip(&after).all(is_same) {
        true => Ok(finals),
        false => Err("entries were applied while the states were read".to_owned()),
    })
}

async fn shown(client: &Client) -> Result<Cluster> {
    Ok(client.call(Call::get("/v1/cluster").within(PATIENCE)).await?)
}

async fn read(name: &str, client: &Client, state: &Cluster) -> Result<Final> {
    Ok(Final {
        time_ns: 0,
        member: name.to_owned(),
        applied: state.applied,
        revision: state.revision,
        digest: state.digest.clone(),
        allocations: list(client, "allocations").await?,
        prefixes: list(client, "prefixes").await?,
        pools: list(client, "pools").await?,
    })
}

/// All pages of a list, from the state of the member itself.
async fn list<T: DeserializeOwned>(client: &Client, plural: &str) -> Result<Vec<T>> {
    let mut items = Vec::new();
    let mut cursor: Option<String> = None;
    loop {
        let mut call = Call::get(format!("/v1/{plural}?limit=1000&consistency=stale")).within(PATIENCE);
        if let Some(cursor) = &cursor {
            call = call.query("cursor", cursor);
        }
        let page: Page<T> = client.call(call).await.with_context(|| format!("the {plural} can't be read"))?;
        items.extend(page.items);
        cursor = page.next;
        if cursor.is_none() {
            return Ok(items);
        }
    }
}
