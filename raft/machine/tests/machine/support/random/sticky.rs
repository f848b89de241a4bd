//! At random: whether endpoints come back, and how many of them are wanted.

use ipam_api::name::Name;
use ipam_api::resource::ScaleDown;
use ipam_machine::Action;
use ipam_machine::command::{Controller, ScaleController, Stickiness, Text};

use crate::support::random::Draw;

impl Draw<'_> {
    pub(crate) fn controller(&mut self) -> Controller {
        let (group, kind, name) = match self.dice.below(8) {
            0 => ("", "VirtualMachine", "h0"),
            1 => ("apps", "Deployment", "w"),
            2 => ("kruise", "StatefulSet", "w"),
            _ => ("apps", "StatefulSet", "w"),
        };
        let uid = self.dice.chance(30).then(|| Text::given(self.dice.pick(&["x", "y"])));
        Controller { group: Text::given(group), kind: Text::given(kind), name: name.parse().unwrap(), uid }
    }

    /// Mostly nothing, else mostly a controller that promises names.
    pub(crate) fn stickiness(&mut self) -> Stickiness {
        if self.dice.chance(60) {
            return Stickiness::default();
        }
        let controller = self.dice.chance(80).then(|| self.controller());
        let said = self.dice.chance(25) || controller.is_none();
        let sticky = said.then(|| self.dice.chance(80));
        let scale_down = self.dice.chance(15).then_some(ScaleDown::Keep);
        Stickiness { controller, sticky, scale_down }
    }

    pub(crate) fn scale(&mut self) -> Action {
        let (replicas, start) = (self.dice.below(3), self.dice.below(2));
        Action::ScaleController(ScaleController {
            realm: Name::new(self.dice.pick(&["default", "default", "prod"])).unwrap(),
            namespace: self.dice.pick(&["web", "web", "default"]).parse().unwrap(),
            controller: self.controller(),
            replicas: u32::try_from(replicas).unwrap(),
            start: u32::try_from(start).unwrap(),
        })
    }
}
