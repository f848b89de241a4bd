//! Client of a system under load.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use anyhow::Result;

/// Answer of a system to one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::bench) enum Answer {
    /// The call is done and counts as this many operations.
    Done(u64),
    /// The system is overloaded and requests a pause.
    Refused(Duration),
}

/// One call.
pub(in crate::bench) type Call<'a> = Pin<Box<dyn Future<Output = Result<Answer>> + 'a>>;

/// Client that makes one call after another, usually on its own connection.
pub(in crate::bench) trait Client {
    /// Makes the next call.
    fn call(&mut self) -> Call<'_>;
}
