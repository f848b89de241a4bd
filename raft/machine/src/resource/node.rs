//! Nodes as somebody describes them: by their labels pools say which hosts they are for.
//!
//! What a node's requests say of its boots is kept apart (`attachment.rs`): it is remembered whether or not anybody has
//! described the node, and forgotten with nothing that people do.

use crate::apply::step::Step;
use crate::command::{Answer, Expect, Kind, NodeIntention, Put, Refusal, Stored};
use crate::event::What;
use crate::event::field_change::changes;
use crate::resource::network::check_room;
use crate::state::State;
use crate::state::id::Id;
use crate::state::refuse::{check_expected, not_found};
use crate::state::row::Node;
use ipam_api::name::{Name, ObjectName, ResourceName};

impl Step<'_> {
    pub(crate) fn put_node(&mut self, put: &Put<NodeIntention>) -> Result<Answer, Refusal> {
        let (kind, intention, name) = (Kind::Node, &put.intention, put.intention.resource_name());
        let old = self.state.find(&name).and_then(|id| self.state.nodes.get(id));
        check_expected(kind, &name, old.map(|row| &row.meta), put.expect)?;
        if let Some(old) = old {
            if old.intention == *intention {
                return Ok(Answer::unchanged(&old.meta, Stored::Node(old.clone())));
            }
            self.check_manager(kind, &name)?;
            let old = old.clone();
            let changes = changes(&old.intention, intention);
            return Ok(self.change(kind, &name, &old.meta, changes, |step, meta| {
                let id = Id::new(meta.id);
                let row = Node { meta, intention: intention.clone() };
                step.state.write(id, row.clone());
                Stored::Node(row)
            }));
        }
        check_room(self.state.nodes.len(), kind)?;
        let revision = self.state.tick();
        let row = Node { meta: self.new_meta(revision), intention: intention.clone() };
        self.state.write(Id::new(revision), row.clone());
        self.emit(What::Created { kind, name });
        Ok(Answer::created(revision, Stored::Node(row)))
    }

    /// Forgets what was said of a node. What its endpoints hold stays as it is.
    pub(crate) fn delete_node(&mut self, name: &ResourceName, expect: Expect) -> Result<Answer, Refusal> {
        let kind = Kind::Node;
        let id = self.state.find(name).ok_or_else(|| not_found(kind, name))?;
        check_expected(kind, name, self.state.nodes.get(id).map(|row| &row.meta), expect)?;
        self.check_manager(kind, name)?;
        self.state.tick();
        self.state.erase::<Node>(id);
        self.emit(What::Deleted { kind, name: name.clone() });
        Ok(Answer::Gone)
    }
}

impl State {
    /// What somebody said of a node.
    #[must_use]
    pub fn node(&self, realm: &Name, name: &ObjectName) -> Option<&Node> {
        if self.nodes.is_empty() {
            return None;
        }
        let id = self.find::<Node>(ResourceName::in_realm(realm, name))?;
        self.nodes.get(id)
    }
}
