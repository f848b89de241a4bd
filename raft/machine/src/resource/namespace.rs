//! Namespaces: by their labels pools say which groups of endpoints they are for, and what their endpoints take from
//! where nobody names anything.

use crate::apply::step::Step;
use crate::command::{Answer, Expect, Kind, NamespaceIntention, Put, Refusal, Stored};
use crate::event::What;
use crate::event::field_change::changes;
use crate::resource::network::check_room;
use crate::state::State;
use crate::state::id::Id;
use crate::state::refuse::{check_expected, not_found};
use crate::state::row::Namespace;
use ipam_api::name::{Name, ObjectName, ResourceName};

impl Step<'_> {
    pub(crate) fn put_namespace(&mut self, put: &Put<NamespaceIntention>) -> Result<Answer, Refusal> {
        let (kind, intention, name) = (Kind::Namespace, &put.intention, put.intention.resource_name());
        let old = self.state.find(&name).and_then(|id| self.state.namespaces.get(id));
        check_expected(kind, &name, old.map(|row| &row.meta), put.expect)?;
        if let Some(old) = old {
            if old.intention == *intention {
                return Ok(Answer::unchanged(&old.meta, Stored::Namespace(old.clone())));
            }
            self.check_manager(kind, &name)?;
            let old = old.clone();
            let changes = changes(&old.intention, intention);
            return Ok(self.change(kind, &name, &old.meta, changes, |step, meta| {
                let id = Id::new(meta.id);
                let row = Namespace { meta, intention: intention.clone() };
                step.state.write(id, row.clone());
                step.state.refresh_heads_of(&row.intention);
                Stored::Namespace(row)
            }));
        }
        check_room(self.state.namespaces.len(), kind)?;
        let revision = self.state.tick();
        let row = Namespace { meta: self.new_meta(revision), intention: intention.clone() };
        self.state.write(Id::new(revision), row.clone());
        self.state.refresh_heads_of(&row.intention);
        self.emit(What::Created { kind, name });
        Ok(Answer::created(revision, Stored::Namespace(row)))
    }

    /// Forgets what was said of a namespace. What its endpoints hold stays as it is.
    pub(crate) fn delete_namespace(
        &mut self,
        name: &ResourceName,
        expect: Expect,
    ) -> Result<Answer, Refusal> {
        let kind = Kind::Namespace;
        let id = self.state.find(name).ok_or_else(|| not_found(kind, name))?;
        check_expected(kind, name, self.state.namespaces.get(id).map(|row| &row.meta), expect)?;
        self.check_manager(kind, name)?;
        self.state.tick();
        let row = self.state.erase::<Namespace>(id);
        if let Some(row) = row {
            self.state.refresh_heads_of(&row.intention);
        }
        self.emit(What::Deleted { kind, name: name.clone() });
        Ok(Answer::Gone)
    }
}

impl State {
    /// What somebody said of a namespace.
    #[must_use]
    pub fn namespace(&self, realm: &Name, name: &ObjectName) -> Option<&Namespace> {
        if self.namespaces.is_empty() {
            return None;
        }
        let id = self.find::<Namespace>(ResourceName::in_realm(realm, name))?;
        self.namespaces.get(id)
    }
}
