//! Resources in general: rows with a spec, and the steps that all kinds share.

use crate::apply::step::Step;
use crate::command::validate::within;
use crate::command::{
    Answer, Cause, Expect, HostPolicySpec, NamespaceSpec, NetworkSpec, NodeSpec, Put, Refusal, Stored,
};
use crate::event::EventKind;
use crate::event::field_change::{Fields, changes};
use crate::state::id::Id;
use crate::state::indexed::Indexed;
use crate::state::refuse::{check_expected, not_found};
use crate::state::row::{HostPolicy, Meta, Named, Namespace, Network, Node};
use crate::value::Kind;
use crate::value::cause::Counted;
use ipam_api::limits::{HOST_POLICIES_MAX, RESOURCES_MAX};
use ipam_api::name::ResourceName;
use std::sync::Arc;

/// Row that consists of a spec and its history.
pub(crate) trait Described: Named + Indexed {
    /// Spec as a caller writes it.
    type Spec: Fields + Clone + PartialEq;

    fn new(meta: Meta, spec: Self::Spec) -> Self;

    fn parts(&self) -> (&Meta, &Self::Spec);

    fn stored(self) -> Stored;
}

macro_rules! described {
    ($($row:ident($spec:ty);)*) => {
        $(impl Described for $row {
            type Spec = $spec;

            fn new(meta: Meta, spec: $spec) -> Self {
                Self { meta, spec }
            }

            fn parts(&self) -> (&Meta, &$spec) {
                (&self.meta, &self.spec)
            }

            fn stored(self) -> Stored {
                Stored::$row(self)
            }
        })*
    };
}

described! {
    Network(NetworkSpec);
    // Boots of a node are stored apart from its description, and no write of an operator deletes them.
    Node(NodeSpec);
    Namespace(NamespaceSpec);
    HostPolicy(HostPolicySpec);
}

impl Step<'_> {
    /// Creates or changes a described resource.
    pub(crate) fn put_described<T: Described>(
        &mut self,
        name: ResourceName,
        put: &Put<T::Spec>,
    ) -> Result<Answer, Refusal> {
        let (kind, spec) = (T::KIND, &put.spec);
        let old = self.state.find_row::<T>(&name);
        check_expected(kind, &name, old.map(|(_, row)| row.parts().0), put.expect)?;
        let Some((id, old)) = old.map(|(id, row)| (id, row.clone())) else {
            check_room(self.state.count(kind), kind)?;
            return Ok(self.create(name, |meta| T::new(meta, spec.clone()), T::stored));
        };
        let (meta, before) = old.parts();
        if before == spec {
            return Ok(Answer::unchanged(meta, old.clone().stored()));
        }
        self.check_manager(kind, &name)?;
        Ok(self.change(kind, name, meta, changes(before, spec), |step, meta| {
            let row = T::new(meta, spec.clone());
            step.state.write(id, row.clone());
            row.stored()
        }))
    }

    /// Deletes a resource that no other resource names.
    pub(crate) fn delete_described<T: Named + Indexed>(
        &mut self,
        name: &ResourceName,
        expect: Expect,
    ) -> Result<Answer, Refusal> {
        let id = self.to_write::<T>(name, expect)?;
        self.delete(id, name);
        Ok(Answer::Gone)
    }

    /// Finds the resource of a write; refuses an unexpected revision and a resource with another manager.
    pub(super) fn to_write<T: Named>(&self, name: &ResourceName, expect: Expect) -> Result<Id<T>, Refusal> {
        let id = self.state.find(name).ok_or_else(|| not_found(T::KIND, name))?;
        check_expected(T::KIND, name, self.state.meta(T::KIND, name), expect)?;
        self.check_manager(T::KIND, name)?;
        Ok(id)
    }

    /// Writes a new resource.
    pub(super) fn create<T: Named + Indexed>(
        &mut self,
        name: impl Into<ResourceName>,
        row: impl FnOnce(Meta) -> T,
        stored: impl FnOnce(T) -> Stored,
    ) -> Answer {
        let revision = self.state.tick();
        let row = row(self.new_meta(revision));
        self.state.write(Id::new(revision), row.clone());
        self.emit(EventKind::Created { kind: T::KIND, name: name.into() });
        Answer::created(revision, stored(row))
    }

    /// Removes a resource and returns its row.
    pub(super) fn delete<T: Named + Indexed>(&mut self, id: Id<T>, name: &ResourceName) -> Arc<T> {
        self.state.tick();
        self.emit(EventKind::Deleted { kind: T::KIND, name: name.clone() });
        self.state.erase_named(id)
    }
}

pub(crate) fn check_room(count: usize, kind: Kind) -> Result<(), Refusal> {
    if kind == Kind::HostPolicy {
        return within(Counted::HostPolicies, count + 1, HOST_POLICIES_MAX);
    }
    if count < RESOURCES_MAX {
        return Ok(());
    }
    Err(Cause::TooManyOfKind { kind, count: count as u64 }.into())
}
