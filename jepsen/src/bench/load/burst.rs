//! Burst: all clients make one call at once, and repeat it while the system refuses it.

use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::anyhow;
use tokio::task::JoinSet;

use super::client::{Answer, Client};
use super::meter::{Meter, Process};
use super::outcome::Load;
use super::recorder::Recorder;

/// Time after which a client counts as failed.
const PATIENCE: Duration = Duration::from_secs(60);

/// Makes one call of each client at once; the elapsed time ends with the last answer.
pub(in crate::bench) async fn burst(clients: Vec<Box<dyn Client>>, processes: &[Process]) -> Load {
    let recorder = Rc::new(Recorder::default());
    recorder.start();
    let (meter, begun) = (Meter::begin(processes), Instant::now());
    let mut tasks = JoinSet::new();
    for client in clients {
        tasks.spawn_local(until_done(client, begun, Rc::clone(&recorder)));
    }
    while tasks.join_next().await.is_some() {}
    Load { elapsed: begun.elapsed(), usage: meter.end(), ..recorder.take() }
}

async fn until_done(mut client: Box<dyn Client>, begun: Instant, recorder: Rc<Recorder>) {
    loop {
        let result = client.call().await;
        let is_refused = matches!(result, Ok(Answer::Refused(_)));
        let pause = recorder.record(result, begun.elapsed());
        match pause {
            Some(pause) if is_refused && begun.elapsed() < PATIENCE => tokio::time::sleep(pause).await,
            Some(_) if is_refused => {
                recorder.record(Err(anyhow!("refused for {PATIENCE:?}")), begun.elapsed());
                return;
            }
            _ => return,
        }
    }
}
