//! Recorder: the one writer of a history, shared by all clients.

use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use tokio::time::Instant;

use super::{Function, Operation, Process, Type, Value};
use crate::sync::held;

/// Writer of a history. Clones write to the same history.
#[derive(Clone)]
pub struct Recorder {
    shared: Arc<Shared>,
}

struct Shared {
    begun: Instant,
    /// Numbers of new processes.
    processes: AtomicU64,
    file: Mutex<File>,
}

struct File {
    next: u64,
    writer: Box<dyn Write + Send>,
    /// First failure to write; reported at the end.
    failure: Option<io::Error>,
}

/// Operation that has begun. [`Recorder::end`] consumes the value.
#[derive(Debug)]
#[must_use]
pub struct Invocation {
    /// Process of the operation.
    pub process: Process,
    /// Function of the operation.
    pub f: Function,
}

impl Recorder {
    /// A recorder that writes JSON lines.
    #[must_use]
    pub fn new(writer: Box<dyn Write + Send>) -> Self {
        let file = Mutex::new(File { next: 0, writer, failure: None });
        Self { shared: Arc::new(Shared { begun: Instant::now(), processes: AtomicU64::new(0), file }) }
    }

    /// A process that no operation has used.
    #[must_use]
    pub fn new_process(&self) -> Process {
        Process::Client(self.shared.processes.fetch_add(1, Ordering::Relaxed))
    }

    /// Nanoseconds since the run began.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        u64::try_from(self.shared.begun.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Records the begin of an operation.
    pub fn begin(&self, process: Process, f: Function, value: Value) -> Invocation {
        self.write(process, f, Type::Invoke, value);
        Invocation { process, f }
    }

    /// Records the end of an operation.
    pub fn end(&self, invocation: Invocation, kind: Type, value: Value) {
        self.write(invocation.process, invocation.f, kind, value);
    }

    /// Flushes the history.
    ///
    /// # Errors
    /// The first failure to write.
    pub fn finish(&self) -> io::Result<()> {
        let mut file = held(&self.shared.file);
        match file.failure.take() {
            Some(error) => Err(error),
            None => file.writer.flush(),
        }
    }

    fn write(&self, process: Process, f: Function, kind: Type, value: Value) {
        let mut file = held(&self.shared.file);
        // Under the lock, so that times rise with the index.
        let operation = Operation { index: file.next, time_ns: self.now_ns(), process, kind, f, value };
        file.next += 1;
        let written = serde_json::to_writer(&mut file.writer, &operation).map_err(io::Error::from);
        if let Err(error) = written.and_then(|()| file.writer.write_all(b"\n")) {
            file.failure.get_or_insert(error);
        }
    }
}
