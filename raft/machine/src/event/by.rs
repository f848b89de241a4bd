//! Origins of events: principal, interface, request and comment.

use serde::{Deserialize, Serialize};

use crate::command::{Origin, Via};
use crate::value::Text;

/// Origin of an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct By {
    pub principal: Text,
    /// Interface through which the command arrived.
    pub via: Via,
    /// Names the request in logs, events and answers.
    pub request_id: Text,
    /// Comment of the caller.
    pub comment: Option<Text>,
}

impl By {
    pub(crate) fn of(origin: &Origin) -> Self {
        Self {
            principal: Text::clone(&origin.principal),
            via: origin.via,
            request_id: Text::clone(&origin.request_id),
            comment: origin.comment.clone(),
        }
    }

    /// Returns the origin of an event that only the passage of log time caused, whatever the command.
    pub(crate) fn of_time(&self) -> Self {
        Self {
            principal: Text::identifier("task/expire"),
            via: Via::Task,
            request_id: Text::clone(&self.request_id),
            comment: None,
        }
    }
}
