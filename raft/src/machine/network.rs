//! Networks: created, described, removed once nothing is in them.

use ipam_api::limits::RESOURCES_MAX;
use ipam_api::name::{Name, ResourceName};

use super::change::{FieldChange, changes};
use super::command::Cause;
use super::command::{Answer, Expect, Kind, NetworkIntention, Put, Refusal, Remarks, Stored, Text};
use super::event::What;
use super::model::{Meta, Network};
use super::state::State;
use super::step::{Step, check_expected, not_found};

impl Step<'_> {
    pub(super) fn put_network(&mut self, put: &Put<NetworkIntention>) -> Result<Answer, Refusal> {
        let intention = &put.intention;
        let old = self.state.id_of(Kind::Network, &intention.name).and_then(|id| self.state.networks.get(id));
        check_expected(Kind::Network, &intention.name, old.map(|row| &row.meta), put.expect)?;
        if let Some(old) = old {
            if old.intention == *intention {
                return Ok(Answer::unchanged(&old.meta, Stored::Network(old.clone())));
            }
            self.check_manager(Kind::Network, &intention.name)?;
            let old = old.clone();
            let changes = changes(&old.intention, intention);
            return Ok(self.change(Kind::Network, &intention.name, &old.meta, changes, |step, meta| {
                let id = meta.id;
                let row = Network { meta, intention: intention.clone() };
                step.state.networks.put(id, row.clone(), &mut step.state.ledger);
                Stored::Network(row)
            }));
        }
        check_room(self.state.networks.len(), Kind::Network)?;
        let revision = self.state.tick();
        let row = Network { meta: self.new_meta(revision), intention: intention.clone() };
        self.state.index.names.insert((Kind::Network, (&intention.name).into()), revision);
        self.state.networks.put(revision, row.clone(), &mut self.state.ledger);
        self.emit(What::Created { kind: Kind::Network, name: (&intention.name).into() });
        Ok(Answer::created(revision, Stored::Network(row)))
    }

    pub(super) fn delete_network(&mut self, name: &ResourceName, expect: Expect) -> Result<Answer, Refusal> {
        let kind = Kind::Network;
        let id = self.state.id_of(kind, name).ok_or_else(|| not_found(kind, name))?;
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
        self.state.index.names.remove(&(kind, name.clone()));
        self.state.networks.remove(id, &mut self.state.ledger);
        self.emit(What::Deleted { kind, name: name.clone() });
        Ok(Answer::Gone)
    }

    /// Takes a revision, says that the intention has changed, and lets `write` write the row.
    pub(super) fn change(
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
    pub(super) fn put_default_network(&mut self) {
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
        self.index.names.insert((Kind::Network, (&intention.name).into()), revision);
        self.networks.put(revision, Network { meta, intention }, &mut self.ledger);
    }

    /// A network's name.
    pub(super) fn name_of_network(&self, id: u64) -> Name {
        self.networks.get(id).map_or_else(Name::default_name, |row| row.intention.name.clone())
    }

    /// The id of a network that a request names.
    pub(super) fn network_named(&self, name: &Name) -> Result<u64, Refusal> {
        self.id_of(Kind::Network, name).ok_or_else(|| not_found(Kind::Network, name))
    }
}

pub(super) fn check_room(count: usize, kind: Kind) -> Result<(), Refusal> {
    if count < RESOURCES_MAX {
        return Ok(());
    }
    Err(Cause::TooManyOfKind { kind, count: count as u64 }.into())
}
