//! The level: by which rules `apply` behaves. A rule that changes, if only to mend a defect, asks for it, so that
//! members with different programs stay equal until an entry raises the level on all of them at once.

use super::command::{Answer, Cause, Refusal, Text};
use super::event::What;
use super::state::LEVEL;
use super::step::Step;

/// The level that a cluster begins at, whatever its members know: no entry says what they were founded with.
pub(super) const FIRST_LEVEL: u32 = 1;

/// A state that this program doesn't know the rules of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the cluster's feature level is {level}, and this ipamd knows up to {LEVEL}: start the newer ipamd again \
     (a level is raised once all members know it, and never lowered)"
)]
pub struct UnknownLevel {
    /// The level of the state.
    pub level: u32,
}

/// Refuses a level whose rules this program doesn't know.
///
/// # Errors
/// When it doesn't.
pub fn check_known(level: u32) -> Result<(), UnknownLevel> {
    if level > LEVEL { Err(UnknownLevel { level }) } else { Ok(()) }
}

impl Step<'_> {
    /// Raises the level. Where it is as high already there is nothing to do.
    pub(super) fn raise_level(&mut self, level: u32) -> Result<Answer, Refusal> {
        let present = self.state.header.level;
        if level > present + 1 {
            return Err(Cause::LevelLeap { present, level }.into());
        }
        if level > present {
            self.state.header.level = level;
            self.state.tick();
            self.emit(What::LevelRaised { level });
        }
        Ok(Answer::Level { level: self.state.header.level })
    }
}

/// Whom a resource says that it was made by. The next level has another rule, which only tests know: it is there so
/// that a rolling upgrade can be tried before there is anything to upgrade to.
pub(super) fn maker(level: u32, principal: &Text) -> Text {
    if cfg!(feature = "next-level") && level > FIRST_LEVEL {
        return Text::identifier(format!("{principal}@{level}"));
    }
    Text::clone(principal)
}

#[cfg(test)]
mod tests {
    use super::super::state::State;
    use super::super::{Action, At, Command, Grant, Origin, Terms, apply};
    use super::*;
    use ipam_api::Code;

    fn raise(state: &mut State, level: u32) -> Result<Answer, Code> {
        let origin = Origin {
            principal: Text::given("task/level"),
            via: super::super::command::Via::Task,
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
    fn what_is_not_known_here_is_said() {
        assert_eq!(check_known(LEVEL), Ok(()));
        let said = check_known(LEVEL + 1).unwrap_err().to_string();
        assert!(said.contains("start the newer ipamd"), "{said}");
    }
}
