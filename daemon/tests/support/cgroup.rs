//! Control group of a node, below which runtimes create those of their containers.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Start of the names, before the number of the process that made them.
const PREFIX: &str = "ipamd-runtimes-";

/// Control group; removed with all those below it when it is dropped, after its processes have ended.
pub(crate) struct Cgroup(PathBuf);

impl Cgroup {
    pub(crate) fn make() -> Self {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let top = top();
        sweep(&top);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let path = top.join(format!("{PREFIX}{}-{number}", std::process::id()));
        fs::create_dir(&path).unwrap_or_else(|error| panic!("{}: {error}; are you root?", path.display()));
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        remove(&self.0);
    }
}

/// Mount point of the second version of control groups. The tests need none of its controllers.
fn top() -> PathBuf {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    let fields = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let top = fields.into_iter().find(|fields| fields[2] == "cgroup2").map(|fields| fields[1].into());
    top.expect("a mounted cgroup2 file system")
}

/// Removes what earlier processes could not, because they were killed.
fn sweep(top: &Path) {
    for entry in fs::read_dir(top).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        let process = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next());
        if process.is_some_and(|process| !Path::new("/proc").join(process).exists()) {
            remove(&entry.path());
        }
    }
}

/// Removes a group and all below it. A directory that still has a process stays.
fn remove(group: &Path) {
    for entry in fs::read_dir(group).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove(&entry.path());
        }
    }
    // Another process may sweep at the same time.
    let _ = fs::remove_dir(group);
}
