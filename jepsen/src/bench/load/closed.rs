//! Closed loop: each client sends its next call after the answer to the previous one.

use std::rc::Rc;
use std::time::Instant;

use tokio::task::JoinSet;

use super::client::Client;
use super::meter::{Meter, Process};
use super::outcome::{Load, Times};
use super::recorder::Recorder;

/// Runs all clients for the given times; the calls that end in the measured time are recorded.
pub(in crate::bench) async fn closed(
    clients: Vec<Box<dyn Client>>,
    times: Times,
    processes: &[Process],
) -> Load {
    let recorder = Rc::new(Recorder::default());
    let mut tasks = JoinSet::new();
    for client in clients {
        tasks.spawn_local(repeat(client, Rc::clone(&recorder)));
    }
    tokio::time::sleep(times.warm_up).await;
    let (meter, begun) = (Meter::begin(processes), Instant::now());
    recorder.start();
    tokio::time::sleep(times.measured).await;
    let load = Load { elapsed: begun.elapsed(), usage: meter.end(), ..recorder.take() };
    tasks.shutdown().await;
    load
}

async fn repeat(mut client: Box<dyn Client>, recorder: Rc<Recorder>) {
    loop {
        let begun = Instant::now();
        let result = client.call().await;
        if let Some(pause) = recorder.record(result, begun.elapsed()) {
            tokio::time::sleep(pause).await;
        }
    }
}
