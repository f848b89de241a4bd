//! Named resources by kind.

use ipam_api::name::ResourceName;

use crate::state::State;
use crate::state::id::Id;
use crate::value::Kind;
use crate::value::row::Meta;

impl State {
    /// The name of a resource.
    #[must_use]
    pub fn name_of(&self, kind: Kind, id: u64) -> Option<ResourceName> {
        match kind {
            Kind::Network => self.networks.get(Id::new(id)).map(|row| (&row.intention.name).into()),
            Kind::Subnet => self.subnets.get(Id::new(id)).map(|row| (&row.intention.name).into()),
            Kind::Pool => self.pools.get(Id::new(id)).map(|row| (&row.intention.name).into()),
            Kind::Reservation => self.reservations.get(Id::new(id)).map(|row| (&row.intention.name).into()),
            Kind::Token => self.tokens.get(Id::new(id)).map(|row| (&row.name).into()),
            Kind::Node => self.nodes.get(Id::new(id)).map(|row| row.intention.resource_name()),
            Kind::Namespace => self.namespaces.get(Id::new(id)).map(|row| row.intention.resource_name()),
        }
    }

    /// How many there are of a kind.
    #[must_use]
    pub fn count(&self, kind: Kind) -> usize {
        match kind {
            Kind::Network => self.networks.len(),
            Kind::Subnet => self.subnets.len(),
            Kind::Pool => self.pools.len(),
            Kind::Reservation => self.reservations.len(),
            Kind::Token => self.tokens.len(),
            Kind::Node => self.nodes.len(),
            Kind::Namespace => self.namespaces.len(),
        }
    }

    /// Identity and history of a named resource.
    #[must_use]
    pub fn meta(&self, kind: Kind, name: impl Into<ResourceName>) -> Option<&Meta> {
        let id = self.id_of(kind, name)?;
        match kind {
            Kind::Network => self.networks.get(Id::new(id)).map(|row| &row.meta),
            Kind::Subnet => self.subnets.get(Id::new(id)).map(|row| &row.meta),
            Kind::Pool => self.pools.get(Id::new(id)).map(|row| &row.meta),
            Kind::Reservation => self.reservations.get(Id::new(id)).map(|row| &row.meta),
            Kind::Token => self.tokens.get(Id::new(id)).map(|row| &row.meta),
            Kind::Node => self.nodes.get(Id::new(id)).map(|row| &row.meta),
            Kind::Namespace => self.namespaces.get(Id::new(id)).map(|row| &row.meta),
        }
    }
}
