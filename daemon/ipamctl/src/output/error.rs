//! Failures of a command, with their text and exit codes.

use std::fmt::{Display, Write as _};
use std::path::Path;

use ipam_api::problem::{Applied, exit};
use ipam_api::{Code, Problem};

use crate::output::screen::Tone;
use crate::output::text::without_number;

/// Reason why a command failed or ended early.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A server refused the request, or the request could not be sent.
    Refused(Box<Refusal>),
    /// The command line is invalid; nothing was sent.
    Usage {
        /// Description of the mistake.
        detail: String,
        /// Remedy.
        help: String,
    },
    /// The user declined a confirmation.
    Declined,
    /// The command completed and found differences or problems, which are printed already.
    Found,
    /// The command explained why a request would be refused; the explanation is already printed.
    Explained(Code),
    /// The reader of standard output has closed the pipe (`ipamctl … | head`).
    ReaderGone,
    /// Output can't be written.
    Output(std::io::Error),
}

/// Problem with details that only the client knows.
#[derive(Debug)]
pub(crate) struct Refusal {
    /// Problem as the server or the client library reports it.
    pub(crate) problem: Problem,
    /// Existing name that was probably meant.
    pub(crate) meant: Option<String>,
    /// Advice for a safe repetition if the outcome is unknown.
    pub(crate) repeat: Option<String>,
    /// Origin of the list of servers, if no server answered.
    pub(crate) origin: Option<String>,
}

impl Failure {
    /// A mistake on the command line.
    pub(crate) fn usage(detail: impl Into<String>, help: impl Into<String>) -> Self {
        Self::Usage { detail: detail.into(), help: help.into() }
    }

    /// A file that can't be read or written.
    pub(crate) fn file(path: &Path, done: &str, error: impl Display, help: &str) -> Self {
        Self::usage(format!("{} can't be {done}: {error}", path.display()), help)
    }

    /// Adds advice for the case that the outcome is unknown.
    pub(crate) fn repeat_by(self, advice: impl Into<String>) -> Self {
        self.with(|refusal| refusal.repeat = Some(advice.into()))
    }

    /// Replaces the server's remedy with a better one.
    pub(crate) fn helped_by(self, help: String) -> Self {
        self.with(|refusal| refusal.problem.help = help)
    }

    /// Adds the origin of the list of servers.
    pub(crate) fn about_servers(self, origin: String) -> Self {
        self.with(|refusal| refusal.origin = Some(origin))
    }

    /// Adds the name that was probably meant.
    pub(crate) fn meant(self, name: Option<String>) -> Self {
        self.with(|refusal| refusal.meant = name)
    }

    fn with(mut self, change: impl FnOnce(&mut Refusal)) -> Self {
        if let Self::Refused(refusal) = &mut self {
            change(refusal);
        }
        self
    }

    /// Code of the problem, if there is one.
    pub(crate) fn code(&self) -> Option<Code> {
        match self {
            Self::Refused(refusal) => Some(refusal.problem.code),
            _ => None,
        }
    }

    /// The exit code, part of the contract.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Refused(refusal) => refusal.problem.exit_code(),
            Self::Usage { .. } => exit::USAGE,
            Self::Declined => exit::REFUSED,
            Self::Found => exit::FOUND,
            Self::Explained(code) => Problem::new(*code, "").exit_code(),
            Self::ReaderGone => exit::DONE,
            // Same code as for an unavailable server: the request itself isn't known to be wrong.
            Self::Output(_) => exit::UNAVAILABLE,
        }
    }

    /// Problem for programs as one line of JSON, if there is one. A usage error has the form of a server's
    /// refusal.
    pub(crate) fn json(&self) -> Option<String> {
        let problem = match self {
            Self::Refused(refusal) => {
                let mut problem = refusal.problem.clone();
                let (_, _, lines) = refusal.parts();
                problem.help =
                    lines.into_iter().filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
                if let Some(meant) = &refusal.meant {
                    problem.help = format!("Did you mean {meant}? {}", problem.help);
                }
                problem
            }
            Self::Usage { detail, help } => {
                Problem::new(Code::InvalidField, detail.clone()).help(help.clone())
            }
            _ => return None,
        };
        serde_json::to_string(&problem).ok().map(|text| ipam_api::screen::json(&text).into_owned())
    }

    /// Text for people, if there is any: a sentence, the remedy, and the exit code at the end.
    pub(crate) fn text(&self, color: bool) -> Option<String> {
        let (head, sentence, lines) = match self {
            Self::Found | Self::Explained(_) | Self::ReaderGone => return None,
            Self::Refused(refusal) => refusal.parts(),
            Self::Usage { detail, help } => ("usage".to_owned(), detail.clone(), vec![help.clone()]),
            Self::Declined => ("aborted".to_owned(), "nothing was changed.".to_owned(), Vec::new()),
            Self::Output(error) => {
                ("output".to_owned(), format!("the answer can't be written: {error}"), Vec::new())
            }
        };
        let head = Tone::Bad.paint(&head, color);
        let mut text = format!("{head}: {sentence}");
        for line in lines.iter().filter(|line| !line.is_empty()) {
            let _ = write!(text, "\n  {line}");
        }
        let _ = write!(text, "   (exit {})", self.exit_code());
        Some(text)
    }
}

impl Refusal {
    /// Head, sentence and further lines of the text.
    fn parts(&self) -> (String, String, Vec<String>) {
        let problem = &self.problem;
        let mut lines = Vec::new();
        if problem.applied == Applied::Unknown {
            // The head has the same words, so the prefix of the client library is removed.
            let detail = problem.detail.trim_start_matches("the outcome is unknown: ").to_owned();
            let repeat = self.repeat.as_deref().unwrap_or("check the current state, then repeat the command");
            lines.push(format!("repeat safely:  {repeat}"));
            return ("outcome unknown".to_owned(), detail, lines);
        }
        let mut head = problem.code.to_string().replace('-', " ");
        let mut sentence = problem.detail.clone();
        if problem.code == Code::Unreachable {
            head = "unavailable".to_owned();
            // One line per server shows which servers answer and which don't.
            let mut pieces = problem.detail.split("; ").map(|piece| without_number(piece).to_owned());
            sentence = format!("{}. Nothing was changed.", pieces.next().unwrap_or_default());
            lines.extend(pieces);
        }
        // The sentence contains the place of a single error; several errors get a line each.
        if problem.errors.len() > 1 {
            lines.extend(problem.errors.iter().map(|error| format!("{}: {}", error.pointer, error.detail)));
        }
        // The server's message may contain a suggestion already.
        if let Some(name) = self.meant.as_ref().filter(|_| !sentence.contains("did you mean")) {
            let _ = write!(sentence, ".  Did you mean {name}?");
        }
        lines.extend(self.origin.clone());
        lines.push(problem.help.clone());
        if let Some(request) = problem.request_id.as_ref().filter(|_| problem.code == Code::Internal) {
            lines.push(format!("request {request}"));
        }
        (head, sentence, lines)
    }
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        Self::Refused(Box::new(Refusal { problem, meant: None, repeat: None, origin: None }))
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        if error.kind() == std::io::ErrorKind::BrokenPipe { Self::ReaderGone } else { Self::Output(error) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_was_meant_stands_in_the_first_line() {
        let failure = Failure::from(Problem::new(Code::NotFound, "pool \"wbe\" doesn't exist"))
            .meant(Some("web".to_owned()));
        assert_eq!(
            failure.text(false).unwrap(),
            "not found: pool \"wbe\" doesn't exist.  Did you mean web?\n  \
             Check the name against the list of existing resources.   (exit 3)"
        );
    }

    #[test]
    fn each_server_that_does_not_answer_has_a_line() {
        let detail =
            "no server answered within 10.0 s; http://a:1: connection refused; http://b:1: timed out";
        let failure = Failure::from(Problem::new(Code::Unreachable, detail));
        assert_eq!(
            failure.text(false).unwrap(),
            "unavailable: no server answered within 10.0 s. Nothing was changed.\n  \
             http://a:1: connection refused\n  http://b:1: timed out\n  \
             Check that ipamd runs and that the server addresses are correct.   (exit 5)"
        );
    }

    #[test]
    fn an_unknown_outcome_says_how_to_repeat() {
        let problem = Problem::new(Code::DeadlineExceeded, "the outcome is unknown: the connection broke")
            .maybe_applied();
        let failure = Failure::from(problem).repeat_by("ipamctl endpoint show host/a");
        assert_eq!(
            failure.text(false).unwrap(),
            "outcome unknown: the connection broke\n  repeat safely:  ipamctl endpoint show host/a   (exit 6)"
        );
    }

    #[test]
    fn programs_get_the_problem() {
        let read = |failure: Failure| -> Problem { serde_json::from_str(&failure.json().unwrap()).unwrap() };
        let refused = Problem::new(Code::NotFound, "pool wbe doesn't exist");
        let problem = read(Failure::from(refused).meant(Some("web".to_owned())));
        assert_eq!((problem.code, problem.detail.as_str()), (Code::NotFound, "pool wbe doesn't exist"));
        assert!(problem.help.starts_with("Did you mean web? Check the name"), "{}", problem.help);
        let unknown = Problem::new(Code::DeadlineExceeded, "the connection broke").maybe_applied();
        let problem = read(Failure::from(unknown).repeat_by("ipamctl x --idempotency-key k"));
        assert!(problem.help.contains("--idempotency-key k"), "{}", problem.help);
        assert_eq!(problem.applied, Applied::Unknown);
        let problem = read(Failure::usage("no address, allocation or endpoint given", "Name one."));
        assert_eq!(
            (problem.detail.as_str(), problem.help.as_str()),
            ("no address, allocation or endpoint given", "Name one.")
        );
        assert_eq!(problem.exit_code(), 2);
        assert!(Failure::Found.json().is_none() && Failure::Explained(Code::NotFound).json().is_none());
    }

    #[test]
    fn the_exit_codes_are_the_contract() {
        let code = |code| Failure::from(Problem::new(code, "x")).exit_code();
        assert_eq!(code(Code::PoolExhausted), 1);
        assert_eq!(code(Code::InvalidField), 2);
        assert_eq!(Failure::usage("x", "y").exit_code(), 2);
        assert_eq!(code(Code::NotFound), 3);
        assert_eq!(code(Code::AlreadyExists), 4);
        assert_eq!(code(Code::RevisionMismatch), 4);
        assert_eq!(code(Code::NoLeader), 5);
        assert_eq!(Failure::from(Problem::new(Code::NoLeader, "x").maybe_applied()).exit_code(), 6);
        assert_eq!(Failure::Found.exit_code(), 7);
        assert_eq!(Failure::Explained(Code::PoolExhausted).exit_code(), 1);
        assert_eq!(Failure::from(std::io::Error::from(std::io::ErrorKind::BrokenPipe)).exit_code(), 0);
    }
}
