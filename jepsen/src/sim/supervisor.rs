//! Supervisor: commands that only the simulation itself can execute, and ends of processes.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::member::End;
use crate::sync::held;

/// Command to the simulation.
#[derive(Debug)]
pub(super) enum Command {
    /// Adds a host, and starts its process.
    Add(String),
    /// Ends a host's process at once.
    Crash(String),
    /// Starts the process of a host.
    Start(String),
    /// Sets the longest delay of messages between two hosts.
    Delay(String, String, Duration),
}

/// Commands that wait, and ends of processes. Clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct Supervisor {
    commands: Arc<Mutex<VecDeque<Command>>>,
    ends: Arc<Mutex<Vec<(String, End)>>>,
}

impl Supervisor {
    /// Adds a command.
    pub(super) fn command(&self, command: Command) {
        held(&self.commands).push_back(command);
    }

    /// Takes the next command.
    pub(super) fn next(&self) -> Option<Command> {
        held(&self.commands).pop_front()
    }

    /// Records that the process of a host has ended by itself.
    pub(super) fn note_end(&self, name: &str, end: End) {
        held(&self.ends).push((name.to_owned(), end));
    }

    /// Takes the ends since the last call.
    pub(super) fn take_ends(&self) -> Vec<(String, End)> {
        std::mem::take(&mut *held(&self.ends))
    }
}
