//! Namespaces: by their labels pools say which groups of endpoints they are for, and what their endpoints take from
//! where nobody names anything.

use ipam_api::name::{Name, ObjectName, ResourceName};

use super::change::changes;
use super::command::{Answer, Expect, Kind, NamespaceIntention, Put, Refusal, Stored};
use super::event::What;
use super::model::Namespace;
use super::network::check_room;
use super::state::State;
use super::step::{Step, check_expected, not_found};

impl Step<'_> {
    pub(super) fn put_namespace(&mut self, put: &Put<NamespaceIntention>) -> Result<Answer, Refusal> {
        let (kind, intention, name) = (Kind::Namespace, &put.intention, put.intention.resource_name());
        let old = self.state.id_of(kind, &name).and_then(|id| self.state.namespaces.get(id));
        check_expected(kind, &name, old.map(|row| &row.meta), put.expect)?;
        if let Some(old) = old {
            if old.intention == *intention {
                return Ok(Answer::unchanged(&old.meta, Stored::Namespace(old.clone())));
            }
            self.check_manager(kind, &name)?;
            let old = old.clone();
            let changes = changes(&old.intention, intention);
            return Ok(self.change(kind, &name, &old.meta, changes, |step, meta| {
                let id = meta.id;
                let row = Namespace { meta, intention: intention.clone() };
                step.state.namespaces.put(id, row.clone(), &mut step.state.ledger);
                step.state.refresh_heads_of(&row.intention);
                Stored::Namespace(row)
            }));
        }
        check_room(self.state.namespaces.len(), kind)?;
        let revision = self.state.tick();
        let row = Namespace { meta: self.new_meta(revision), intention: intention.clone() };
        self.state.index.names.insert((kind, name.clone()), revision);
        self.state.namespaces.put(revision, row.clone(), &mut self.state.ledger);
        self.state.refresh_heads_of(&row.intention);
        self.emit(What::Created { kind, name });
        Ok(Answer::created(revision, Stored::Namespace(row)))
    }

    /// Forgets what was said of a namespace. What its endpoints hold stays as it is.
    pub(super) fn delete_namespace(
        &mut self,
        name: &ResourceName,
        expect: Expect,
    ) -> Result<Answer, Refusal> {
        let kind = Kind::Namespace;
        let id = self.state.id_of(kind, name).ok_or_else(|| not_found(kind, name))?;
        check_expected(kind, name, self.state.namespaces.get(id).map(|row| &row.meta), expect)?;
        self.check_manager(kind, name)?;
        self.state.tick();
        self.state.index.names.remove(&(kind, name.clone()));
        let row = self.state.namespaces.remove(id, &mut self.state.ledger);
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
        let id = self.id_of(Kind::Namespace, ResourceName::in_realm(realm, name))?;
        self.namespaces.get(id)
    }
}
