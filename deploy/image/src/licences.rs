//! Licence texts of the crates in the shipped programs, as one document for all artifacts.
//!
//! A crate has the licence files of its source folder, also those of foreign sources in subfolders. A crate
//! without a file has the texts of another crate of its repository, or the plain text of its licence.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

use crate::crates::{Crate, cargo, host, shipped};
use crate::tree::{DATA, Tree, read};

/// Name of the document in artifacts.
pub const NAME: &str = "THIRD-PARTY-LICENSES";
/// Licence of this workspace, whose file has the plain text.
const PLAIN: &str = "Apache-2.0";
/// Name of the file with the licence of this workspace.
const OWN: &str = "LICENSE";
/// Beginnings of the names of licence files, in lower case.
const BEGINNINGS: [&str; 6] = ["license", "licence", "copying", "copyright", "notice", "unlicense"];
/// Folder of licence files with any names, in lower case.
const FOLDER: &str = "licenses";
/// Ends of names of code and settings.
const OTHERS: [&str; 2] = ["rs", "toml"];
/// Largest licence file. The largest one of a dependency has 33 KiB.
const BYTES_MAX: u64 = 1 << 20;
/// Length of the line before each text.
const LINE: usize = 80;
/// Libraries that are no crates. The licence of the GNU C library demands this notice, its text, and a way to
/// link the programs again.
const LIBRARIES: &str = "Libraries in the programs that are no crates:

GNU C library: LGPL-2.1-or-later; https://sourceware.org/glibc
Rust standard library: MIT OR Apache-2.0; https://github.com/rust-lang/rust

From the sources of this version, `cargo xtask build` links the programs with another version of the GNU C
library.
";
/// Licence text of the GNU C library.
const OF_C_LIBRARY: &str = include_str!("../LGPL-2.1");

/// Packages that cargo describes.
#[derive(Debug, Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

/// Package, with the fields that the document needs.
#[derive(Debug, Deserialize)]
struct Package {
    name: String,
    version: String,
    /// Registry, unless the package is in the checkout.
    source: Option<String>,
    manifest_path: PathBuf,
    authors: Vec<String>,
    repository: Option<String>,
}

/// Crate with its licence files.
#[derive(Debug)]
struct Licensed {
    one: Crate,
    authors: Vec<String>,
    repository: Option<String>,
    /// Texts by their paths in the source folder.
    files: BTreeMap<String, String>,
}

/// Files of a container image, which has no folder for documents: the own licence and the document.
///
/// # Errors
/// As for [`text`].
pub fn tree(root: &Path) -> Result<Tree> {
    let mut tree = Tree::default();
    tree.copy(OWN, &root.join(OWN), DATA)?;
    tree.file(NAME, text(root, &shipped(root)?)?, DATA);
    Ok(tree.below("licenses"))
}

/// Document with the licence texts of crates, and of the libraries that each program contains.
///
/// # Errors
/// If cargo fails, a file can't be read, or a crate has no licence text.
pub fn text(root: &Path, crates: &BTreeSet<Crate>) -> Result<String> {
    // Some crates belong to optional features of the programs. Those of other targets need not be present.
    let target = host(root)?;
    let words = ["metadata", "--format-version", "1", "--all-features", "--filter-platform", &target];
    let printed = cargo(root, &words)?;
    let packages = serde_json::from_str::<Metadata>(&printed)?.packages.into_iter();
    let mut packages: BTreeMap<_, _> =
        packages.map(|package| ((package.name.clone(), package.version.clone()), package)).collect();
    let own = content(&root.join(OWN))?;
    let licensed = crates.iter().map(|one| {
        let package = packages.remove(&(one.name.clone(), one.version.clone()));
        let package = package.with_context(|| format!("cargo metadata has no {one}"))?;
        let files = match package.manifest_path.parent().filter(|_| package.source.is_some()) {
            Some(folder) => files(folder, "")?,
            None => BTreeMap::from([(OWN.to_owned(), own.clone())]),
        };
        let Package { authors, repository, .. } = package;
        Ok(Licensed { one: one.clone(), authors, repository, files })
    });
    let document = document(&licensed.collect::<Result<Vec<_>>>()?, &own)?;
    Ok(format!("{document}\n{}\n{LIBRARIES}\n{OF_C_LIBRARY}", "=".repeat(LINE)))
}

/// Document of crates, with the plain text of [`PLAIN`].
fn document(crates: &[Licensed], plain: &str) -> Result<String> {
    let (mut listed, mut without) = (String::new(), String::new());
    let mut texts: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for licensed in crates {
        let Licensed { one, authors, repository, files } = licensed;
        writeln!(listed, "{one}: {}", one.licence)?;
        for (path, text) in files {
            texts.entry(text).or_default().push(format!("{one} ({path})"));
        }
        if files.is_empty() {
            let repository = repository.as_deref().unwrap_or("no repository");
            writeln!(without, "{one}: {}; {repository}", authors.join(", "))?;
            for (origin, text) in licensed.substitutes(crates, plain)? {
                texts.entry(text).or_default().push(format!("{one} ({origin})"));
            }
        }
    }
    let mut texts: Vec<_> = texts.into_iter().map(|(text, holders)| (holders, text)).collect();
    texts.sort();
    let mut document = format!("Crates in the programs of ipamd, each with its licence:\n\n{listed}");
    if !without.is_empty() {
        write!(document, "\nCrates without a licence file, with authors and repository:\n\n{without}")?;
    }
    document += "\nTexts, each after the crates to which it applies:\n";
    for (holders, text) in texts {
        write!(document, "\n{}\n{}\n\n{text}", "=".repeat(LINE), holders.join("\n"))?;
    }
    Ok(document)
}

impl Licensed {
    /// Texts for a crate without a licence file, each with its origin.
    fn substitutes<'a>(&self, crates: &'a [Self], plain: &'a str) -> Result<Vec<(String, &'a str)>> {
        let Self { one, repository, .. } = self;
        let is_sibling = |other: &&Self| {
            !other.files.is_empty()
                && repository.is_some()
                && other.repository == *repository
                && other.one.licence == one.licence
        };
        if let Some(Self { one, files, .. }) = crates.iter().find(is_sibling) {
            let texts = files.iter().map(|(path, text)| (format!("{path} of {one}"), text.as_str()));
            return Ok(texts.collect());
        }
        let mut choices = one.licence.split('/').flat_map(|part| part.split(" OR "));
        let is_plain = choices.any(|choice| choice.trim() == PLAIN);
        ensure!(is_plain, "{one} ({}) has no licence file, nor has a crate of its repository", one.licence);
        Ok(vec![(PLAIN.to_owned(), plain)])
    }
}

/// Licence files of a folder and its subfolders, with their paths after `above`.
fn files(folder: &Path, above: &str) -> Result<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        let (path, kind) = (format!("{above}{name}"), entry.file_type()?);
        if kind.is_dir() && !name.starts_with('.') {
            found.extend(files(&entry.path(), &format!("{path}/"))?);
        } else if kind.is_file() && is_licence(&path) {
            found.insert(path, content(&entry.path())?);
        }
    }
    found.retain(|_, text| !text.trim().is_empty());
    Ok(found)
}

/// Returns true for the path of a licence file.
fn is_licence(path: &str) -> bool {
    let path = path.to_lowercase();
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", &path));
    let is_other = name.rsplit_once('.').is_some_and(|(_, end)| OTHERS.contains(&end));
    let is_named = BEGINNINGS.iter().any(|beginning| name.starts_with(beginning));
    (is_named || folder.split('/').any(|part| part == FOLDER)) && !is_other
}

/// Text of a file without differences of line ends and white space at the ends of lines.
fn content(path: &Path) -> Result<String> {
    let bytes = fs::metadata(path).with_context(|| path.display().to_string())?.len();
    ensure!(bytes <= BYTES_MAX, "{}: {bytes} bytes, above the limit of {BYTES_MAX}", path.display());
    let text = String::from_utf8(read(path)?).with_context(|| path.display().to_string())?;
    let lines = text.trim_start_matches('\u{feff}').lines().map(str::trim_end);
    Ok(format!("{}\n", lines.collect::<Vec<_>>().join("\n").trim_matches('\n')))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn licensed(name: &str, licence: &str, repository: Option<&str>, files: &[(&str, &str)]) -> Licensed {
        let files = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned()));
        Licensed {
            one: Crate { name: name.to_owned(), version: "1.0.0".to_owned(), licence: licence.to_owned() },
            authors: vec![format!("author of {name}")],
            repository: repository.map(str::to_owned),
            files: files.collect(),
        }
    }

    #[test]
    fn equal_texts_are_written_once_after_their_crates() {
        let crates = [
            licensed("a", "MIT OR Zlib", None, &[("MIT", "permission\n"), ("ZLIB", "as-is\n")]),
            licensed("b", "MIT", None, &[("LICENSE", "permission\n")]),
        ];
        let line = "=".repeat(LINE);
        let expected = format!(
            "Crates in the programs of ipamd, each with its licence:\n\n\
             a 1.0.0: MIT OR Zlib\nb 1.0.0: MIT\n\n\
             Texts, each after the crates to which it applies:\n\n\
             {line}\na 1.0.0 (MIT)\nb 1.0.0 (LICENSE)\n\npermission\n\n\
             {line}\na 1.0.0 (ZLIB)\n\nas-is\n"
        );
        assert_eq!(document(&crates, "plain\n").unwrap(), expected);
    }

    #[test]
    fn a_crate_without_a_file_has_the_text_of_its_repository_or_the_plain_one() {
        let crates = [
            licensed("a", "MIT", Some("x"), &[]),
            licensed("b", "MIT", Some("x"), &[("LICENSE", "permission\n")]),
            licensed("c", "MIT/Apache-2.0", Some("y"), &[]),
        ];
        let document = document(&crates, "plain\n").unwrap();
        assert!(document.contains("\n\na 1.0.0: author of a; x\nc 1.0.0: author of c; y\n\n"), "{document}");
        assert!(document.contains("\na 1.0.0 (LICENSE of b 1.0.0)\nb 1.0.0 (LICENSE)\n\npermission\n"));
        assert!(document.ends_with("\nc 1.0.0 (Apache-2.0)\n\nplain\n"), "{document}");
    }

    #[test]
    fn a_crate_without_any_text_is_refused() {
        for licence in ["MIT", "Apache-2.0 AND ISC", ""] {
            let crates =
                [licensed("a", licence, None, &[]), licensed("b", licence, None, &[("LICENSE", "text\n")])];
            let error = document(&crates, "plain\n").unwrap_err().to_string();
            assert!(error.starts_with(&format!("a 1.0.0 ({licence}) has no licence file")), "{error}");
        }
    }

    #[test]
    fn licence_files_of_a_folder_and_of_foreign_sources_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let found = [
            "COPYING",
            "LICENCE.md",
            "LICENSE-Apache-2.0_WITH_LLVM-exception",
            "LICENSES/MIT.txt",
            "NOTICE",
            "UNLICENSE",
            "jemalloc/Copyright",
        ];
        let others = [".github/license.yml", "README.md", "licenserc.toml", "src/license.rs"];
        for path in found.into_iter().chain(others) {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "\u{feff}\r\npermission \r\n\r\ngranted\r\n\r\n").unwrap();
        }
        fs::write(folder.path().join("LICENSE-EMPTY"), "\n").unwrap();
        let files = files(folder.path(), "").unwrap();
        assert_eq!(files.keys().map(String::as_str).collect::<Vec<_>>(), found);
        assert!(files.values().all(|text| text == "permission\n\ngranted\n"), "{files:?}");
    }

    #[test]
    fn a_file_that_is_too_large_is_refused_with_its_path() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("LICENSE");
        fs::File::create(&path).unwrap().set_len(BYTES_MAX + 1).unwrap();
        let error = files(folder.path(), "").unwrap_err().to_string();
        assert!(error.starts_with(path.to_str().unwrap()), "{error}");
    }
}
