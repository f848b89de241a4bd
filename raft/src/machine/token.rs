//! Tokens: what callers ask with. Their secrets are never here, only what tells them from all others.

use ipam_api::access::{NodeKey, Role};
use ipam_api::brand::ANONYMOUS;
use ipam_api::limits::{JOIN_TOKEN_TTL_MS_MAX, TOKEN_REALMS_MAX, TOKEN_TTL_MS_MAX, TOKENS_MAX};
use ipam_api::name::{Name, ResourceName};

use super::check::{text, within};
use super::command::Cause;
use super::command::cause::{Counted, TextField};
use super::command::{
    Answer, CreateToken, Credential, Expect, Grant, Kind, Purpose, Refusal, SecretHash, Stored, Text,
};
use super::event::What;
use super::model::Token;
use super::step::{Step, check_expected, not_found};

impl CreateToken {
    pub(super) fn check(&self) -> Result<(), Refusal> {
        text(TextField::Description, &self.description)?;
        within(Counted::TokenRealms, self.grant.realms.len(), TOKEN_REALMS_MAX)?;
        // So that nobody can take a token's principal for somebody without one.
        if self.name.as_str() == ANONYMOUS {
            return Err(Cause::ReservedTokenName.into());
        }
        let longest = match self.purpose {
            Purpose::Bearer => TOKEN_TTL_MS_MAX,
            Purpose::Join | Purpose::JoinMember => JOIN_TOKEN_TTL_MS_MAX,
        };
        match self.ttl_ms {
            Some(0) => return Err(Cause::TokenTtlZero.into()),
            Some(ttl_ms) if ttl_ms > longest => {
                return Err(Cause::TokenTtlTooLong { longest }.into());
            }
            None if self.purpose != Purpose::Bearer => {
                return Err(Cause::JoinTokenWithoutTtl.into());
            }
            _ => {}
        }
        match (self.purpose, self.grant.role, &self.grant.node) {
            (Purpose::Bearer, Role::Node, None) => Err(Cause::NodeTokenWithoutNode.into()),
            (Purpose::Bearer, role, Some(_)) if role != Role::Node => {
                Err(Cause::TokenWithNode { role }.into())
            }
            (Purpose::Join | Purpose::JoinMember, role, _) if role != Role::Node => {
                Err(Cause::JoinTokenRole.into())
            }
            _ => Ok(()),
        }
    }
}

impl Step<'_> {
    pub(super) fn create_token(&mut self, wish: &CreateToken) -> Result<Answer, Refusal> {
        let old = self.state.meta(Kind::Token, &wish.name);
        check_expected(Kind::Token, &wish.name, old, Expect::Absent)?;
        self.check_secret(&wish.secret_hash)?;
        self.check_room_for_tokens()?;
        let revision = self.state.tick();
        let expires_ms = wish.ttl_ms.map(|ttl_ms| self.state.log_time_ms().saturating_add(ttl_ms));
        let row = Token {
            meta: self.new_meta(revision),
            name: wish.name.clone(),
            purpose: wish.purpose,
            grant: wish.grant.clone(),
            description: Text::clone(&wish.description),
            joined_with: None,
            secret_hash: wish.secret_hash,
            expires_ms,
            expires_wall_ms: wish.ttl_ms.map(|ttl_ms| self.at.wall_ms.saturating_add(ttl_ms)),
            used_for: None,
        };
        Ok(self.add_token(revision, row))
    }

    pub(super) fn rotate_token(
        &mut self,
        name: &Name,
        secret_hash: SecretHash,
        expect: Expect,
    ) -> Result<Answer, Refusal> {
        let kind = Kind::Token;
        let id = self.state.id_of(kind, name).ok_or_else(|| not_found(kind, name))?;
        let old = self.state.tokens.get(id).ok_or_else(|| not_found(kind, name))?.clone();
        check_expected(kind, name, Some(&old.meta), expect)?;
        self.check_secret(&secret_hash)?;
        // The secret is no field that anybody sees, and so no change that anybody reads.
        let answer = self.change(kind, name, &old.meta, Vec::new(), |step, meta| {
            let row = Token { meta, secret_hash, ..old.clone() };
            step.state.index.token_secrets.remove(&old.secret_hash);
            step.state.index.token_secrets.insert(secret_hash, id);
            step.state.tokens.put(id, row.clone(), &mut step.state.ledger);
            Stored::Token(row)
        });
        Ok(answer)
    }

    pub(super) fn delete_token(&mut self, name: &ResourceName, expect: Expect) -> Result<Answer, Refusal> {
        let kind = Kind::Token;
        let id = self.state.id_of(kind, name).ok_or_else(|| not_found(kind, name))?;
        check_expected(kind, name, self.state.meta(kind, name), expect)?;
        self.state.tick();
        if let Some(row) = self.state.tokens.remove(id, &mut self.state.ledger) {
            self.state.index.token_secrets.remove(&row.secret_hash);
            if let Some(until_ms) = row.expires_ms {
                self.state.index.token_ends.remove(&(until_ms, id));
            }
        }
        self.state.index.names.remove(&(kind, name.clone()));
        self.emit(What::Deleted { kind, name: name.clone() });
        Ok(Answer::Gone)
    }

    /// Makes a node's token with a join token. The same node with the same secret again gets the same answer:
    /// the first may have been lost on its way.
    pub(super) fn join(&mut self, node: &NodeKey, secret_hash: SecretHash) -> Result<Answer, Refusal> {
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
                Some(token) => Ok(Answer::Stored {
                    created: false,
                    revision: token.meta.revision,
                    resource: Box::new(Stored::Token(token.clone())),
                }),
                None => Err(Cause::JoinTokenUsed.into()),
            };
        }
        self.check_secret(&secret_hash)?;
        self.check_room_for_tokens()?;
        let revision = self.state.tick();
        // Letters, a dash and digits are always a name.
        let name = Name::new(&format!("node-{revision}")).unwrap_or_else(|_| Name::lowest());
        let row = Token {
            meta: self.new_meta(revision),
            name,
            purpose: Purpose::Bearer,
            grant: Grant { role: Role::Node, node: Some(node.clone()), ..with.grant.clone() },
            description: Text::default(),
            joined_with: Some(with.name.clone()),
            secret_hash,
            expires_ms: None,
            expires_wall_ms: None,
            used_for: None,
        };
        self.state.tokens.put(id, Token { used_for: Some(revision), ..with }, &mut self.state.ledger);
        Ok(self.add_token(revision, row))
    }

    fn add_token(&mut self, id: u64, row: Token) -> Answer {
        self.state.index.names.insert((Kind::Token, (&row.name).into()), id);
        self.state.index.token_secrets.insert(row.secret_hash, id);
        self.state.index.token_ends.extend(row.expires_ms.map(|until_ms| (until_ms, id)));
        self.emit(What::Created { kind: Kind::Token, name: (&row.name).into() });
        self.state.tokens.put(id, row.clone(), &mut self.state.ledger);
        Answer::Stored { created: true, revision: id, resource: Box::new(Stored::Token(row)) }
    }

    /// Two tokens with one secret could not be told apart.
    fn check_secret(&self, secret_hash: &SecretHash) -> Result<(), Refusal> {
        if self.state.index.token_secrets.contains_key(secret_hash) {
            return Err(Cause::SecretTaken.into());
        }
        Ok(())
    }

    fn check_room_for_tokens(&self) -> Result<(), Refusal> {
        let count = self.state.tokens.len();
        if count < TOKENS_MAX {
            return Ok(());
        }
        Err(Cause::TooManyTokens { count: count as u64 }.into())
    }
}

fn no_join_token() -> Refusal {
    Cause::NoJoinToken.into()
}
