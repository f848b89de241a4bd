//! Changes of resources.

use crate::apply::step::Step;
use crate::command::{Answer, Kind, Stored, Text};
use crate::event::EventKind;
use crate::event::field_change::FieldChange;
use crate::state::row::Meta;
use ipam_api::name::ResourceName;

impl Step<'_> {
    /// Takes a revision, reports the change of the spec, and writes the row with `write`.
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
        // The events of a change's consequences follow the event of the change.
        self.emit(EventKind::Changed { kind, name: name.into(), changes });
        let resource = Box::new(write(self, meta));
        Answer::Stored { created: false, revision, resource }
    }
}
