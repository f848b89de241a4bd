//! Writer of the journal: all queued records in one write and one fsync.

use std::io;
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ipam_api::limits::JOURNAL_ATTACHMENTS_MAX;
use ipam_api::problem::{Code, Problem};
use tokio::sync::{mpsc, oneshot};

use super::attachments::Attachments;
use super::file::{JournalFile, line};
use super::record::Record;

/// Records that can wait for the writer; further callers wait until the queue has room.
const QUEUE: usize = 1024;
/// Exit code after a failed fsync. Acknowledged records may be lost; a restart reads the remaining ones.
const FSYNC_FAILED: i32 = 3;

/// Reason why a record can't be written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unwritable {
    /// The file accepts no record.
    #[error("the journal can't be written: {0}")]
    Failed(String),
    /// The map has no room for another attachment.
    #[error("the journal has {JOURNAL_ATTACHMENTS_MAX} attachments, the limit of a node")]
    Full,
}

impl From<Unwritable> for Problem {
    fn from(error: Unwritable) -> Self {
        let problem = Self::new(Code::JournalUnwritable, error.to_string());
        match error {
            Unwritable::Failed(_) => problem,
            Unwritable::Full => problem.help("Remove containers of the node; see ipam-agent doctor."),
        }
    }
}

/// Open journal.
#[derive(Debug)]
pub struct Journal {
    attachments: Arc<Mutex<Attachments>>,
    queue: mpsc::Sender<Job>,
    is_writable: Arc<AtomicBool>,
}

/// Record on its way to the disk.
#[derive(Debug)]
struct Job {
    record: Record,
    written: oneshot::Sender<Result<(), Unwritable>>,
    synced: oneshot::Sender<()>,
}

/// Confirmation of one record, in two steps.
#[derive(Debug)]
pub struct Receipt {
    synced: oneshot::Receiver<()>,
}

impl Receipt {
    /// Waits until the record survives a power cut.
    ///
    /// # Errors
    /// If the writer has ended.
    pub async fn synced(self) -> Result<(), Unwritable> {
        self.synced.await.map_err(|_| ended())
    }
}

impl Journal {
    /// Creates the journal with its writer, a future that ends with the journal.
    ///
    /// The writer blocks its thread for each fsync. Records wait until the future is polled.
    pub fn new(
        file: JournalFile,
        attachments: Attachments,
    ) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let (queue, jobs) = mpsc::channel(QUEUE);
        let attachments = Arc::new(Mutex::new(attachments));
        let is_writable = Arc::new(AtomicBool::new(true));
        let writer = Writer { file, attachments: attachments.clone(), is_writable: is_writable.clone() };
        (Self { attachments, queue, is_writable }, writer.run(jobs))
    }

    /// Starts the writer on a thread of its own.
    ///
    /// # Errors
    /// If the system has no thread or no runtime left.
    pub fn start(file: JournalFile, attachments: Attachments) -> io::Result<Self> {
        let (journal, writing) = Self::new(file, attachments);
        let runtime = tokio::runtime::Builder::new_current_thread().build()?;
        std::thread::Builder::new().name("journal".to_owned()).spawn(move || runtime.block_on(writing))?;
        Ok(journal)
    }

    /// Locks the map. The guard must not be held across an await.
    pub fn attachments(&self) -> MutexGuard<'_, Attachments> {
        lock(&self.attachments)
    }

    /// Returns true unless the newest write failed.
    #[must_use]
    pub fn is_writable(&self) -> bool {
        self.is_writable.load(Ordering::Relaxed)
    }

    /// Writes a record. On return, the map contains the record, which survives the end of this process.
    ///
    /// # Errors
    /// The failed write, or the limit of attachments; the record then has no effect.
    pub async fn write(&self, record: Record) -> Result<Receipt, Unwritable> {
        let (written, is_written) = oneshot::channel();
        let (synced, is_synced) = oneshot::channel();
        self.queue.send(Job { record, written, synced }).await.map_err(|_| ended())?;
        is_written.await.map_err(|_| ended())??;
        Ok(Receipt { synced: is_synced })
    }
}

fn ended() -> Unwritable {
    Unwritable::Failed("its writer has ended".to_owned())
}

fn lock(attachments: &Mutex<Attachments>) -> MutexGuard<'_, Attachments> {
    attachments.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Writer {
    file: JournalFile,
    attachments: Arc<Mutex<Attachments>>,
    is_writable: Arc<AtomicBool>,
}

impl Writer {
    async fn run(mut self, mut jobs: mpsc::Receiver<Job>) {
        let mut batch = Vec::new();
        while let Some(first) = jobs.recv().await {
            batch.push(first);
            // Each record adds at most one attachment, so the whole batch has room.
            let batch_max = lock(&self.attachments).room().min(QUEUE);
            while batch.len() < batch_max
                && let Ok(next) = jobs.try_recv()
            {
                batch.push(next);
            }
            let (batch, without_room) = self.admit(std::mem::take(&mut batch));
            for job in without_room {
                let _ = job.written.send(Err(Unwritable::Full));
            }
            if !batch.is_empty() {
                self.write(batch);
            }
        }
    }

    /// Divides records into those that the map has room for, and the others.
    fn admit(&self, batch: Vec<Job>) -> (Vec<Job>, Vec<Job>) {
        let attachments = lock(&self.attachments);
        batch.into_iter().partition(|job| attachments.has_room_for(&job.record))
    }

    fn write(&mut self, batch: Vec<Job>) {
        let lines: io::Result<Vec<Vec<u8>>> = batch.iter().map(|job| line(&job.record)).collect();
        let written = lines.and_then(|lines| self.file.append(&lines));
        if self.is_writable.swap(written.is_ok(), Ordering::Relaxed) != written.is_ok() {
            match &written {
                Ok(()) => tracing::info!("the journal can be written again"),
                Err(error) => tracing::error!(%error, "the journal can't be written"),
            }
        }
        if let Err(error) = written {
            for job in batch {
                let _ = job.written.send(Err(Unwritable::Failed(error.to_string())));
            }
            return;
        }
        let mut waiting = Vec::with_capacity(batch.len());
        for job in batch {
            lock(&self.attachments).apply(job.record);
            let _ = job.written.send(Ok(()));
            waiting.push(job.synced);
        }
        if let Err(error) = self.file.sync() {
            tracing::error!(%error, "the journal can't be flushed to the disk; the agent stops");
            process::exit(FSYNC_FAILED);
        }
        for synced in waiting {
            let _ = synced.send(());
        }
        let surplus = {
            let attachments = lock(&self.attachments);
            self.file.has_surplus(&attachments).then(|| attachments.clone())
        };
        if let Some(attachments) = surplus
            && let Err(error) = self.file.rewrite(&attachments)
        {
            tracing::warn!(%error, "the journal can't be written anew, and goes on growing");
        }
    }
}
