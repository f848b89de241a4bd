//! Faults that a test asks for.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::Value;

use crate::status::Refusal;
use crate::store::Key;

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
    /// The end of [`Fault::Stale`].
    Fresh,
    /// The next requests are refused with this code.
    Fail {
        /// HTTP status.
        code: u16,
        /// Number of requests.
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
    /// The end of `Fail`, `Forbid` and `Hostile`.
    Heal,
}

/// Hostile answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hostility {
    /// These bytes, for any request.
    Bytes(Vec<u8>),
    /// This piece again and again, without an end.
    Endless(Vec<u8>),
}

/// Present faults.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    pub(crate) is_frozen: bool,
    /// Objects and version that lists show.
    pub(crate) stale: Option<(BTreeMap<Key, Value>, u64)>,
    /// Generation of watches; older ones end.
    pub(crate) watches: u64,
    fail: Option<(Refusal, usize)>,
    forbidden: Vec<(&'static str, &'static str)>,
    hostile: Option<Hostility>,
}

impl Faults {
    /// Changes the state; faults that need the store are changed there.
    pub(crate) fn set(&mut self, fault: Fault) {
        match fault {
            Fault::DropWatches => self.watches += 1,
            Fault::Freeze => self.is_frozen = true,
            Fault::Thaw => self.is_frozen = false,
            Fault::Fresh => self.stale = None,
            Fault::Fail { code, count, retry_after } => {
                let refusal = Refusal::new(code, "so says the test").retry_after(retry_after);
                self.fail = Some((refusal, count));
            }
            Fault::Forbid { verb, plural } => self.forbidden.push((verb, plural)),
            Fault::Hostile(hostility) => self.hostile = Some(hostility),
            Fault::Heal => (self.fail, self.forbidden, self.hostile) = (None, Vec::new(), None),
            Fault::Compact | Fault::Stale => {}
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
