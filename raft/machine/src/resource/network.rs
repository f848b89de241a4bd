//! Networks: created, described, removed once nothing is in them.

use crate::apply::step::Step;
use crate::command::{Answer, Cause, Expect, Kind, NetworkIntention, Put, Refusal, Remarks, Stored, Text};
use crate::event::What;
use crate::event::field_change::{FieldChange, changes};
use crate::state::State;
use crate::state::id::{Id, NetworkId};
use crate::state::refuse::{check_expected, not_found};
use crate::state::row::{Meta, Network};
use ipam_api::limits::RESOURCES_MAX;
use ipam_api::name::{Name, ResourceName};

impl Step<'_> {
    pub(crate) fn put_network(&mut self, put: &Put<NetworkIntention>) -> Result<Answer, Refusal> {
        let intention = &put.intention;
        let old = self.state.find::<Network>(&intention.name).and_then(|id| self.state.networks.get(id));
        check_expected(Kind::Network, &intention.name, old.map(|row| &row.meta), put.expect)?;
        if let Some(old) = old {
            if old.intention == *intention {
                return Ok(Answer::unchanged(&old.meta, Stored::Network(old.clone())));
            }
            self.check_manager(Kind::Network, &intention.name)?;
            let old = old.clone();
            let changes = changes(&old.intention, intention);
            return Ok(self.change(Kind::Network, &intention.name, &old.meta, changes, |step, meta| {
                let id = Id::new(meta.id);
                let row = Network { meta, intention: intention.clone() };
                step.state.write(id, row.clone());
                Stored::Network(row)
            }));
        }
        check_room(self.state.networks.len(), Kind::Network)?;
        let revision = self.state.tick();
        let row = Network { meta: self.new_meta(revision), intention: intention.clone() };
        self.state.write(Id::new(revision), row.clone());
        self.emit(What::Created { kind: Kind::Network, name: (&intention.name).into() });
        Ok(Answer::created(revision, Stored::Network(row)))
    }

    pub(crate) fn delete_network(&mut self, name: &ResourceName, expect: Expect) -> Result<Answer, Refusal> {
        let kind = Kind::Network;
        let id = self.state.find(name).ok_or_else(|| not_found(kind, name))?;
        check_expected(kind, name, self.state.networks.get(id).map(|row| &row.meta), expect)?;
        self.check_manager(kind, name)?;
        if name.as_str() == ipam_api::brand::DEFAULT {
            return Err(Cause::DefaultNetwork.into());
        }
        let subnets = self.state.subnets_of(id).count();
        if subnets > 0 {
            return Err(Cause::NetworkHasSubnets { network: name.clone(), subnets: subnets as u64 }.into());
        }
        let reservations = self.state.reservations.iter().filter(|(_, row)| row.network == id).count();
        if reservations > 0 {
            let (network, reservations) = (name.clone(), reservations as u64);
            return Err(Cause::NetworkHasReservations { network, reservations }.into());
        }
        self.state.tick();
        self.state.erase::<Network>(id);
        self.emit(What::Deleted { kind, name: name.clone() });
        Ok(Answer::Gone)
    }

    /// Takes a revision, says that the intention has changed, and lets `write` write the row.
    pub(crate) fn change(
        &mut self,
        kind: Kind,
        name: impl Into<ResourceName>,
        old: &Meta,
        changes: Vec<FieldChange>,
        write: impl FnOnce(&mut Self, Meta) -> Stored,
    ) -> Answer {
        let revision = self.state.tick();
        let meta = Meta {
            revision,
            updated_wall_ms: self.at.wall_ms,
            updated_by: Text::clone(&self.origin.principal),
            updated_fields: changes.iter().map(|change| change.field).collect(),
            ..old.clone()
        };
        // What follows from a change comes behind it.
        self.emit(What::Changed { kind, name: name.into(), changes });
        let resource = Box::new(write(self, meta));
        Answer::Stored { created: false, revision, resource }
    }
}

impl State {
    /// The network that stands in where none is named.
    pub(crate) fn put_default_network(&mut self) {
        let revision = self.revision();
        let founder = Text::identifier("founding");
        let meta = Meta {
            id: revision,
            revision,
            created_wall_ms: 0,
            created_by: Text::clone(&founder),
            updated_wall_ms: 0,
            updated_by: founder,
            updated_fields: Vec::new(),
        };
        let intention = NetworkIntention { name: Name::default_name(), remarks: Remarks::default() };
        self.write(Id::new(revision), Network { meta, intention });
    }

    /// A network's name.
    pub(crate) fn name_of_network(&self, id: NetworkId) -> Name {
        self.networks.named(id).intention.name.clone()
    }

    /// The id of a network that a request names.
    pub(crate) fn network_named(&self, name: &Name) -> Result<NetworkId, Refusal> {
        self.find::<Network>(name).ok_or_else(|| not_found(Kind::Network, name))
    }
}

pub(crate) fn check_room(count: usize, kind: Kind) -> Result<(), Refusal> {
    if count < RESOURCES_MAX {
        return Ok(());
    }
    Err(Cause::TooManyOfKind { kind, count: count as u64 }.into())
}
