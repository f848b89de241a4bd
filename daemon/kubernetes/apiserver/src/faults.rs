//! Faults that a test requests.

use std::time::Duration;

use bytes::Bytes;

use crate::holds::{Hold, Holds, Stage};
use crate::list::Snapshot;
use crate::status::Refusal;

/// Fault of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// All watches end, as after a broken connection.
    DropWatches,
    /// All versions up to now are forgotten: watches and continued lists get 410.
    Compact,
    /// Watches stay open without events and bookmarks.
    Freeze,
    /// The end of [`Fault::Freeze`].
    Thaw,
    /// Lists show the objects of this moment from now on.
    Stale,
    /// Like [`Fault::Stale`], for lists with `resourceVersion=0`, which a real server serves from a cache.
    StaleCache,
    /// The end of [`Fault::Stale`] and [`Fault::StaleCache`].
    Fresh,
    /// The next requests are refused with this code.
    Fail {
        /// HTTP status.
        code: u16,
        /// Number of requests; 0 is the end of this fault.
        count: usize,
        /// Header `Retry-After`, in seconds.
        retry_after: Option<u64>,
    },
    /// Requests for this plural with this verb are forbidden, as without a role.
    Forbid {
        /// Verb of RBAC.
        verb: &'static str,
        /// Plural of the resource.
        plural: &'static str,
    },
    /// All answers are hostile.
    Hostile(Hostility),
    /// Each request waits for this duration.
    Slow {
        /// Duration.
        delay: Duration,
    },
    /// A request is held until [`Fault::Heal`]; later requests pass. [`ApiServer::held`] waits for the
    /// request.
    ///
    /// [`ApiServer::held`]: crate::ApiServer::held
    Hold {
        /// Verb of RBAC.
        verb: &'static str,
        /// Plural of the resource, with a subresource after a slash: `ipaddressclaims/status`.
        plural: &'static str,
        /// Number of matching requests that pass before the request is held.
        skip: usize,
        /// Stage at which the request is held.
        stage: Stage,
    },
    /// Connections are cut, and new ones are refused.
    Unavailable,
    /// The end of `Fail`, `Forbid`, `Hostile`, `Slow`, `Hold` and `Unavailable`.
    Heal,
}

/// Hostile answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hostility {
    /// These bytes, for any request.
    Bytes(Vec<u8>),
    /// This piece, repeated without an end.
    Endless(Vec<u8>),
}

/// Present faults.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    pub(crate) is_frozen: bool,
    pub(crate) is_unavailable: bool,
    /// Objects and version that lists show.
    pub(crate) stale: Option<Snapshot>,
    /// Objects and version that lists from the cache show.
    pub(crate) stale_cache: Option<Snapshot>,
    pub(crate) delay: Duration,
    pub(crate) holds: Holds,
    /// Generation of watches; older ones end.
    pub(crate) watches: u64,
    fail: Option<(Refusal, usize)>,
    forbidden: Vec<(&'static str, &'static str)>,
    hostile: Option<Hostility>,
}

impl Faults {
    /// Changes the state. The caller applies faults of the store.
    pub(crate) fn set(&mut self, fault: Fault) {
        match fault {
            Fault::DropWatches => self.watches += 1,
            Fault::Freeze => self.is_frozen = true,
            Fault::Thaw => self.is_frozen = false,
            Fault::Fresh => (self.stale, self.stale_cache) = (None, None),
            Fault::Fail { code, count, retry_after } => {
                let refusal = Refusal::new(code, "so says the test").retry_after(retry_after);
                self.fail = (count > 0).then_some((refusal, count));
            }
            Fault::Forbid { verb, plural } => self.forbidden.push((verb, plural)),
            Fault::Hostile(hostility) => self.hostile = Some(hostility),
            Fault::Slow { delay } => self.delay = delay,
            Fault::Hold { verb, plural, skip, stage } => {
                self.holds.add(Hold { verb, plural, skip, stage });
            }
            Fault::Heal => {
                (self.fail, self.forbidden, self.hostile) = (None, Vec::new(), None);
                (self.delay, self.is_unavailable) = (Duration::ZERO, false);
                self.holds.clear();
            }
            Fault::Unavailable => self.is_unavailable = true,
            Fault::Compact | Fault::Stale | Fault::StaleCache => {}
        }
    }

    /// Refusal of the next request, if one is due.
    pub(crate) fn refusal(&mut self, verb: &str, plural: &str) -> Option<Refusal> {
        if self.forbidden.iter().any(|(one, of)| *one == verb && *of == plural) {
            return Some(Refusal::new(403, format!("cannot {verb} resource {plural}")));
        }
        let (refusal, count) = self.fail.as_mut()?;
        let refusal = refusal.clone();
        *count -= 1;
        if *count == 0 {
            self.fail = None;
        }
        Some(refusal)
    }

    pub(crate) fn hostility(&self) -> Option<(Bytes, bool)> {
        match self.hostile.as_ref()? {
            Hostility::Bytes(bytes) => Some((bytes.clone().into(), false)),
            Hostility::Endless(bytes) => Some((bytes.clone().into(), true)),
        }
    }
}
