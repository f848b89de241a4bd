//! Files and folders that the outer documents name must exist: a map that is wrong is worse than none.

use std::collections::BTreeSet;

/// The documents that are held to it.
pub(crate) const DOCUMENTS: [&str; 4] = ["ARCHITECTURE.md", "CONTRIBUTING.md", "README.md", "SECURITY.md"];

/// Complaints about what `document` names and `paths` doesn't have. Names are looked for from the top, and
/// from the folder of the section's heading.
pub(crate) fn check(document: &str, text: &str, paths: &BTreeSet<String>) -> Vec<String> {
    let mut complaints = Vec::new();
    let (mut folder, mut fenced) = (String::new(), false);
    for (index, line) in text.lines().enumerate() {
        if line.starts_with("```") {
            fenced = !fenced;
        }
        if fenced {
            continue;
        }
        if line.starts_with('#') {
            folder = quoted(line).find(|word| is_place(word)).map(folder_of).unwrap_or_default();
        }
        for word in quoted(line).filter(|word| is_place(word)) {
            if !exists(word, &folder, paths) {
                complaints.push(format!("{document}:{}: `{word}` isn't there", index + 1));
            }
        }
    }
    complaints
}

/// What stands between backticks.
fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// Whether a word means a file or folder of ours, and not a command, a path of HTTP or a pattern.
fn is_place(word: &str) -> bool {
    let plain = word.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c));
    plain
        && !word.starts_with('/')
        && (word.ends_with('/') || word.ends_with(".rs") || word.ends_with(".toml"))
}

/// The folder in which a heading's names lie: itself, or a file's.
fn folder_of(place: &str) -> String {
    place.rsplit_once('/').map(|(folder, _)| format!("{folder}/")).unwrap_or_default()
}

fn exists(word: &str, folder: &str, paths: &BTreeSet<String>) -> bool {
    let candidates = [word.to_owned(), format!("{folder}{word}"), format!("{folder}src/{word}")];
    candidates.iter().any(|place| match place.ends_with('/') {
        true => paths.range(place.clone()..).next().is_some_and(|path| path.starts_with(place)),
        false => paths.contains(place),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(text: &str) -> Vec<String> {
        let paths = ["api/src/name.rs", "raft/src/lib.rs", "raft/src/types.rs", "deny.toml"];
        check("MAP.md", text, &paths.map(str::to_owned).into())
    }

    #[test]
    fn a_name_is_found_from_the_top_and_from_its_heading() {
        let text =
            "### `api/`\n`name.rs`, `deny.toml` and `raft/`\n### `raft/src/lib.rs`\n`types.rs`, `src/`\n";
        assert_eq!(complaints(text), ["MAP.md:4: `src/` isn't there"]);
    }

    #[test]
    fn what_is_gone_is_named_with_its_line() {
        assert_eq!(complaints("# Map\n\n`api/src/nome.rs`\n"), ["MAP.md:3: `api/src/nome.rs` isn't there"]);
    }

    #[test]
    fn commands_paths_of_http_and_listings_are_no_places() {
        assert_eq!(
            complaints("`cargo xtask test`, `/v1/`, `x…/`\n```\n`gone.rs`\n```\n"),
            Vec::<String>::new()
        );
    }
}
