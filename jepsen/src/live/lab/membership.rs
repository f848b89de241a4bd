//! Membership: members that join, leave, replace others, or return without their data.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use ipam_api::access::Role;
use ipam_api::client::{Call, Client};
use ipam_api::cluster::{Member as Shown, MemberChange, Members, ReplaceRequest};
use ipam_api::token::{Purpose, Token, TokenRequest};

use super::cluster::Lab;
use super::member::Origin;
use crate::nemesis::Change;

/// Time limit of one request.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time limit of a change, with the transfer of the state.
const CHANGE: Duration = Duration::from_secs(40);
/// Time limit of the end of a removed member.
const END: Duration = Duration::from_secs(15);
/// Time between two looks.
const LOOK: Duration = Duration::from_millis(20);
/// Missing entries with which a learner has caught up.
const BEHIND_MAX: u64 = 100;
/// Validity of a join token in milliseconds.
const TOKEN_MS: u64 = 600_000;
/// Exit code of a removed member.
const REMOVED: i32 = 5;

impl Lab {
    /// Changes the membership and waits for the end of the change.
    pub(super) async fn change(&mut self, change: &Change) -> Result<Vec<String>> {
        let until = Instant::now() + CHANGE;
        match change {
            Change::Add => {
                let name = self.free_name();
                self.join(&name, until).await?;
                self.promote(&name, until).await?;
                Ok(vec![self.describe(&name).await?])
            }
            Change::Remove { member } => {
                self.member_mut(member)?.excuses.insert(REMOVED);
                self.remove(member, until).await?;
                let status = self.member_mut(member)?.wait(END).await;
                let end = match status {
                    Ok(Some(status)) => {
                        self.note_end(member, status, status.code() == Some(REMOVED));
                        status.to_string()
                    }
                    Ok(None) => "ended before".to_owned(),
                    // It didn't learn of its removal.
                    Err(_) => self.kill(member).await?.unwrap_or_default(),
                };
                self.drop_member(member);
                Ok(vec![format!("{member} is removed, {end}")])
            }
            Change::Replace { member } => {
                let killed = self.kill(member).await?.unwrap_or_default();
                self.member_mut(member)?.must_rejoin = true;
                let name = self.free_name();
                self.join(&name, until).await?;
                let request = ReplaceRequest { with: name.parse()? };
                let path = format!("/v1/cluster/members/{member}/replace");
                let _change: MemberChange =
                    self.insist(until, || Ok(Call::post(&path).json(&request)?)).await?;
                self.drop_member(member);
                Ok(vec![killed, format!("{member} is replaced, {}", self.describe(&name).await?)])
            }
        }
    }

    /// First name without a member.
    fn free_name(&self) -> String {
        let mut names = (1..).map(|number| format!("n{number}"));
        names.find(|name| self.member(name).is_err()).unwrap_or_default()
    }

    fn drop_member(&mut self, name: &str) {
        self.members.retain(|member| member.name != name);
    }

    /// Starts a new member with an empty disk, and waits until it has caught up as a learner.
    async fn join(&mut self, name: &str, until: Instant) -> Result<()> {
        let token = self.join_token(until).await?;
        self.make_member(name)?;
        self.member_mut(name)?.origin = Origin::Joiner(token);
        self.start_member(name)?;
        self.caught_up(name, until).await
    }

    /// Lets members without their data return as new ones.
    pub(super) async fn rejoin_lost(&mut self, until: Instant) -> Result<()> {
        for name in self.member_names() {
            if self.member(&name)?.must_rejoin {
                let rejoined = self.rejoin(&name, until).await;
                rejoined.with_context(|| {
                    format!("{name} can't return{}", self.tails(std::slice::from_ref(&name)))
                })?;
            }
        }
        Ok(())
    }

    /// The documented way after the loss of a data directory: removal, and a join under another id.
    async fn rejoin(&mut self, name: &str, until: Instant) -> Result<()> {
        self.kill(name).await?;
        self.member_mut(name)?.wipe()?;
        self.remove(name, until).await?;
        let token = self.join_token(until).await?;
        let member = self.member_mut(name)?;
        member.origin = Origin::Joiner(token);
        self.start_member(name)?;
        self.caught_up(name, until).await?;
        self.promote(name, until).await?;
        self.member_mut(name)?.must_rejoin = false;
        let note = self.describe(name).await?;
        self.notes.push(note);
        Ok(())
    }

    /// File with a new join token.
    async fn join_token(&self, until: Instant) -> Result<std::path::PathBuf> {
        let name = format!("member-{}", uuid::Uuid::new_v4());
        let request = TokenRequest {
            name: name.parse()?,
            purpose: Purpose::JoinMember,
            role: Role::Node,
            node: None,
            replace: false,
            realms: Vec::new(),
            allow_shared: false,
            labels: ipam_api::selector::Selector::default(),
            ttl_ms: Some(TOKEN_MS),
            description: String::new(),
        };
        let token: Token = self.insist(until, || Ok(Call::post("/v1/tokens").json(&request)?)).await?;
        let file = self.work_dir().join(format!("{name}.token"));
        std::fs::write(&file, token.secret.context("a token without a secret")?)?;
        Ok(file)
    }

    async fn remove(&self, name: &str, until: Instant) -> Result<()> {
        if self.listed(name).await?.is_none() {
            return Ok(());
        }
        let path = format!("/v1/cluster/members/{name}");
        let _change: MemberChange = self.insist(until, || Ok(Call::delete(&path))).await?;
        while self.listed(name).await?.is_some() {
            if Instant::now() > until {
                bail!("{name} stays a member");
            }
            tokio::time::sleep(LOOK).await;
        }
        Ok(())
    }

    async fn promote(&self, name: &str, until: Instant) -> Result<()> {
        let path = format!("/v1/cluster/members/{name}/promote");
        let _change: MemberChange = self.insist(until, || Ok(Call::post(&path))).await?;
        Ok(())
    }

    async fn caught_up(&mut self, name: &str, until: Instant) -> Result<()> {
        loop {
            let listed = self.listed(name).await;
            if let Ok(Some(shown)) = &listed
                && shown.answers == Some(true)
                && shown.behind.is_some_and(|behind| behind < BEHIND_MAX)
            {
                return Ok(());
            }
            self.reap()?;
            if !self.member(name)?.is_started() {
                bail!("{name} has ended{}", self.tails(&[name.to_owned()]));
            }
            if Instant::now() > until {
                bail!("{name} doesn't catch up ({listed:?}){}", self.tails(&[name.to_owned()]));
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// A member as the leader lists it.
    async fn listed(&self, name: &str) -> Result<Option<Shown>> {
        let call = Call::get("/v1/cluster/members").within(PATIENCE);
        let members: Members = self.administrator()?.call(call).await?;
        Ok(members.items.into_iter().find(|member| member.name == name))
    }

    async fn describe(&self, name: &str) -> Result<String> {
        let shown = self.listed(name).await?.with_context(|| format!("{name} isn't listed"))?;
        Ok(format!("{name} is member {} as {}", shown.id, shown.role))
    }

    /// Repeats a change of the administrator until it is accepted: leaders may be absent.
    async fn insist<T: serde::de::DeserializeOwned>(
        &self,
        until: Instant,
        call: impl Fn() -> Result<Call>,
    ) -> Result<T> {
        let client: Client = self.administrator()?;
        loop {
            match client.call(call()?.within(PATIENCE)).await {
                Ok(answer) => return Ok(answer),
                Err(problem) if Instant::now() > until => {
                    return Err(problem).with_context(|| {
                        call().map_or_else(|_| String::new(), |call| call.path().to_owned())
                    });
                }
                Err(_) => tokio::time::sleep(LOOK).await,
            }
        }
    }
}
