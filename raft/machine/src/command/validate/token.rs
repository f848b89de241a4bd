//! Checks of requests for tokens.

use ipam_api::access::Role;
use ipam_api::brand::ANONYMOUS;
use ipam_api::limits::{JOIN_TOKEN_TTL_MS_MAX, TOKEN_REALMS_MAX, TOKEN_TTL_MS_MAX};

use crate::command::validate::{text, within};
use crate::command::{Cause, CreateToken, Purpose, Refusal};
use crate::value::cause::{Counted, TextField};
use crate::value::refuse_if;

impl CreateToken {
    pub(super) fn check(&self) -> Result<(), Refusal> {
        text(TextField::Description, &self.description)?;
        within(Counted::TokenRealms, self.grant.realms.len(), TOKEN_REALMS_MAX)?;
        // The token's principal could be mistaken for a caller without a token.
        refuse_if(self.name.as_str() == ANONYMOUS, || Cause::ReservedTokenName)?;
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
        refuse_if(self.grant.allow_shared && self.grant.realms.is_empty(), || Cause::SharedWithoutRealms)?;
        match (self.purpose, self.grant.role, &self.grant.node) {
            (Purpose::Bearer, Role::Node, None) => Err(Cause::NodeTokenWithoutNode.into()),
            (Purpose::Bearer, role, Some(_)) if role != Role::Node => {
                Err(Cause::TokenWithNode { role }.into())
            }
            (Purpose::Join | Purpose::JoinMember, role, _) if role != Role::Node => {
                Err(Cause::JoinTokenRole.into())
            }
            // A token with which any node may join must not take over an existing node.
            (purpose, _, node) if self.replaces && (purpose != Purpose::Join || node.is_none()) => {
                Err(Cause::ReplacesNoNode.into())
            }
            _ => Ok(()),
        }
    }
}
