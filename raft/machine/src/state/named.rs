//! Named resources by kind.

use ipam_api::name::ResourceName;
use std::ops::Bound;

use crate::state::State;
use crate::state::id::Id;
use crate::state::row::{
    HostPolicy, InRows, Meta, Namespace, Network, Node, Pool, Reservation, Subnet, Token,
};
use crate::value::{Kind, Metadata};

/// Row with a unique name within its kind.
pub(crate) trait Named: InRows<Id = Id<Self>> {
    const KIND: Kind;

    fn name(&self) -> ResourceName;
}

macro_rules! named {
    ($($type:ident in $table:ident: $name:expr, $metadata:expr;)*) => {
        $(impl Named for $type {
            const KIND: Kind = Kind::$type;

            fn name(&self) -> ResourceName {
                let name: fn(&Self) -> ResourceName = $name;
                name(self)
            }
        })*

        impl State {
            #[must_use]
            pub fn name_of(&self, kind: Kind, id: u64) -> Option<ResourceName> {
                match kind {
                    $(Kind::$type => self.$table.get(Id::new(id)).map(Named::name),)*
                }
            }

            /// Number of resources of a kind.
            #[must_use]
            pub fn count(&self, kind: Kind) -> usize {
                match kind {
                    $(Kind::$type => self.$table.len(),)*
                }
            }

            /// Identity and history of a named resource.
            #[must_use]
            pub fn meta(&self, kind: Kind, name: impl Into<ResourceName>) -> Option<&Meta> {
                let id = self.id_of(kind, name)?;
                match kind {
                    $(Kind::$type => self.$table.get(Id::new(id)).map(|row| &row.meta),)*
                }
            }

            /// Metadata on a resource.
            pub(crate) fn metadata(&self, kind: Kind, name: impl Into<ResourceName>) -> Option<&Metadata> {
                let id = self.id_of(kind, name)?;
                match kind {
                    $(Kind::$type => self.$table.get(Id::new(id)).and_then($metadata),)*
                }
            }
        }
    };
}

named! {
    Network in networks: |row| (&row.spec.name).into(), |row| Some(&row.spec.metadata);
    Subnet in subnets: |row| (&row.spec.name).into(), |row| Some(&row.spec.metadata);
    Pool in pools: |row| (&row.spec.name).into(), |row| Some(&row.spec.metadata);
    Reservation in reservations: |row| (&row.spec.name).into(), |row| Some(&row.spec.metadata);
    Token in tokens: |row| (&row.name).into(), |_| None;
    Node in nodes: |row| row.spec.resource_name(), |row| Some(&row.spec.metadata);
    Namespace in namespaces: |row| row.spec.resource_name(), |row| Some(&row.spec.metadata);
    HostPolicy in host_policies: |row| (&row.spec.name).into(), |row| Some(&row.spec.metadata);
}

impl State {
    #[must_use]
    pub fn id_of(&self, kind: Kind, name: impl Into<ResourceName>) -> Option<u64> {
        self.index.names.get(&(kind, name.into())).copied()
    }

    /// Id of a resource of a known kind.
    pub(crate) fn find<T: Named>(&self, name: impl Into<ResourceName>) -> Option<Id<T>> {
        self.id_of(T::KIND, name).map(Id::new)
    }

    /// Resource of a known kind, with its id.
    pub(crate) fn find_row<T: Named>(&self, name: impl Into<ResourceName>) -> Option<(Id<T>, &T)> {
        let id = self.find(name)?;
        Some((id, T::table(&self.rows).named(id)))
    }

    /// The names of a kind after `after`, in order.
    pub fn names<'a>(
        &'a self,
        kind: Kind,
        after: Option<&ResourceName>,
    ) -> impl Iterator<Item = (&'a ResourceName, u64)> + use<'a> {
        let from = match after {
            Some(name) => Bound::Excluded((kind, name.clone())),
            None => Bound::Included((kind, ResourceName::lowest_beginning(""))),
        };
        self.index
            .names
            .range((from, Bound::Unbounded))
            .take_while(move |((of, _), _)| *of == kind)
            .map(|((_, name), id)| (name, *id))
    }
}
