//! Documents and the tree: each path in a document exists, and the architecture names each part of the tree.

use std::collections::BTreeSet;

/// Documents whose paths must exist.
pub(crate) const DOCUMENTS: [&str; 4] = [ARCHITECTURE, "CONTRIBUTING.md", "README.md", "SECURITY.md"];

/// Document that must name every crate, and every folder of [`DIVIDED`].
pub(crate) const ARCHITECTURE: &str = "ARCHITECTURE.md";

/// Folders whose subfolders are modules of the architecture.
const DIVIDED: [&str; 3] = ["raft/machine/src/", "raft/src/store/", "daemon/src/http/"];

/// Complaints about paths that `document` names and `paths` lacks.
pub(crate) fn check(document: &str, text: &str, paths: &BTreeSet<String>) -> Vec<String> {
    let missing = places(text, paths).into_iter().filter(|place| place.path.is_none());
    missing.map(|place| format!("{document}:{}: `{}` doesn't exist", place.line, place.word)).collect()
}

/// Complaints about crates and folders of [`DIVIDED`] that the architecture doesn't name.
pub(crate) fn incomplete(text: &str, paths: &BTreeSet<String>) -> Vec<String> {
    let named: BTreeSet<String> = places(text, paths).into_iter().filter_map(|place| place.path).collect();
    let unnamed = parts(paths).into_iter().filter(|part| !named.contains(part));
    unnamed.map(|part| format!("{ARCHITECTURE}: it doesn't name `{part}`")).collect()
}

/// Folders of crates, and folders of modules in [`DIVIDED`] except those of tests.
fn parts(paths: &BTreeSet<String>) -> BTreeSet<String> {
    let crates = paths.iter().filter_map(|path| path.strip_suffix("Cargo.toml"));
    let modules = paths.iter().filter_map(|path| {
        let (parent, rest) = DIVIDED.iter().find_map(|parent| Some((parent, path.strip_prefix(parent)?)))?;
        let (folder, _) = rest.split_once('/')?;
        (folder != "tests").then(|| format!("{parent}{folder}/"))
    });
    crates.filter(|folder| !folder.is_empty()).map(str::to_owned).chain(modules).collect()
}

/// A path in a document.
struct Place<'a> {
    line: usize,
    word: &'a str,
    /// Path from the top of the checkout, if it exists.
    path: Option<String>,
}

/// Paths in a document, relative to the top of the checkout or to the folder of the section's heading.
fn places<'a>(text: &'a str, paths: &BTreeSet<String>) -> Vec<Place<'a>> {
    let mut places = Vec::new();
    let (mut folder, mut fenced) = (String::new(), false);
    for (line, content) in (1..).zip(text.lines()) {
        if content.starts_with("```") {
            fenced = !fenced;
        }
        if fenced {
            continue;
        }
        if content.starts_with('#') {
            folder = quoted(content).find(|word| is_place(word)).map(folder_of).unwrap_or_default();
        }
        let words = quoted(content).filter(|word| is_place(word));
        places.extend(words.map(|word| Place { line, word, path: resolve(word, &folder, paths) }));
    }
    places
}

/// Text between backticks.
fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// True for a file or folder of the checkout; false for a command, a path of HTTP or a pattern.
fn is_place(word: &str) -> bool {
    let plain = word.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c));
    plain
        && !word.starts_with('/')
        && (word.ends_with('/') || word.ends_with(".rs") || word.ends_with(".toml"))
}

/// Folder that a heading names, or the folder of the file that it names.
fn folder_of(place: &str) -> String {
    place.rsplit_once('/').map(|(folder, _)| format!("{folder}/")).unwrap_or_default()
}

fn resolve(word: &str, folder: &str, paths: &BTreeSet<String>) -> Option<String> {
    let exists = |place: &String| match place.ends_with('/') {
        true => paths.range(place.clone()..).next().is_some_and(|path| path.starts_with(place)),
        false => paths.contains(place),
    };
    [word.to_owned(), format!("{folder}{word}"), format!("{folder}src/{word}")].into_iter().find(exists)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn complaints(text: &str) -> Vec<String> {
        let paths = paths(&["api/src/name.rs", "raft/src/lib.rs", "raft/src/types.rs", "deny.toml"]);
        check("MAP.md", text, &paths)
    }

    #[test]
    fn a_name_is_found_from_the_top_and_from_its_heading() {
        let text =
            "### `api/`\n`name.rs`, `deny.toml` and `raft/`\n### `raft/src/lib.rs`\n`types.rs`, `src/`\n";
        assert_eq!(complaints(text), ["MAP.md:4: `src/` doesn't exist"]);
    }

    #[test]
    fn a_missing_path_is_named_with_its_line() {
        assert_eq!(complaints("# Map\n\n`api/src/nome.rs`\n"), ["MAP.md:3: `api/src/nome.rs` doesn't exist"]);
    }

    #[test]
    fn commands_paths_of_http_and_listings_are_no_places() {
        assert_eq!(
            complaints("`cargo xtask test`, `/v1/`, `x…/`\n```\n`gone.rs`\n```\n"),
            Vec::<String>::new()
        );
    }

    #[test]
    fn crates_and_module_folders_must_be_named() {
        let tree = paths(&[
            "Cargo.toml",
            "api/Cargo.toml",
            "daemon/src/tasks/mod.rs",
            "raft/machine/Cargo.toml",
            "raft/machine/src/lib.rs",
            "raft/machine/src/view/map.rs",
            "raft/src/store/log/wal.rs",
            "raft/src/store/tests/journal.rs",
        ]);
        let text = "`api/`\n### `raft/machine/src/`\n`view/`\n";
        let unnamed = |folder: &str| format!("ARCHITECTURE.md: it doesn't name `{folder}`");
        assert_eq!(incomplete(text, &tree), [unnamed("raft/machine/"), unnamed("raft/src/store/log/")]);
        let text = format!("{text}### `raft/machine/`\n`raft/src/store/log/`\n");
        assert_eq!(incomplete(&text, &tree), Vec::<String>::new());
    }
}
