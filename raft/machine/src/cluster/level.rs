//! Feature level: the rules by which `apply` behaves. Every changed rule, even a bug fix, depends on it. So
//! members with different programs stay equal until an entry raises the level on all of them at once.

use crate::apply::step::Step;
use crate::command::{Answer, Cause, Refusal};
use crate::event::EventKind;
#[cfg(feature = "testing")]
use crate::testing::TestOption;
use crate::value::level::LEVEL;
use crate::value::refuse_if;

/// Error for a state whose feature level this program doesn't support.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the cluster's feature level is {level}, and this ipamd knows up to {}: start the newer ipamd again \
     (a level is raised once all members know it, and never lowered)",
    known()
)]
pub struct UnknownLevel {
    /// The level of the state.
    pub level: u32,
}

/// Returns the highest level that this program supports.
#[must_use]
pub fn known() -> u32 {
    #[cfg(feature = "testing")]
    if TestOption::NextLevel.is_on() {
        return LEVEL + 1;
    }
    LEVEL
}

/// Refuses a level that this program doesn't support.
///
/// # Errors
/// If it is unsupported.
pub fn check_known(level: u32) -> Result<(), UnknownLevel> {
    if level > known() { Err(UnknownLevel { level }) } else { Ok(()) }
}

impl Step<'_> {
    /// Raises the level; does nothing at or below the present level.
    pub(crate) fn raise_level(&mut self, level: u32) -> Result<Answer, Refusal> {
        let present = self.state.header.level;
        refuse_if(level > present + 1, || Cause::LevelLeap { present, level })?;
        if level > present {
            self.state.header.level = level;
            self.state.tick();
            self.emit(EventKind::LevelRaised { level });
        }
        Ok(Answer::Level { level: self.state.header.level })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Action;
    use crate::command::Text;
    use crate::dispatch::apply;
    use crate::state::State;
    use crate::value::At;
    use crate::value::level::FIRST_LEVEL;
    use crate::{Command, Grant, Origin, Terms};
    use ipam_api::Code;

    fn raise(state: &mut State, level: u32) -> Result<Answer, Code> {
        let origin = Origin {
            principal: Text::given("task/level"),
            via: crate::command::Via::Task,
            request_id: Text::given("r"),
            comment: None,
            not_after_ms: None,
        };
        let terms = Terms::of(Grant::of(ipam_api::access::Role::Admin));
        let command = Command { origin, terms, action: Action::RaiseLevel { level } };
        apply(state, At::default(), &command)
            .0
            .map(|applied| applied.answer)
            .map_err(|refusal| refusal.code())
    }

    #[test]
    fn it_rises_by_one_and_never_falls() {
        let mut state = State::new();
        assert_eq!(state.header.level, FIRST_LEVEL);
        let revision = state.revision();
        assert_eq!(raise(&mut state, 1), Ok(Answer::Level { level: 1 }));
        assert_eq!(state.revision(), revision, "nothing has changed");
        assert_eq!(raise(&mut state, 3), Err(Code::FeatureLevel));
        assert_eq!(raise(&mut state, 2), Ok(Answer::Level { level: 2 }));
        assert_eq!(raise(&mut state, 1), Ok(Answer::Level { level: 2 }));
        assert_eq!((state.header.level, state.revision()), (2, revision + 1));
    }

    #[test]
    fn an_unsupported_level_is_reported() {
        assert_eq!(check_known(LEVEL), Ok(()));
        let said = check_known(LEVEL + 1).unwrap_err().to_string();
        assert!(said.contains("level is 2, and this ipamd knows up to 1: start the newer ipamd"), "{said}");
    }

    /// The option applies to the whole process; each other test has a process of its own.
    #[test]
    fn the_next_level_is_known_by_option() {
        TestOption::NextLevel.turn_on();
        assert_eq!((known(), check_known(LEVEL + 1)), (LEVEL + 1, Ok(())));
        assert!(check_known(LEVEL + 2).is_err());
    }
}
