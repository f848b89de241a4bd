//! `ipamctl cluster backup`: writes the whole state to a file, and verifies backup files.

use std::fs::{self, File};
use std::io::{self, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use ipam_api::backup::{Checked, Unusable, check};
use ipam_api::client::Call;
use ipam_api::{Code, Problem};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use serde_json::json;

use crate::client::requests::with_all;
use crate::client::session::Session;
use crate::output::error::Failure;
use crate::output::{file, interrupt, text};

pub(super) const EXAMPLES: &str = "Examples:
  ipamctl cluster backup prod-2026-11-20.ipamd
  ipamctl cluster backup nightly.ipamd --force --without-history
  ipamctl cluster backup --verify prod-2026-11-20.ipamd";

/// Interval of progress lines on a terminal.
const PROGRESS: Duration = Duration::from_secs(1);

/// Arguments of `backup`.
#[derive(Debug, Args)]
pub(crate) struct BackupArguments {
    /// Backup file
    file: PathBuf,
    /// Verify the file offline and describe its contents
    #[arg(long, conflicts_with_all = ["force", "without_history"])]
    pub(super) verify: bool,
    /// Replace an existing file after the new one is complete
    #[arg(long)]
    force: bool,
    /// Include only the most recent part of the event history
    #[arg(long)]
    without_history: bool,
}

/// Runs the command.
pub(super) async fn run(session: &Session, arguments: &BackupArguments) -> Result<(), Failure> {
    let file = &arguments.file;
    if arguments.verify {
        return verify(session, file).await;
    }
    if file.exists() && !arguments.force {
        return Err(already_exists(file));
    }
    if session.writing.dry_run {
        session.say("a dry run: no backup was requested or written");
        return Ok(());
    }
    interrupt::say_instead(format!("interrupted: {} was not written.", file.display()));
    let begun = Instant::now();
    let aside = Aside::beside(file)?;
    fetch(session, &aside, !arguments.without_history).await?;
    // Verify the file on disk, not the received bytes.
    let path = aside.path.clone();
    let checked = examine(&path).await?.map_err(|error| {
        Problem::new(Code::Unreachable, format!("the response is not a complete backup: {error}"))
    })?;
    aside.take_place(file, arguments.force)?;
    if session.data(&as_json(&checked))? {
        return Ok(());
    }
    session.say(&format!("consistent at revision {} · {}", checked.header.revision, counted(&checked)));
    session.say(&format!(
        "written {} in {:.1} s · blake3 {} · contains token hashes, but no secrets",
        size(checked.bytes),
        begun.elapsed().as_secs_f64(),
        checked.seal
    ));
    session.say(&format!("verify: ipamctl cluster backup --verify {}", file.display()));
    Ok(())
}

/// Downloads the backup from the first server that can send it, and syncs the file.
async fn fetch(session: &Session, aside: &Aside, history: bool) -> Result<(), Failure> {
    let path = with_all("/v1/cluster/backup", [("history", (!history).then(|| "false".to_owned()))]);
    let call = Call::get(path).within(session.reading.timeout);
    session.debug(session.settings.servers.first().map(String::as_str).unwrap_or_default(), &call);
    let mut download = session.client.download(&call).await.map_err(|problem| session.failure(problem))?;
    let (mut bytes, mut told) = (0, Instant::now());
    let mut file = &aside.file;
    while let Some(piece) = download.piece().await? {
        file.write_all(piece.as_ref()).map_err(|error| unwritten(&aside.path, &error))?;
        bytes += piece.as_ref().len() as u64;
        if session.environment.attended && told.elapsed() >= PROGRESS {
            session.say(&format!("{} from {} …", size(bytes), download.server));
            told = Instant::now();
        }
    }
    file.sync_all().map_err(|error| unwritten(&aside.path, &error))
}

async fn verify(session: &Session, file: &Path) -> Result<(), Failure> {
    let checked = match examine(file).await? {
        Ok(checked) => checked,
        Err(Unusable::Io(error)) => return Err(unread(file, &error)),
        Err(wrong) => {
            crate::output::screen::line(&format!("{}: {wrong}", file.display()));
            return Err(Failure::Found);
        }
    };
    if session.data(&as_json(&checked))? {
        return Ok(());
    }
    let header = &checked.header;
    let history = if header.history { "complete" } else { "most recent part only" };
    session.print(&format!(
        "cluster     {}\nepoch       {}\nrevision    {}\ntaken       {} by {} ({})\ncontents    {}\nhistory     {history}\n\
         size        {}\nblake3      {}\nwhole       yes\n",
        header.cluster,
        header.epoch,
        header.revision,
        text::moment(header.taken_at),
        header.member,
        header.version,
        counted(&checked),
        size(checked.bytes),
        checked.seal
    ))
}

/// Verifies a file on a separate thread, because Ctrl-C must end the wait.
async fn examine(file: &Path) -> Result<Result<Checked, Unusable>, Failure> {
    let opened = File::open(file).map_err(|error| unread(file, &error))?;
    let work = tokio::task::spawn_blocking(move || check(BufReader::with_capacity(1 << 20, opened)));
    Ok(work.await.unwrap_or_else(|error| Err(Unusable::Io(io::Error::other(error)))))
}

fn counted(checked: &Checked) -> String {
    let counts = &checked.header.counts;
    [
        text::plural(counts.allocations, "allocation", "allocations"),
        text::plural(counts.pools, "pool", "pools"),
        text::plural(counts.events, "event", "events"),
    ]
    .join(", ")
}

fn as_json(checked: &Checked) -> Vec<u8> {
    json!({"backup": checked.header, "bytes": checked.bytes, "blake3": checked.seal}).to_string().into_bytes()
}

fn size(bytes: u64) -> String {
    match bytes {
        0..1_048_576 => format!("{} KiB", bytes.div_ceil(1024)),
        _ => format!("{} MiB", bytes >> 20),
    }
}

/// Temporary file next to the destination; removed unless it is moved there.
struct Aside {
    path: PathBuf,
    file: File,
    kept: bool,
}

impl Aside {
    fn beside(wanted: &Path) -> Result<Self, Failure> {
        let mut name = wanted.as_os_str().to_owned();
        name.push(format!(".unfinished-{}", std::process::id()));
        let path = PathBuf::from(name);
        let file = file::create(&path, file::PRIVATE).map_err(|error| unwritten(&path, &error))?;
        Ok(Self { path, file, kept: false })
    }

    /// Moves the file to its destination durably; replaces an existing file only with `force`.
    fn take_place(mut self, wanted: &Path, force: bool) -> Result<(), Failure> {
        let flags = if force { RenameFlags::empty() } else { RenameFlags::NOREPLACE };
        match renameat_with(CWD, &self.path, CWD, wanted, flags) {
            Err(Errno::EXIST) => return Err(already_exists(wanted)),
            // Some file systems lack RENAME_NOREPLACE; `run` has already checked for an existing file.
            Err(Errno::INVAL | Errno::NOSYS) => fs::rename(&self.path, wanted),
            done => done.map_err(io::Error::from),
        }
        .map_err(|error| unwritten(wanted, &error))?;
        self.kept = true;
        let folder = wanted.parent().filter(|folder| !folder.as_os_str().is_empty());
        let synced = File::open(folder.unwrap_or(Path::new("."))).and_then(|folder| folder.sync_all());
        synced.map_err(|error| unwritten(wanted, &error))
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        if !self.kept {
            // `drop` can't return the error; the file's name describes the remnant.
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn already_exists(file: &Path) -> Failure {
    Failure::usage(
        format!("{} already exists and was not changed", file.display()),
        "Choose another file, or replace this one with --force.",
    )
}

fn unwritten(file: &Path, error: &io::Error) -> Failure {
    Problem::new(Code::StorageFull, format!("{} can't be written: {error}", file.display()))
        .help("Free disk space, or choose another file; no partial file remains.")
        .into()
}

fn unread(file: &Path, error: &io::Error) -> Failure {
    Failure::file(file, "read", error, "Choose a readable file.")
}
