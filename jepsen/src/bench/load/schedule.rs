//! Schedule of an open loop: instants at which calls are due, whether or not earlier calls are answered.

use std::time::{Duration, Instant};

use tokio::sync::mpsc::UnboundedSender;

/// Schedule at a fixed rate.
#[derive(Debug, Clone, Copy)]
pub(super) struct Schedule {
    pub(super) begin: Instant,
    /// Calls per second.
    pub(super) rate: u32,
}

impl Schedule {
    /// Instant of a call. It is computed from the begin, so that no error adds up.
    pub(super) fn at(&self, number: u64) -> Instant {
        let ns = u128::from(number) * 1_000_000_000 / u128::from(self.rate.max(1));
        self.begin + Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
    }

    /// Sends each instant when it is due. The function runs on a thread of its own, because timers of tokio
    /// have a resolution of 1 ms, and returns when the receiver is dropped.
    pub(super) fn run(self, due: &UnboundedSender<Instant>) {
        for number in 0.. {
            let at = self.at(number);
            std::thread::sleep(at.saturating_duration_since(Instant::now()));
            if due.send(at).is_err() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_due_at_a_fixed_rate_without_drift() {
        let begin = Instant::now();
        let schedule = Schedule { begin, rate: 3 };
        let ns: Vec<u128> = (0..4).map(|number| (schedule.at(number) - begin).as_nanos()).collect();
        assert_eq!(ns, [0, 333_333_333, 666_666_666, 1_000_000_000]);
        assert_eq!(schedule.at(3_000_000) - begin, Duration::from_secs(1_000_000));
    }

    #[test]
    fn instants_that_have_passed_are_sent_at_once_and_none_is_left_out() {
        let (due, mut received) = tokio::sync::mpsc::unbounded_channel();
        let schedule = Schedule { begin: Instant::now() - Duration::from_secs(1), rate: 1000 };
        let thread = std::thread::spawn(move || schedule.run(&due));
        for number in 0..1000 {
            assert_eq!(received.blocking_recv(), Some(schedule.at(number)));
        }
        drop(received);
        thread.join().unwrap();
    }
}
