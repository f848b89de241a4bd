//! At random: the ADDs of one endpoint's interfaces, each with the list of all of them.

use ipam_raft::machine::command::Allocate;

use crate::random::Draw;

impl Draw<'_> {
    /// The ADD of another interface of the same container, mostly one of the list.
    pub(crate) fn next_interface(&mut self, again: &mut Allocate) {
        let Some(mut key) = again.attachment.clone() else { return };
        let names: Vec<String> = again.interfaces.iter().map(|one| one.name.to_string()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let Some(next) = self.dice.pick_any(&names) else { return };
        key.interface = next.parse().unwrap();
        again.started = Some(self.started(&key));
        again.attachment = Some(key);
        if self.dice.chance(15) {
            // As one whose configuration knows nothing of the others.
            again.interfaces.retain(|one| one.name.as_str() == next);
        }
    }
}
