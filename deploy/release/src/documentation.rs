//! Documentation of the artifacts: the pages, and the files of the checkout that their links lead to.
//!
//! The files keep the paths that they have in the checkout, so that the links between them are valid.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use ipam_image::tree::{DATA, Tree, read};

/// Documents in the top folder of the checkout.
pub(crate) const TOP: [&str; 3] = ["CHANGELOG.md", "README.md", "SECURITY.md"];
/// Folder of the pages in the checkout.
pub(crate) const PAGES: &str = "deploy/docs";
/// Largest size of all files. A link to a folder adds all files of the folder.
const BYTES_MAX: usize = 8 << 20;

/// Tree of [`TOP`], the pages, and all files and folders that their links lead to, directly or by a document.
///
/// # Errors
/// A file that can't be read, a link that leaves the checkout, or more than [`BYTES_MAX`] in total.
pub(crate) fn of_checkout(root: &Path) -> Result<Tree> {
    let (mut tree, mut bytes) = (Tree::default(), 0);
    let mut open: Vec<String> = TOP.iter().chain(&[PAGES]).map(|path| (*path).to_owned()).collect();
    let mut seen = BTreeSet::new();
    while let Some(path) = open.pop() {
        if !seen.insert(path.clone()) {
            continue;
        }
        let from = root.join(&path);
        if from.is_dir() {
            let mut folder = Tree::default();
            folder.copy_folder(&path, &from)?;
            open.extend(folder.iter().map(|(path, _)| path.to_owned()));
            continue;
        }
        let content = read(&from)?;
        bytes += content.len();
        ensure!(bytes <= BYTES_MAX, "{path}: the documents have more than {BYTES_MAX} bytes");
        if path.ends_with(".md") {
            let text = std::str::from_utf8(&content).with_context(|| path.clone())?;
            for target in targets(text) {
                let leaves = || format!("{path}: the link {target} leaves the checkout");
                open.push(resolved(&path, target).with_context(leaves)?);
            }
        }
        tree.file(path, content, DATA);
    }
    Ok(tree)
}

/// Text of a document of [`TOP`] whose links lead into the folder of the documentation, which ends with `/`.
pub(crate) fn moved(text: &str, folder: &str) -> String {
    let (mut moved, mut copied) = (String::new(), 0);
    for place in places(text) {
        moved.push_str(text.get(copied..place.start).unwrap_or_default());
        moved.push_str(folder);
        copied = place.start;
    }
    moved.push_str(text.get(copied..).unwrap_or_default());
    moved
}

/// Path in the checkout of the target of a link; none if the target is outside.
fn resolved(page: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            name => parts.push(name),
        }
    }
    (!parts.is_empty()).then(|| parts.join("/"))
}

/// Targets of the relative links of a Markdown text, without fragments.
fn targets(text: &str) -> impl Iterator<Item = &str> {
    places(text).into_iter().filter_map(move |place| text.get(place))
}

/// Places of [`targets`], in the order of the text. Blocks and spans of code have no links.
fn places(text: &str) -> Vec<Range<usize>> {
    let mut places = Vec::new();
    let (mut begin, mut is_in_block) = (0, false);
    for line in text.split_inclusive('\n') {
        if line.trim_start().starts_with("```") {
            is_in_block = !is_in_block;
        } else if !is_in_block {
            places.extend(of_line(line).map(|place| begin + place.start..begin + place.end));
        }
        begin += line.len();
    }
    places
}

/// Places in a line: `[text](target)` and `[name]: target`.
fn of_line(line: &str) -> impl Iterator<Item = Range<usize>> {
    let mut is_code = false;
    line.char_indices().filter_map(move |(at, character)| {
        is_code ^= character == '`';
        let rest = line.get(at..).filter(|_| !is_code)?;
        let definition = rest.strip_prefix("]: ").filter(|_| line.starts_with('['));
        let rest = definition.or_else(|| rest.strip_prefix("]("))?;
        let target = rest.split([')', '#', ' ', '\n']).next()?;
        // A colon is in URLs only.
        let is_relative = !target.is_empty() && !target.contains(':');
        let start = line.len() - rest.len();
        is_relative.then(|| start..start + target.len())
    })
}

#[cfg(test)]
mod tests {
    use ipam_image::tree::Entry;

    use super::*;

    const TEXT: &str = "[a](b.md#c), `[d](e)` and [`f`](../g/)\n```\n[h](i)\n```\n\
                        [j]: k.txt\n[l]: #m\n[n](https://o/) ![p](q.png \"r\")\n";

    #[test]
    fn relative_links_are_found_and_moved() {
        assert_eq!(targets(TEXT).collect::<Vec<_>>(), ["b.md", "../g/", "k.txt", "q.png"]);
        let expected = "[a](s/b.md#c), `[d](e)` and [`f`](s/../g/)\n```\n[h](i)\n```\n\
                        [j]: s/k.txt\n[l]: #m\n[n](https://o/) ![p](s/q.png \"r\")\n";
        assert_eq!(moved(TEXT, "s/"), expected);
    }

    #[test]
    fn a_target_outside_the_checkout_is_none() {
        assert_eq!(resolved("deploy/docs/a.md", "../b.toml").as_deref(), Some("deploy/b.toml"));
        assert_eq!(resolved("README.md", "./api/contracts/").as_deref(), Some("api/contracts"));
        for outside in ["../..", "../../../a"] {
            assert_eq!(resolved("deploy/docs/a.md", outside), None, "{outside}");
        }
    }

    #[test]
    fn each_link_of_a_document_leads_to_a_file_or_folder_of_the_documents() {
        let tree = of_checkout(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")).unwrap();
        let mut present = tree.folders();
        present.extend(tree.iter().map(|(path, _)| path));
        for path in ["README.md", "api/openapi.json", "deploy/docs/alerts/IpamdNoLeader.md"] {
            assert!(present.contains(path), "{path}");
        }
        for (path, entry) in tree.iter().filter(|(path, _)| path.ends_with(".md")) {
            let Entry::File(content, _) = entry else { panic!("{path} is a link") };
            for target in targets(std::str::from_utf8(content).unwrap()) {
                let to = resolved(path, target).unwrap();
                assert!(present.contains(to.as_str()), "{path}: {target}");
            }
        }
    }

    #[test]
    fn a_dead_link_is_refused() {
        let checkout = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(checkout.path().join(PAGES)).unwrap();
        for name in TOP {
            std::fs::write(checkout.path().join(name), "").unwrap();
        }
        let page = checkout.path().join(PAGES).join("a.md");
        std::fs::write(&page, "[b](../b.toml)\n").unwrap();
        let error = of_checkout(checkout.path()).unwrap_err().to_string();
        assert!(error.contains("deploy/b.toml"), "{error}");
        std::fs::write(&page, "[b](../../../b.toml)\n").unwrap();
        let error = of_checkout(checkout.path()).unwrap_err().to_string();
        assert_eq!(error, "deploy/docs/a.md: the link ../../../b.toml leaves the checkout");
    }
}
