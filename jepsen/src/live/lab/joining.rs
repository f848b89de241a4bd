//! Joining: members that start with an empty disk and a token.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use ipam_api::access::Role;
use ipam_api::client::Call;
use ipam_api::token::{Purpose, Token, TokenRequest};

use super::cluster::Lab;
use super::member::Origin;
use crate::cluster::Admin;

/// Validity of a join token in milliseconds.
const TOKEN_MS: u64 = 600_000;

impl Lab {
    /// Starts a member with an empty disk and a join token, also one that was a member before.
    pub(super) async fn join(&mut self, name: &str, admin: &Admin) -> Result<()> {
        let token = self.join_token(admin).await?;
        if self.member(name).is_err() {
            self.make_member(name)?;
        }
        let member = self.member_mut(name)?;
        member.wipe()?;
        member.origin = Origin::Joiner(token);
        self.start_member(name)
    }

    /// File with a new join token.
    async fn join_token(&self, admin: &Admin) -> Result<PathBuf> {
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
        let token: Token = admin.insist(|| Ok(Call::post("/v1/tokens").json(&request)?)).await?;
        let file = self.work_dir().join(format!("{name}.token"));
        std::fs::write(&file, token.secret.context("a token without a secret")?)?;
        Ok(file)
    }
}
