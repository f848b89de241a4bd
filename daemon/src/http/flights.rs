//! How many requests each caller has on their way, so that none can take the place of all others.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ipam_api::limits::REQUESTS_IN_FLIGHT_PER_CALLER_MAX;

/// Requests on their way, by caller.
#[derive(Debug, Clone, Default)]
pub(super) struct Flights(Arc<Mutex<BTreeMap<String, usize>>>);

/// One request on its way; gone when dropped.
#[derive(Debug)]
pub(super) struct Flight {
    flights: Flights,
    caller: String,
}

impl Flights {
    /// Begins a request, if its caller hasn't too many already.
    pub(super) fn begin(&self, caller: String) -> Option<Flight> {
        let mut counts = self.counts();
        let count = counts.entry(caller.clone()).or_insert(0);
        if *count >= REQUESTS_IN_FLIGHT_PER_CALLER_MAX {
            return None;
        }
        *count += 1;
        drop(counts);
        Some(Flight { flights: self.clone(), caller })
    }

    fn counts(&self) -> MutexGuard<'_, BTreeMap<String, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        let mut counts = self.flights.counts();
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
        let flights = Flights::default();
        let mut mine: Vec<Flight> =
            (0..REQUESTS_IN_FLIGHT_PER_CALLER_MAX).filter_map(|_| flights.begin("me".to_owned())).collect();
        assert_eq!(mine.len(), REQUESTS_IN_FLIGHT_PER_CALLER_MAX);
        assert!(flights.begin("me".to_owned()).is_none());
        assert!(flights.begin("you".to_owned()).is_some());
        mine.pop();
        assert!(flights.begin("me".to_owned()).is_some());
        drop(mine);
        assert!(flights.counts().is_empty());
    }
}
