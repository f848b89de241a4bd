//! Tokens: credentials of callers. The state has hashes of their secrets only.

use crate::apply::step::Step;
use crate::command::{Answer, Cause, CreateToken, Expect, Kind, Purpose, Refusal, SecretHash, Stored, Text};
use crate::event::EventKind;
use crate::state::id::{Id, TokenId};
use crate::state::refuse::{check_expected, not_found};
use crate::state::row::Token;
use crate::value::refuse_if;
use ipam_api::limits::TOKENS_MAX;
use ipam_api::name::{Name, ResourceName};

impl Step<'_> {
    pub(crate) fn create_token(&mut self, request: &CreateToken) -> Result<Answer, Refusal> {
        let old = self.state.meta(Kind::Token, &request.name);
        check_expected(Kind::Token, &request.name, old, Expect::Absent)?;
        self.check_secret(&request.secret_hash)?;
        self.check_room_for_tokens()?;
        if let (Purpose::Bearer, Some(node)) = (request.purpose, &request.grant.node) {
            self.check_room_for_tokens_of(node)?;
        }
        let revision = self.state.tick();
        let expires_ms = request.ttl_ms.map(|ttl_ms| self.state.log_time_ms().saturating_add(ttl_ms));
        let row = Token {
            meta: self.new_meta(revision),
            name: request.name.clone(),
            purpose: request.purpose,
            grant: request.grant.clone(),
            description: Text::clone(&request.description),
            joined_with: None,
            secret_hash: request.secret_hash,
            expires_ms,
            expires_wall_ms: request.ttl_ms.map(|ttl_ms| self.at.wall_ms.saturating_add(ttl_ms)),
            used_for: None,
            replaces: request.replaces,
        };
        Ok(self.add_token(Id::new(revision), row))
    }

    pub(crate) fn rotate_token(
        &mut self,
        name: &Name,
        secret_hash: SecretHash,
        expect: Expect,
    ) -> Result<Answer, Refusal> {
        let kind = Kind::Token;
        let (id, old) = self.state.find_row::<Token>(name).ok_or_else(|| not_found(kind, name))?;
        let old = old.clone();
        check_expected(kind, name, Some(&old.meta), expect)?;
        self.check_secret(&secret_hash)?;
        // The secret is no visible field, and so no reported change.
        let answer = self.change(kind, name, &old.meta, Vec::new(), |step, meta| {
            let row = Token { meta, secret_hash, ..old.clone() };
            step.state.write(id, row.clone());
            Stored::Token(row)
        });
        Ok(answer)
    }

    pub(crate) fn delete_token(&mut self, name: &ResourceName, expect: Expect) -> Result<Answer, Refusal> {
        let kind = Kind::Token;
        let (id, row) = self.state.find_row::<Token>(name).ok_or_else(|| not_found(kind, name))?;
        check_expected(kind, name, Some(&row.meta), expect)?;
        self.state.tick();
        self.remove_token(id);
        Ok(Answer::Gone)
    }

    pub(crate) fn remove_token(&mut self, id: TokenId) {
        let row = self.state.erase_named::<Token>(id);
        let (kind, name) = (Kind::Token, ResourceName::from(&row.name));
        self.emit(EventKind::Deleted { kind, name });
    }

    pub(crate) fn add_token(&mut self, id: TokenId, row: Token) -> Answer {
        self.emit(EventKind::Created { kind: Kind::Token, name: (&row.name).into() });
        self.state.write(id, row.clone());
        Answer::Stored { created: true, revision: id.get(), resource: Box::new(Stored::Token(row)) }
    }

    /// Refuses a secret that another token has: a request could not be assigned to one of the two tokens.
    pub(crate) fn check_secret(&self, secret_hash: &SecretHash) -> Result<(), Refusal> {
        refuse_if(self.state.index.token_secrets.get(secret_hash).is_some(), || Cause::SecretTaken)
    }

    pub(crate) fn check_room_for_tokens(&self) -> Result<(), Refusal> {
        let count = self.state.tokens.len();
        refuse_if(count >= TOKENS_MAX, || Cause::TooManyTokens { count: count as u64 })
    }
}
