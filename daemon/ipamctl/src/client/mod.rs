//! Communication with the servers: the session of a command, its calls, and the display of answers.

pub(crate) mod confirm;
mod curl;
pub(crate) mod list;
pub(crate) mod requests;
pub(crate) mod resource;
pub(crate) mod resource_type;
pub(crate) mod scope;
pub(crate) mod session;
mod show;
