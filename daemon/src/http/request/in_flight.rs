//! Requests in progress by caller, bounded so that no caller occupies all slots.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Requests in progress, by caller.
#[derive(Debug, Clone)]
pub(in crate::http) struct InFlight {
    counts: Arc<Mutex<BTreeMap<String, usize>>>,
    per_caller_max: usize,
}

/// Request in progress; ends when dropped.
#[derive(Debug)]
pub(in crate::http) struct Flight {
    in_flight: InFlight,
    caller: String,
}

impl InFlight {
    /// Creates an empty set with a limit for each caller.
    pub(in crate::http) fn new(per_caller_max: usize) -> Self {
        Self { counts: Arc::default(), per_caller_max }
    }

    /// Begins a request, unless its caller has reached the limit.
    pub(in crate::http) fn begin(&self, caller: String) -> Option<Flight> {
        let mut counts = self.counts();
        let count = counts.entry(caller.clone()).or_insert(0);
        if *count >= self.per_caller_max {
            return None;
        }
        *count += 1;
        drop(counts);
        Some(Flight { in_flight: self.clone(), caller })
    }

    fn counts(&self) -> MutexGuard<'_, BTreeMap<String, usize>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        let mut counts = self.in_flight.counts();
        if let Some(count) = counts.get_mut(&self.caller) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.caller);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_with_too_many_requests_waits_for_itself_only() {
        let in_flight = InFlight::new(3);
        let mut mine: Vec<Flight> = (0..3).filter_map(|_| in_flight.begin("me".to_owned())).collect();
        assert_eq!(mine.len(), 3);
        assert!(in_flight.begin("me".to_owned()).is_none());
        assert!(in_flight.begin("you".to_owned()).is_some());
        mine.pop();
        assert!(in_flight.begin("me".to_owned()).is_some());
        drop(mine);
        assert!(in_flight.counts().is_empty());
    }
}
