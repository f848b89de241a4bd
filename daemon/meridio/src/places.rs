//! Places for work of calls, bounded for all callers and for each of them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::servers::Caller;

/// Places of one kind. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Places(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    all: Arc<Semaphore>,
    per_caller_max: usize,
    callers: Mutex<BTreeMap<Caller, Arc<Semaphore>>>,
}

/// Taken place, which is free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    places: Places,
    caller: Caller,
    permits: Option<[OwnedSemaphorePermit; 2]>,
}

impl Places {
    pub(crate) fn new(all_max: usize, per_caller_max: usize) -> Self {
        let all = Arc::new(Semaphore::new(all_max));
        Self(Arc::new(Inner { all, per_caller_max, callers: Mutex::default() }))
    }

    /// Takes a place, after those of the same caller that wait already.
    pub(crate) async fn take(&self, caller: &Caller) -> Option<Place> {
        // Dropped with this future, it forgets a caller that has no other place.
        let mut place = self.reserved(caller);
        // The own place comes first: a caller with many calls holds none of the others while it waits.
        let own = self.of(caller).acquire_owned().await.ok()?;
        place.permits = Some([own, Arc::clone(&self.0.all).acquire_owned().await.ok()?]);
        Some(place)
    }

    /// Takes a place, if one is free.
    pub(crate) fn try_take(&self, caller: &Caller) -> Option<Place> {
        let mut place = self.reserved(caller);
        let own = self.of(caller).try_acquire_owned().ok()?;
        place.permits = Some([own, Arc::clone(&self.0.all).try_acquire_owned().ok()?]);
        Some(place)
    }

    fn reserved(&self, caller: &Caller) -> Place {
        Place { places: self.clone(), caller: caller.clone(), permits: None }
    }

    fn of(&self, caller: &Caller) -> Arc<Semaphore> {
        let mut callers = self.0.callers.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || Arc::new(Semaphore::new(self.0.per_caller_max));
        Arc::clone(callers.entry(caller.clone()).or_insert_with(new))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        drop(self.permits.take());
        let mut callers = self.places.0.callers.lock().unwrap_or_else(PoisonError::into_inner);
        if callers.get(&self.caller).is_some_and(|own| Arc::strong_count(own) == 1) {
            callers.remove(&self.caller);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    fn caller(name: &str) -> Caller {
        Caller(name.into())
    }

    #[tokio::test]
    async fn a_caller_takes_no_places_of_others_and_is_forgotten_at_the_end() {
        let places = Places::new(3, 2);
        let (mine, yours, theirs) = (caller("me"), caller("you"), caller("they"));
        let first = places.take(&mine).await.unwrap();
        let second = places.try_take(&mine).unwrap();
        assert!(places.try_take(&mine).is_none(), "two for each caller");
        assert!(places.take(&mine).now_or_never().is_none());
        let third = places.try_take(&yours).unwrap();
        assert!(places.try_take(&theirs).is_none(), "three for all");
        drop(second);
        let fourth = places.take(&theirs).now_or_never().unwrap().unwrap();
        assert_eq!(places.0.callers.lock().unwrap().len(), 3);
        drop((first, third, fourth));
        assert!(places.0.callers.lock().unwrap().is_empty());
    }
}
