//! Environment of a command: variables, the words of its command line, and a terminal or none.

use std::collections::BTreeMap;
use std::io::IsTerminal as _;

use ipam_api::brand::{CA_FILE_ENV, CERT_FILE_ENV, CONTEXT_ENV, KEY_FILE_ENV, SERVERS_ENV, TOKEN_FILE_ENV};
use ipam_api::time::Timestamp;

use crate::output::table::terminal_width;

/// Host of the Kubernetes API, in a pod.
pub(crate) const KUBERNETES_HOST: &str = "KUBERNETES_SERVICE_HOST";
/// Port of the Kubernetes API, in a pod.
pub(crate) const KUBERNETES_PORT: &str = "KUBERNETES_SERVICE_PORT";

/// Variables that the program reads.
const VARIABLES: [&str; 10] = [
    SERVERS_ENV,
    CONTEXT_ENV,
    TOKEN_FILE_ENV,
    CA_FILE_ENV,
    CERT_FILE_ENV,
    KEY_FILE_ENV,
    "HOME",
    "XDG_CONFIG_HOME",
    KUBERNETES_HOST,
    KUBERNETES_PORT,
];

/// Environment of a command.
#[derive(Debug, Default, Clone)]
pub(crate) struct Environment {
    pub(crate) variables: BTreeMap<String, String>,
    /// Words of the command line, the program's name first.
    pub(crate) words: Vec<String>,
    /// True if data goes to a terminal.
    pub(crate) terminal: bool,
    /// Width of the terminal in columns, if known.
    pub(crate) width: Option<usize>,
    /// True if the user can be prompted.
    pub(crate) attended: bool,
    /// Fixed present time, if any.
    pub(crate) now: Option<Timestamp>,
}

impl Environment {
    /// Reads the environment of this process.
    pub(crate) fn of_process() -> Self {
        let variables = VARIABLES.iter().filter_map(|name| Some((*name, std::env::var(name).ok()?)));
        let mut words: Vec<String> =
            std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
        if let Some(program) = words.first_mut() {
            "ipamctl".clone_into(program);
        }
        let terminal = std::io::stdout().is_terminal();
        Self {
            words,
            terminal,
            width: if terminal { terminal_width() } else { None },
            attended: std::io::stdin().is_terminal() && std::io::stderr().is_terminal(),
            ..Self::of(variables)
        }
    }

    /// Creates an environment with these variables.
    pub(crate) fn of<'a, Value: Into<String>>(variables: impl IntoIterator<Item = (&'a str, Value)>) -> Self {
        let variables = variables.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect();
        Self { variables, ..Self::default() }
    }

    /// A variable that is set and not empty.
    pub(crate) fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }
}
