//! Administrator: changes of the membership through the API.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use ipam_api::client::{Call, Client};
use ipam_api::cluster::{Member, MemberChange, Members, ReplaceRequest};
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep};

/// Time limit of one request.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time between two polls.
const LOOK: Duration = Duration::from_millis(20);
/// Maximum number of missing entries of a learner that has caught up.
const BEHIND_MAX: u64 = 100;

/// Administrator with a time limit for all of its requests.
pub(crate) struct Admin {
    /// Client of all members.
    pub(crate) client: Client,
    /// Deadline of all requests.
    pub(crate) until: Instant,
}

impl Admin {
    /// Removes a member, and waits until it is removed.
    ///
    /// # Errors
    /// If it stays a member.
    pub(crate) async fn remove(&self, name: &str) -> Result<()> {
        if self.listed(name).await?.is_none() {
            return Ok(());
        }
        let path = format!("/v1/cluster/members/{name}");
        let _change: MemberChange = self.insist(|| Ok(Call::delete(&path))).await?;
        while self.listed(name).await?.is_some() {
            if Instant::now() > self.until {
                bail!("{name} stays a member");
            }
            sleep(LOOK).await;
        }
        Ok(())
    }

    /// Promotes a learner to a voter.
    ///
    /// # Errors
    /// If no leader accepts the change.
    pub(crate) async fn promote(&self, name: &str) -> Result<()> {
        let path = format!("/v1/cluster/members/{name}/promote");
        self.insist(|| Ok(Call::post(&path))).await.map(|_change: MemberChange| ())
    }

    /// Replaces a member with a learner.
    ///
    /// # Errors
    /// If no leader accepts the change.
    pub(crate) async fn replace(&self, name: &str, with: &str) -> Result<()> {
        let request = ReplaceRequest { with: with.parse()? };
        let path = format!("/v1/cluster/members/{name}/replace");
        self.insist(|| Ok(Call::post(&path).json(&request)?)).await.map(|_change: MemberChange| ())
    }

    /// Waits until a learner has caught up. `is_there` fails if the learner's process has ended.
    ///
    /// # Errors
    /// If it does not catch up, or has ended.
    pub(crate) async fn caught_up(&self, name: &str, mut is_there: impl FnMut() -> Result<()>) -> Result<()> {
        loop {
            let listed = self.listed(name).await;
            if let Ok(Some(shown)) = &listed
                && shown.answers == Some(true)
                && shown.behind.is_some_and(|behind| behind < BEHIND_MAX)
            {
                return Ok(());
            }
            is_there()?;
            if Instant::now() > self.until {
                bail!("{name} doesn't catch up ({listed:?})");
            }
            sleep(LOOK).await;
        }
    }

    /// A member with its id and role.
    ///
    /// # Errors
    /// If it is not listed.
    pub(crate) async fn describe(&self, name: &str) -> Result<String> {
        let shown = self.listed(name).await?.with_context(|| format!("{name} isn't listed"))?;
        Ok(format!("{name} is member {} as {}", shown.id, shown.role))
    }

    /// A member as the leader lists it.
    async fn listed(&self, name: &str) -> Result<Option<Member>> {
        let members: Members = self.insist(|| Ok(Call::get("/v1/cluster/members"))).await?;
        Ok(members.items.into_iter().find(|member| member.name == name))
    }

    /// Repeats a request until it is accepted: leaders may be absent.
    ///
    /// # Errors
    /// If it is not accepted in time.
    pub(crate) async fn insist<T: DeserializeOwned>(&self, call: impl Fn() -> Result<Call>) -> Result<T> {
        loop {
            match self.client.call(call()?.within(PATIENCE)).await {
                Ok(answer) => return Ok(answer),
                Err(problem) if Instant::now() > self.until => {
                    return Err(problem).with_context(|| {
                        call().map_or_else(|_| String::new(), |call| call.path().to_owned())
                    });
                }
                Err(_) => sleep(LOOK).await,
            }
        }
    }
}
