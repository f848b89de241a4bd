//! Open loop: calls begin at a fixed rate. Latency counts from the scheduled instant of a call, so that the
//! time in which it waits for a free client is not omitted.

use std::rc::Rc;
use std::time::Instant;

use tokio::sync::Mutex;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::JoinSet;

use super::client::Client;
use super::meter::{Meter, Process};
use super::outcome::{Load, Times};
use super::recorder::Recorder;
use super::schedule::Schedule;

/// Makes calls at a rate, each by the next free client. `while_measured` is awaited during the measured time,
/// which lasts at least as long.
pub(in crate::bench) async fn open(
    clients: Vec<Box<dyn Client>>,
    rate: u32,
    times: Times,
    processes: &[Process],
    while_measured: impl Future<Output = ()>,
) -> Load {
    let (recorder, (sender, due)) = (Rc::new(Recorder::default()), unbounded_channel());
    let schedule = Schedule { begin: Instant::now(), rate };
    std::thread::spawn(move || schedule.run(&sender));
    let (due, mut tasks) = (Rc::new(Mutex::new(due)), JoinSet::new());
    for client in clients {
        tasks.spawn_local(repeat(client, Rc::clone(&due), Rc::clone(&recorder)));
    }
    tokio::time::sleep(times.warm_up).await;
    let (meter, begun) = (Meter::begin(processes), Instant::now());
    recorder.start();
    tokio::join!(tokio::time::sleep(times.measured), while_measured);
    let load = Load { elapsed: begun.elapsed(), usage: meter.end(), ..recorder.take() };
    tasks.shutdown().await;
    load
}

async fn repeat(
    mut client: Box<dyn Client>,
    due: Rc<Mutex<UnboundedReceiver<Instant>>>,
    recorder: Rc<Recorder>,
) {
    loop {
        let next = due.lock().await.recv().await;
        let Some(at) = next else { return };
        let result = client.call().await;
        if let Some(pause) = recorder.record(result, at.elapsed()) {
            tokio::time::sleep(pause).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::time::Duration;

    use super::super::client::{Answer, Call};
    use super::*;

    /// Time of the first call of a stalled client.
    const STALL: Duration = Duration::from_millis(200);

    /// Client that answers its first call after [`STALL`], and later ones at once.
    struct Stalled(Rc<Cell<u64>>);

    impl Client for Stalled {
        fn call(&mut self) -> Call<'_> {
            Box::pin(async {
                if self.0.replace(self.0.get() + 1) == 0 {
                    tokio::time::sleep(STALL).await;
                }
                Ok(Answer::Done(1))
            })
        }
    }

    #[tokio::test]
    async fn calls_that_wait_for_a_stalled_client_count_their_wait() {
        let calls = Rc::new(Cell::new(0));
        let clients: Vec<Box<dyn Client>> = vec![Box::new(Stalled(Rc::clone(&calls)))];
        let times = Times { warm_up: Duration::ZERO, measured: Duration::ZERO };
        let made = async {
            while calls.get() < 150 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let load = tokio::task::LocalSet::new().run_until(open(clients, 1000, times, &[], made)).await;
        // The call that is due n ms after the first one waits for at least 200 - n ms.
        let waited =
            load.latency.buckets().into_iter().filter(|(ns, _)| *ns > 50_000_000).map(|(_, count)| count);
        let waited: u64 = waited.sum();
        assert!(waited >= 100, "{}", load.shown());
    }
}
