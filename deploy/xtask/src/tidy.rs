//! Rules for the checkout, beyond those of cargo.
//!
//! **Invariant:** each rule is a function from a path and its text to complaints; only `check` touches the
//! disk.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::{commits, cycles, map, prose};

/// Permitted names at the top level, besides those that begin with a dot.
const TOP_LEVEL: [&str; 17] = [
    "api",
    "raft",
    "daemon",
    "cni",
    "deploy",
    "jepsen",
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "LICENSE",
    "Cargo.toml",
    "Cargo.lock",
    "clippy.toml",
    "rustfmt.toml",
    "deny.toml",
];

/// Lines of a Rust file. A file above 500 lines needs a reason that its review accepts, such as one long
/// table.
const LINES_MAX: usize = 900;

/// Forbidden words of code, written so that this file doesn't contain them.
const LEFTOVERS: [(&str, &str); 7] = [
    (concat!("to", "do!("), "unfinished"),
    (concat!("unimple", "mented!("), "unfinished"),
    (concat!("TO", "DO"), "open an issue instead"),
    (concat!("FIX", "ME"), "open an issue instead"),
    (concat!("XX", "X"), "open an issue instead"),
    (concat!("dbg", "!("), "left from debugging"),
    (concat!("#[ig", "nore"), "a test that doesn't run proves nothing"),
];

/// Forbidden words of code under a folder, or everywhere else. These walls enforce dependency rules beyond
/// those of crates.
const WALLS: [Wall; 7] = [
    Wall {
        applies: |path| !path.starts_with("raft/"),
        words: &["openraft", "sled::"],
        why: "replication and storage are named only inside raft/",
    },
    Wall {
        applies: |path| path.starts_with("raft/machine/src/"),
        words: &[
            "openraft",
            "sled::",
            "tokio::",
            "std::fs",
            "std::thread",
            "Instant",
            "SystemTime",
            "crate::node",
            "crate::store",
            "crate::transport",
            "async fn",
        ],
        why: "the machine is pure: no I/O, no async, no clock, and it looks at nothing above it",
    },
    Wall {
        applies: |path| path.starts_with(MACHINE) && !IDENTIFIERS.contains(&path) && path != TEXT,
        words: &["Text::identifier("],
        why: "rows, events and outcomes hold no text of this program; few files give identifiers",
    },
    Wall {
        applies: |path| path.starts_with(MACHINE) && path != TEXT && path != BROKEN,
        words: &["Text::given(", ": String,", "<String>,", ": &'static str,", ": Arc<str>,", ": ArcStr,"],
        why: "rows, events and outcomes hold codes and typed context; sentences are made where they are shown",
    },
    Wall {
        applies: |path| path.starts_with(MACHINE) && !path.starts_with("raft/machine/src/value/"),
        words: &[".detail()", ".help()"],
        why: "what apply writes doesn't depend on the words of a cause",
    },
    Wall {
        applies: |path| path.starts_with("raft/src/store/") || path.starts_with("raft/src/transport/"),
        words: &["crate::node"],
        why: "each storey may only look down",
    },
    Wall {
        applies: |path| is_shipped(path) && path != RESOLVER && !path.ends_with("_tests.rs"),
        words: &["TcpStream::connect(", "lookup_host", "to_socket_addrs", "ToSocketAddrs"],
        why: "api/src/resolve.rs makes all connections by name; a static program must not call getaddrinfo",
    },
];

/// The only file that resolves names.
const RESOLVER: &str = "api/src/resolve.rs";

/// Returns true for the sources of the shipped programs.
fn is_shipped(path: &str) -> bool {
    let crates = ["api/src/", "raft/src/", "daemon/src/", "daemon/ipamctl/src/", "cni/"];
    crates.iter().any(|folder| path.starts_with(folder)) && !path.contains("/tests")
}

const MACHINE: &str = "raft/machine/src/";

/// The type of all text in the state.
const TEXT: &str = "raft/machine/src/value/text.rs";

/// The report of a broken invariant, which no state holds.
const BROKEN: &str = "raft/machine/src/broken.rs";

/// Files of the machine with identifiers: its own principals and request ids, and labels of selectors.
const IDENTIFIERS: [&str; 7] = [
    "raft/machine/src/state/selectors.rs",
    "raft/machine/src/apply/step.rs",
    "raft/machine/src/cluster/epoch.rs",
    // A row that only a defect would write, for tests.
    "raft/machine/src/cluster/replay.rs",
    "raft/machine/src/event/by.rs",
    // Callers of tests.
    "raft/machine/src/fixtures.rs",
    "raft/machine/src/state/lookup.rs",
];

struct Wall {
    applies: fn(&str) -> bool,
    words: &'static [&'static str],
    why: &'static str,
}

/// Checks every file that git tracks or would add.
pub(crate) fn check(root: &Path) -> Result<()> {
    let paths = files(root)?;
    let mut complaints = top_level(&paths);
    let mut sources = Vec::new();
    for path in &paths {
        let Ok(text) = fs::read_to_string(root.join(path)) else { continue };
        complaints.extend(file(path, &text));
        if map::DOCUMENTS.contains(&path.as_str()) {
            complaints.extend(map::check(path, &text, &paths));
        }
        if path == map::ARCHITECTURE {
            complaints.extend(map::incomplete(&text, &paths));
        }
        sources.push((path.as_str(), text));
    }
    complaints.extend(cycles::check(&sources));
    complaints.extend(prose::check(&sources));
    complaints.extend(commits::check(root)?);
    for complaint in &complaints {
        println!("{complaint}");
    }
    if !complaints.is_empty() {
        bail!("{} complaints", complaints.len());
    }
    println!("{} files in order", paths.len());
    Ok(())
}

fn files(root: &Path) -> Result<BTreeSet<String>> {
    let words = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let output = Command::new("git").args(words).current_dir(root).output().context("can't start git")?;
    if !output.status.success() {
        bail!("git ls-files failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let listed = String::from_utf8(output.stdout).context("a file's name is not UTF-8")?;
    Ok(listed.split('\0').filter(|path| !path.is_empty()).map(str::to_owned).collect())
}

fn top_level(paths: &BTreeSet<String>) -> Vec<String> {
    let names: BTreeSet<&str> = paths.iter().filter_map(|path| path.split('/').next()).collect();
    let known = |name: &&str| name.starts_with('.') || TOP_LEVEL.contains(name);
    names
        .into_iter()
        .filter(|name| !known(name))
        .map(|name| format!("{name}: the top level has seven names; put it into the folder that it helps"))
        .collect()
}

/// Complaints about one file.
fn file(path: &str, text: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    if is_text(path) {
        complaints.extend(lines(path, text, |line| {
            (line.trim_end() != line).then(|| "ends in white space".to_owned())
        }));
        if !text.is_empty() && !text.ends_with('\n') {
            complaints.push(format!("{path}: the last line has no end"));
        }
    }
    if path.ends_with(".rs") {
        complaints.extend(length(path, text));
        complaints.extend(opening(path, text));
        complaints.extend(leftovers(path, text));
        complaints.extend(examples(path, text));
        complaints.extend(walls(path, text));
    }
    complaints
}

fn is_text(path: &str) -> bool {
    let endings = [".rs", ".toml", ".md", ".sh", ".yml", ".yaml"];
    endings.iter().any(|ending| path.ends_with(ending)) || path == ".ci/run"
}

/// One complaint for each line for which `wrong` returns one.
fn lines<'a>(
    path: &'a str,
    text: &'a str,
    mut wrong: impl FnMut(&str) -> Option<String> + 'a,
) -> impl Iterator<Item = String> + 'a {
    let numbered = text.lines().enumerate();
    numbered.filter_map(move |(index, line)| wrong(line).map(|what| format!("{path}:{}: {what}", index + 1)))
}

fn length(path: &str, text: &str) -> Option<String> {
    let count = text.lines().count();
    (count > LINES_MAX).then(|| format!("{path}: {count} lines; divide it (at most {LINES_MAX})"))
}

/// Checks that a crate's root file opens with a description.
fn opening(path: &str, text: &str) -> Option<String> {
    let root = path.contains("/src/") && (path.ends_with("/lib.rs") || path.ends_with("/main.rs"));
    (root && !text.starts_with("//!")).then(|| format!("{path}: must open with `//!`, saying what it is for"))
}

fn leftovers(path: &str, text: &str) -> Vec<String> {
    let found = |line: &str| {
        let (word, why) = LEFTOVERS.iter().find(|(word, _)| line.contains(word))?;
        Some(format!("`{word}`: {why}"))
    };
    lines(path, text, found).collect()
}

/// Finds examples in doc comments, which no stage runs: tests replace them.
fn examples(path: &str, text: &str) -> Vec<String> {
    let mut open = false;
    let found = |line: &str| {
        let comment = line.trim_start();
        let comment = comment.strip_prefix("///").or_else(|| comment.strip_prefix("//!"))?;
        let language = comment.trim().strip_prefix("```")?;
        open = !open;
        (open && language != "text").then(|| "this example isn't run; write a test".to_owned())
    };
    lines(path, text, found).collect()
}

fn walls(path: &str, text: &str) -> Vec<String> {
    // This file contains the forbidden words; tests may use them.
    if path.starts_with("deploy/xtask/") || path.contains("/tests/") || path.ends_with("tests.rs") {
        return Vec::new();
    }
    let code = text.split("\n#[cfg(test)]").next().unwrap_or_default();
    let found = |line: &str| {
        let line = line.trim_start();
        if line.starts_with("//") {
            return None;
        }
        let mine = WALLS.iter().filter(|wall| (wall.applies)(path));
        let (word, why) = mine
            .flat_map(|wall| wall.words.iter().map(|word| (word, wall.why)))
            .find(|(word, _)| line.contains(*word))?;
        Some(format!("`{word}`: {why}"))
    };
    lines(path, code, found).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn long(lines: usize) -> String {
        "//! x\n".repeat(lines)
    }

    #[test]
    fn a_clean_file_is_left_in_peace() {
        assert_eq!(file("api/src/lib.rs", "//! What crosses the wire.\n\nmod a;\n"), Vec::<String>::new());
        assert_eq!(file("logo.png", "no line end, trailing blank "), Vec::<String>::new());
    }

    #[test]
    fn white_space_at_the_end_is_found_with_its_line() {
        assert_eq!(file("README.md", "a\nb \n"), ["README.md:2: ends in white space"]);
        assert_eq!(file("README.md", "a\nb"), ["README.md: the last line has no end"]);
    }

    #[test]
    fn long_files_are_found() {
        assert_eq!(length("a.rs", &long(LINES_MAX)), None);
        assert!(length("a.rs", &long(LINES_MAX + 1)).is_some());
    }

    #[test]
    fn a_crate_opens_with_its_purpose() {
        assert!(opening("daemon/ipamctl/src/main.rs", "fn main() {}\n").is_some());
        assert!(opening("daemon/ipamctl/src/main.rs", "//! The command line.\n").is_none());
        assert!(opening("daemon/src/http/mod.rs", "mod a;\n").is_none());
    }

    #[test]
    fn leftovers_are_found() {
        for (word, _) in LEFTOVERS {
            assert_eq!(leftovers("a.rs", &format!("// x\n    {word} y\n")).len(), 1, "{word}");
        }
    }

    #[test]
    fn an_example_that_nothing_runs_is_found() {
        let text = "//! ```text\n//! a\n//! ```\n/// ```\n/// assert!(false);\n/// ```\n";
        assert_eq!(examples("a.rs", text), ["a.rs:4: this example isn't run; write a test"]);
    }

    #[test]
    fn the_top_level_is_closed() {
        let paths = ["api/src/lib.rs", ".ci/run", "deny.toml", "src/main.rs", "notes.txt"];
        let complaints = top_level(&paths.map(str::to_owned).into());
        assert_eq!(complaints.len(), 2, "{complaints:?}");
    }

    #[test]
    fn a_forbidden_word_of_a_folder_is_found() {
        let uses = "use openraft::Raft;\n";
        assert_eq!(walls("daemon/src/main.rs", uses).len(), 1);
        assert_eq!(walls("raft/machine/src/allocate/pick.rs", uses).len(), 1);
        assert_eq!(walls("raft/src/node/handle.rs", uses).len(), 0);
        assert_eq!(walls("raft/src/store/log/wal.rs", "use crate::node::Node;\n").len(), 1);
        assert_eq!(walls("raft/machine/src/allocate/pick.rs", "let now = Instant::now();\n").len(), 1);
    }

    #[test]
    fn the_machine_stores_no_sentences() {
        for line in [
            "    detail: String,",
            "    pub names: Vec<String>,",
            "    pub why: &'static str,",
            "    by: Text::given(\"x\"),",
        ] {
            assert_eq!(walls("raft/machine/src/allocate/waiting.rs", line).len(), 1, "{line}");
            assert_eq!(walls("raft/src/store/rows/database.rs", line).len(), 0, "{line}");
        }
        let identifier = "let by = Text::identifier(\"task/expire\");\n";
        assert_eq!(walls("raft/machine/src/allocate/waiting.rs", identifier).len(), 1);
        assert_eq!(walls("raft/machine/src/event/by.rs", identifier).len(), 0);
        assert_eq!(walls(TEXT, "pub fn given() {}\nText::given(\"x\");\n").len(), 0);
        // Wording is shown and never stored.
        let calls = "let said = refusal.detail();\n";
        assert_eq!(walls("raft/machine/src/allocate/waiting.rs", calls).len(), 1);
        assert_eq!(walls("raft/machine/src/value/refusal.rs", calls).len(), 0);
    }

    #[test]
    fn comments_and_tests_may_name_what_code_may_not() {
        assert_eq!(walls("daemon/src/main.rs", "// not openraft\n").len(), 0);
        assert_eq!(
            walls("raft/machine/src/apply/a.rs", "fn a() {}\n\n#[cfg(test)]\nmod tests { use std::fs; }\n")
                .len(),
            0
        );
        assert_eq!(walls("raft/machine/src/allocate/pick_tests.rs", "use std::fs;\n").len(), 0);
    }
}
