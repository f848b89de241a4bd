//! Tokens of limited administrators: a token lies within the rights of the caller that writes it.

use ipam_api::access::{DEEDS, Role, may};
use ipam_api::name::{Name, ResourceName};

use crate::command::{Cause, Grant, Purpose, Refusal};
use crate::state::State;
use crate::state::row::Token;
use crate::value::refuse_if;

impl Grant {
    /// Returns true if the rights lie within others.
    ///
    /// Labels are compared requirement by requirement, so the result may be a false negative, never a false
    /// positive.
    #[must_use]
    pub fn is_within(&self, other: &Self) -> bool {
        let is_of_realms = other.realms.is_empty()
            || match &self.node {
                Some(node) if self.realms.is_empty() => other.realms.contains(&node.realm),
                _ => !self.realms.is_empty() && self.realms.iter().all(|realm| other.realms.contains(realm)),
            };
        let role = |role: Role| move |(verb, target): &&_| may(role, *verb, *target);
        // A node renews its own token, and no administrator does that for it.
        let is_of_role = other.role == Role::Admin
            || DEEDS.iter().filter(role(self.role)).all(|permission| role(other.role)(&permission));
        let is_shared = other.allow_shared || other.realms.is_empty() || !self.allow_shared;
        let is_of_node = other.node.is_none() || self.node == other.node;
        is_of_realms && is_of_role && is_shared && is_of_node && self.labels.implies(&other.labels)
    }
}

impl State {
    /// Refuses a token with rights beyond those of the caller.
    pub(crate) fn permit_token(
        &self,
        grant: &Grant,
        name: &Name,
        (wanted, purpose): (&Grant, Purpose),
    ) -> Result<(), Refusal> {
        // A member has access to the whole state.
        let is_beyond = purpose == Purpose::JoinMember || !wanted.is_within(grant);
        refuse_if(is_beyond, || Cause::BeyondOwnRights { token: name.clone() })
    }

    /// Refuses to change an existing token with rights beyond those of the caller.
    pub(crate) fn permit_present_token(
        &self,
        grant: &Grant,
        name: impl Into<ResourceName>,
    ) -> Result<(), Refusal> {
        let row = self.find_row::<Token>(name);
        row.map_or(Ok(()), |(_, row)| self.permit_token(grant, &row.name, (&row.grant, row.purpose)))
    }
}
