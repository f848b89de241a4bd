//! Node tokens: created by joining, renewed by their node, replaced with an administrator's consent.
//!
//! **Invariant:** a node has few tokens, so that examining all of them is bounded work.

use crate::apply::step::Step;
use crate::command::{Answer, Cause, Credential, Grant, Kind, Purpose, Refusal, SecretHash, Stored, Text};
use crate::event::field_change::changes;
use crate::state::State;
use crate::state::id::{Id, TokenId};
use crate::state::row::{Node, Token};
use crate::value::refuse_if;
use ipam_api::access::{NodeKey, Role};
use ipam_api::limits::{NODE_TOKEN_DAMPING_MS, NODE_TOKEN_TTL_MS, NODE_TOKENS_MAX};
use ipam_api::name::{Name, ResourceName};

impl State {
    /// Tokens of a node, the oldest first.
    fn tokens_of(&self, node: &NodeKey) -> Vec<TokenId> {
        let all = self.index.node_tokens.range((node.clone(), Id::MIN)..=(node.clone(), Id::MAX));
        all.map(|(_, id)| *id).collect()
    }
}

impl Step<'_> {
    /// Exchanges a join token for the token of a node. A repetition with the same node and secret gets the
    /// same answer, because the first answer may have been lost.
    pub(crate) fn join(&mut self, node: &NodeKey, secret_hash: SecretHash) -> Result<Answer, Refusal> {
        let Credential::Token { id } = *self.credential else { return Err(no_join_token()) };
        let with = self.state.tokens.get(id).cloned().ok_or_else(no_join_token)?;
        if with.purpose != Purpose::Join {
            return Err(no_join_token());
        }
        if with.grant.node.as_ref().is_some_and(|expected| expected != node)
            || (!with.grant.realms.is_empty() && !with.grant.realms.contains(&node.realm))
        {
            return Err(Cause::JoinTokenOfOthers { node: node.clone() }.into());
        }
        if let Some(made) = with.used_for {
            let same =
                self.state.tokens.get(made).filter(|token| {
                    token.secret_hash == secret_hash && token.grant.node.as_ref() == Some(node)
                });
            return match same {
                Some(token) => Ok(stored(token.clone())),
                None => Err(Cause::JoinTokenUsed.into()),
            };
        }
        let earlier = self.check_may_take(&with, node)?;
        self.check_secret(&secret_hash)?;
        if earlier.is_empty() {
            self.check_room_for_tokens()?;
        }
        let revision = self.state.tick();
        // Expired tokens are useless, and valid ones are replaced.
        for id in earlier {
            self.remove_token(id);
        }
        // Letters, a dash and digits always form a valid name.
        let name = Name::new(&format!("node-{revision}")).unwrap_or_else(|_| Name::lowest());
        let row = Token {
            meta: self.new_meta(revision),
            name,
            purpose: Purpose::Bearer,
            grant: Grant { role: Role::Node, node: Some(node.clone()), ..with.grant.clone() },
            description: Text::default(),
            joined_with: Some(with.name.clone()),
            secret_hash,
            expires_ms: Some(self.state.log_time_ms().saturating_add(NODE_TOKEN_TTL_MS)),
            expires_wall_ms: Some(self.at.wall_ms.saturating_add(NODE_TOKEN_TTL_MS)),
            used_for: None,
            replaces: false,
        };
        self.state.write(id, Token { used_for: Some(Id::new(revision)), ..with });
        Ok(self.add_token(Id::new(revision), row))
    }

    /// Renews the presented token for its full TTL. Only a token created by joining can be renewed: for all
    /// other tokens an administrator chose the end.
    pub(crate) fn renew_token(&mut self) -> Result<Answer, Refusal> {
        let Credential::Token { id } = *self.credential else { return Err(Cause::NotRenewable.into()) };
        let old = self.state.tokens.get(id).cloned().ok_or(Cause::TokenRevoked)?;
        let (Some(ends_ms), Some(_)) = (old.expires_ms, &old.joined_with) else {
            return Err(Cause::NotRenewable.into());
        };
        let until_ms = self.state.log_time_ms().saturating_add(NODE_TOKEN_TTL_MS);
        if until_ms.saturating_sub(ends_ms) < NODE_TOKEN_DAMPING_MS {
            return Ok(stored(old));
        }
        let new = Token {
            expires_ms: Some(until_ms),
            expires_wall_ms: Some(self.at.wall_ms.saturating_add(NODE_TOKEN_TTL_MS)),
            ..old.clone()
        };
        let changed = changes(&old, &new);
        Ok(self.change(Kind::Token, &old.name, &old.meta, changed, |step, meta| {
            let row = Token { meta, ..new };
            step.state.write(id, row.clone());
            Stored::Token(row)
        }))
    }

    /// Refuses to take over a node's tokens unless the join token permits it. Returns the tokens to delete.
    fn check_may_take(&self, with: &Token, node: &NodeKey) -> Result<Vec<TokenId>, Refusal> {
        let state = &self.state;
        let earlier = state.tokens_of(node);
        let name = ResourceName::in_realm(&node.realm, &node.name);
        let is_known = !earlier.is_empty()
            || state.find::<Node>(&name).is_some()
            || state.report_of(node).is_some()
            || state.index.boots.get(&(node.realm.clone(), node.name.clone())).is_some();
        if is_known && with.grant.node.is_none() {
            return Err(Cause::JoinTokenWithoutNode { node: node.clone() }.into());
        }
        let mut rows = earlier.iter().map(|id| state.tokens.named(*id));
        let live = rows.find(|row| row.expires_ms.is_none_or(|until_ms| until_ms > state.log_time_ms()));
        match live {
            Some(token) if !with.replaces => {
                Err(Cause::NodeHasToken { node: node.clone(), token: token.name.clone() }.into())
            }
            _ => Ok(earlier),
        }
    }

    pub(crate) fn check_room_for_tokens_of(&self, node: &NodeKey) -> Result<(), Refusal> {
        refuse_if(self.state.tokens_of(node).len() >= NODE_TOKENS_MAX, || Cause::TooManyTokensOfNode {
            node: node.clone(),
        })
    }
}

/// Answer for an unchanged token.
fn stored(row: Token) -> Answer {
    Answer::Stored { created: false, revision: row.meta.revision, resource: Box::new(Stored::Token(row)) }
}

fn no_join_token() -> Refusal {
    Cause::NoJoinToken.into()
}
