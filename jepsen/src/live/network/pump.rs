//! Threads of the switch: one moves frames between TAP devices, one releases held frames.

use std::io;
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::oneshot;
use tokio_tun::Tun;

use super::fabric::Sink;
use super::held::PortId;
use super::switch::Shared;

/// Size of the receive buffer: MTU 1500 with all headers.
const FRAME: usize = 2048;
/// Frames that one port sends before the others have their turn.
const BATCH: usize = 64;
/// Wait of the timer thread without held frames.
const IDLE: Duration = Duration::from_secs(3600);
/// Priority of the threads above the processes that they connect.
const NICE: i32 = -15;

impl Sink for Tun {
    fn send(&self, frame: &[u8]) -> io::Result<()> {
        self.try_send(frame).map(|_length| ())
    }
}

/// Both threads. Dropping the value ends them.
pub(super) struct Pump {
    shared: Arc<Shared>,
    handle: Handle,
    stop: Option<oneshot::Sender<()>>,
    threads: Vec<JoinHandle<()>>,
}

impl Pump {
    pub(super) fn start(shared: Arc<Shared>) -> Result<Self> {
        let runtime = Builder::new_current_thread().enable_io().build().context("the switch's runtime")?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel();
        let mut pump = Self { shared, handle, stop: Some(stop), threads: Vec::new() };
        pump.spawn("switch", move || turn(&runtime, stopped))?;
        let shared = Arc::clone(&pump.shared);
        pump.spawn("switch-timer", move || release(&shared))?;
        Ok(pump)
    }

    fn spawn(&mut self, name: &str, work: impl FnOnce() + Send + 'static) -> Result<()> {
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            // Without the right to raise its priority, the switch is slower under load.
            let _slower = rustix::process::setpriority_process(None, NICE);
            work();
        });
        self.threads.push(thread.context("a thread of the switch")?);
        Ok(())
    }

    /// Runtime of the switch, in which a TAP device must be opened.
    pub(super) fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Begins to read frames of a device. The device closes before [`Reader`] is dropped.
    pub(super) fn read(&self, port: PortId, tap: Arc<Tun>) -> Reader {
        let (ended, end) = std::sync::mpsc::channel();
        let shared = Arc::clone(&self.shared);
        let task = self.handle.spawn(async move {
            // The sender is dropped last, after the device is closed.
            let _ended = ended;
            read(&shared, port, tap).await;
        });
        Reader { task, end }
    }
}

impl Drop for Pump {
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.changed.notify_all();
        drop(self.stop.take());
        for thread in self.threads.drain(..) {
            let _panicked = thread.join();
        }
    }
}

/// Task that reads the frames of one device.
pub(super) struct Reader {
    task: tokio::task::JoinHandle<()>,
    end: std::sync::mpsc::Receiver<()>,
}

impl Reader {
    /// Ends the task and waits for it.
    pub(super) fn stop(self) {
        self.task.abort();
        // The end of the task, or of its runtime, disconnects the channel.
        let _ended = self.end.recv();
    }
}

fn turn(runtime: &Runtime, stopped: oneshot::Receiver<()>) {
    let _stopped = runtime.block_on(stopped);
}

async fn read(shared: &Shared, port: PortId, tap: Arc<Tun>) {
    let mut buffer = [0; FRAME];
    // An error means that the device was removed.
    while let Ok(length) = tap.recv(&mut buffer).await {
        batch(shared, port, &tap, &mut buffer, length);
        tokio::task::yield_now().await;
    }
}

/// Switches a frame, and the frames that wait behind it.
fn batch(shared: &Shared, port: PortId, tap: &Tun, buffer: &mut [u8], length: usize) {
    let mut switch = shared.lock();
    let before = switch.fabric.held.next_due();
    let now = Instant::now();
    let mut bytes = buffer.get(..length);
    for count in 1.. {
        let Some(frame) = bytes else { break };
        switch.receive(port, frame, now);
        if count == BATCH {
            break;
        }
        bytes = tap.try_recv(buffer).ok().and_then(|length| buffer.get(..length));
    }
    let earlier = match (before, switch.fabric.held.next_due()) {
        (Some(before), Some(after)) => after < before,
        (before, after) => before.is_none() && after.is_some(),
    };
    drop(switch);
    if earlier {
        shared.changed.notify_one();
    }
}

fn release(shared: &Shared) {
    let mut switch = shared.lock();
    while !switch.closed {
        let now = Instant::now();
        if switch.deliver(now, BATCH) {
            // Other threads need the lock as well.
            drop(switch);
            std::thread::yield_now();
            switch = shared.lock();
            continue;
        }
        let wait = switch.fabric.held.next_due().map_or(IDLE, |due| due.saturating_duration_since(now));
        let waited = shared.changed.wait_timeout(switch, wait);
        switch = waited.unwrap_or_else(PoisonError::into_inner).0;
    }
}
