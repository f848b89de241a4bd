//! Dependencies among the folders of a source tree: without cycles, and never upward in a fixed order.
//!
//! Imports show most dependencies. Methods of a type that many folders extend need no import, so their calls
//! count as well.
//!
//! A file directly in the tree counts as a folder of its own name. The root module (`lib.rs`, `main.rs`,
//! `mod.rs`) declares and re-exports: it may import every folder, and none may import from it.

use std::collections::{BTreeMap, BTreeSet};

use crate::imports::{self, Import, Method};

/// Source tree whose folders are checked.
struct Tree {
    path: &'static str,
    /// All folders, lowest first; empty if only cycles are forbidden.
    order: &'static [&'static str],
    /// Types with methods in many folders. A call is an import from the folder that declares the method: of
    /// the type by its name, of a variable or field by the type's name in lowercase.
    spread: &'static [&'static str],
}

const TREES: [Tree; 9] = [
    Tree { path: "raft/src", order: &[], spread: &[] },
    Tree { path: "cni/agent/src", order: &[], spread: &[] },
    Tree { path: "daemon/src/config", order: &[], spread: &[] },
    Tree { path: "daemon/src/dev", order: &[], spread: &[] },
    Tree { path: "daemon/src/metrics", order: &[], spread: &[] },
    Tree { path: "daemon/src/tasks", order: &[], spread: &[] },
    Tree {
        path: "daemon/src/http",
        order: &[
            "request",
            "convert",
            "list",
            "connection",
            "event",
            "allocation",
            "report",
            "resource",
            "cluster",
            "transaction",
            "describe",
            "admission",
            "router",
            "fuzzing",
        ],
        spread: &[],
    },
    Tree {
        path: "daemon/ipamctl/src",
        order: &["output", "settings", "client", "command", "grammar"],
        spread: &[],
    },
    Tree {
        path: "raft/machine/src",
        order: &[
            "broken",
            "seeded",
            "testing",
            "invariant",
            "tree",
            "value",
            "space",
            "command",
            "state",
            "event",
            "journal",
            "apply",
            "access",
            "cluster",
            "endpoint",
            "pods",
            "prefix_claims",
            "resource",
            "prefix",
            "automatic",
            "reclaim",
            "allocate",
            "probe",
            "dispatch",
            "view",
            "fixtures",
        ],
        spread: &["Index", "State", "Step"],
    },
];

/// Complaints about all trees; `sources` are paths with their text.
pub(crate) fn check(sources: &[(&str, String)]) -> Vec<String> {
    TREES.iter().flat_map(|tree| complaints(tree, sources)).collect()
}

/// Imports among folders, each with the first line that has it.
type Edges = BTreeMap<(String, String), String>;

fn complaints(tree: &Tree, sources: &[(&str, String)]) -> Vec<String> {
    let mut found = Vec::new();
    let files = files(tree, sources);
    let folders: BTreeSet<&str> =
        files.iter().filter_map(|file| file.module.first()).map(String::as_str).collect();
    let mut edges = Edges::new();
    for file in &files {
        let Some(folder) = file.module.first() else { continue };
        for Import { path, line } in &file.content.imports {
            let Some(path) = path.strip_prefix(file.root.as_slice()) else { continue };
            let place = format!("{}:{line}: {}", file.path, path.join("::"));
            match path.first() {
                Some(to) if folders.contains(to.as_str()) => {
                    if to != folder {
                        edges.entry((folder.clone(), to.clone())).or_insert(place);
                    }
                }
                _ => found.push(format!(
                    "{place}: import it from its folder, not through the root of {}",
                    tree.path
                )),
            }
        }
    }
    calls(tree, &files, &mut edges);
    found.extend(against(tree, &folders, &edges));
    found.extend(cycles(tree, &edges));
    found
}

/// Adds the calls of methods that are declared in another folder.
fn calls(tree: &Tree, files: &[File<'_>], edges: &mut Edges) {
    let methods = files.iter().flat_map(|file| {
        let own = file.content.methods.iter().filter(|method| tree.spread.contains(&method.of.as_str()));
        own.filter_map(|method| Some(((method.of.as_str(), method.name.as_str()), file.module.first()?)))
    });
    let homes: BTreeMap<(&str, &str), &String> = methods.collect();
    for file in files {
        let Some(folder) = file.module.first() else { continue };
        for Method { of, name, line } in &file.content.calls {
            let is_meant = |spread: &&&str| **spread == of || spread.to_lowercase() == *of;
            let Some(of) = tree.spread.iter().find(is_meant) else { continue };
            if let Some(home) = homes.get(&(*of, name.as_str())).filter(|home| **home != folder) {
                let place = format!("{}:{line}: {of}::{name}", file.path);
                edges.entry((folder.clone(), (*home).clone())).or_insert(place);
            }
        }
    }
}

/// One file of a tree.
struct File<'a> {
    path: &'a str,
    /// The module of the tree, from the root of the crate.
    root: Vec<String>,
    /// The module of the file, from the root of the tree.
    module: Vec<String>,
    content: imports::File,
}

/// Files of a tree, without tests.
fn files<'a>(tree: &Tree, sources: &[(&'a str, String)]) -> Vec<File<'a>> {
    let root: Vec<String> = modules(tree.path.split_once("src").map_or("", |(_, below)| below));
    let mut files = Vec::new();
    for (path, text) in sources {
        let Some(below) = path.strip_prefix(tree.path).and_then(|below| below.strip_prefix('/')) else {
            continue;
        };
        let Some(below) = below.strip_suffix(".rs") else { continue };
        if below.ends_with("tests") || below.contains("tests/") {
            continue;
        }
        let mut module = modules(below);
        module.pop_if(|last| matches!(last.as_str(), "mod" | "lib" | "main"));
        let content = imports::read(text, &[root.as_slice(), &module].concat());
        files.push(File { path, root: root.clone(), module, content });
    }
    let tests: Vec<Vec<String>> = files
        .iter()
        .flat_map(|file| {
            file.content.tests.iter().map(|name| [&file.module[..], std::slice::from_ref(name)].concat())
        })
        .collect();
    files.retain(|file| !tests.iter().any(|test| file.module.starts_with(test)));
    files
}

fn modules(path: &str) -> Vec<String> {
    path.split('/').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// Imports against the order of a tree, and folders that it doesn't name.
fn against(tree: &Tree, folders: &BTreeSet<&str>, edges: &Edges) -> Vec<String> {
    if tree.order.is_empty() {
        return Vec::new();
    }
    let rank = |name: &str| tree.order.iter().position(|known| *known == name);
    let unknown = folders.iter().filter(|name| rank(name).is_none());
    let mut found: Vec<String> =
        unknown.map(|name| format!("{}/{name}: has no place in the order of folders", tree.path)).collect();
    for ((from, to), place) in edges {
        if rank(from) < rank(to) {
            found.push(format!("{place}: {from} imports upward from {to}"));
        }
    }
    found
}

/// Each set of folders that import one another, with an example of each import.
fn cycles(tree: &Tree, edges: &Edges) -> Vec<String> {
    let mut reach: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (from, to) in edges.keys() {
        reach.entry(from).or_default().insert(to);
    }
    loop {
        let before: usize = reach.values().map(BTreeSet::len).sum();
        let now = reach.clone();
        for reached in reach.values_mut() {
            let further: Vec<&str> =
                reached.iter().filter_map(|name| now.get(name)).flatten().copied().collect();
            reached.extend(further);
        }
        if reach.values().map(BTreeSet::len).sum::<usize>() == before {
            break;
        }
    }
    let both = |one: &str, other: &str| {
        let reaches = |from: &str, to: &str| reach.get(from).is_some_and(|reached| reached.contains(to));
        reaches(one, other) && reaches(other, one)
    };
    let groups: BTreeSet<Vec<&str>> = reach
        .keys()
        .map(|one| reach.keys().copied().filter(|other| both(one, other)).collect::<Vec<_>>())
        .filter(|group| !group.is_empty())
        .collect();
    let mut found = Vec::new();
    for group in groups {
        found.push(format!("{}: {} import one another in a cycle:", tree.path, group.join(", ")));
        let inside = edges
            .iter()
            .filter(|((from, to), _)| group.contains(&from.as_str()) && group.contains(&to.as_str()));
        found.extend(inside.map(|((from, to), place)| format!("    {from} -> {to}: {place}")));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const TREE: Tree = Tree { path: "x/src/http", order: &[], spread: &[] };
    const ORDERED: Tree = Tree { path: "x/src/http", order: &["low", "high"], spread: &["State"] };

    fn checked(tree: &Tree, sources: &[(&'static str, &str)]) -> Vec<String> {
        let sources: Vec<(&str, String)> =
            sources.iter().map(|(path, text)| (*path, (*text).to_owned())).collect();
        complaints(tree, &sources)
    }

    #[test]
    fn a_cycle_is_found_with_a_line_for_each_import() {
        let sources = [
            ("x/src/http/low/a.rs", "use super::super::high::B;\n"),
            ("x/src/http/high.rs", "\nfn f() { crate::http::low::a::g(); }\n"),
            ("x/src/http/other.rs", "use super::low::a;\n"),
        ];
        assert_eq!(
            checked(&TREE, &sources),
            [
                "x/src/http: high, low import one another in a cycle:",
                "    high -> low: x/src/http/high.rs:2: low::a::g",
                "    low -> high: x/src/http/low/a.rs:1: high::B",
            ]
        );
    }

    #[test]
    fn a_cycle_of_three_is_found() {
        let sources = [
            ("x/src/http/a.rs", "use super::b::B;"),
            ("x/src/http/b.rs", "use super::c::C;"),
            ("x/src/http/c.rs", "use super::a::A;"),
        ];
        assert_eq!(checked(&TREE, &sources).len(), 4);
    }

    #[test]
    fn imports_of_tests_make_no_cycle() {
        let sources = [
            (
                "x/src/http/low/mod.rs",
                "#[cfg(test)] mod sample;\n#[cfg(test)] mod tests { use crate::http::high::A; }",
            ),
            ("x/src/http/low/sample.rs", "use crate::http::high::A;"),
            ("x/src/http/low/a_tests.rs", "use crate::http::high::A;"),
            ("x/src/http/low/tests/a.rs", "use crate::http::high::A;"),
            ("x/src/http/high.rs", "use super::low::A;"),
        ];
        assert_eq!(checked(&TREE, &sources), Vec::<String>::new());
    }

    #[test]
    fn other_trees_and_the_root_module_do_not_count() {
        let sources = [
            ("x/src/http/mod.rs", "pub use self::low::A; pub use self::high::B;"),
            ("x/src/http/low.rs", "use crate::metrics::Metrics;"),
            ("x/src/http/high.rs", "use super::low::A;"),
            ("x/src/metrics.rs", "use crate::http::low::A;"),
        ];
        assert_eq!(checked(&TREE, &sources), Vec::<String>::new());
    }

    #[test]
    fn an_import_through_the_root_is_found() {
        let sources = [("x/src/http/mod.rs", ""), ("x/src/http/low.rs", "use super::App;")];
        let found = checked(&TREE, &sources);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("x/src/http/low.rs:1: App: "), "{found:?}");
    }

    #[test]
    fn an_upward_import_is_named() {
        let sources = [
            ("x/src/http/low.rs", "use super::high::A;"),
            ("x/src/http/high.rs", ""),
            ("x/src/http/new.rs", ""),
        ];
        assert_eq!(
            checked(&ORDERED, &sources),
            [
                "x/src/http/new: has no place in the order of folders",
                "x/src/http/low.rs:1: high::A: low imports upward from high",
            ]
        );
    }

    #[test]
    fn a_call_of_a_method_is_an_import_from_the_folder_that_declares_it() {
        let sources = [
            ("x/src/http/low.rs", "impl State { fn f(&self) { self.f(); self.g(); other.h(); } }"),
            ("x/src/http/high.rs", "impl State { fn g(&self) { self.f(); } }\nimpl Other { fn h(&self) {} }"),
        ];
        assert_eq!(
            checked(&ORDERED, &sources),
            [
                "x/src/http/low.rs:1: State::g: low imports upward from high",
                "x/src/http: high, low import one another in a cycle:",
                "    high -> low: x/src/http/high.rs:1: State::f",
                "    low -> high: x/src/http/low.rs:1: State::g",
            ]
        );
        let field = [
            ("x/src/http/low.rs", "fn f(step: &Step) { step.state.g(); }"),
            ("x/src/http/high.rs", "impl State { fn g(&self) {} }"),
        ];
        assert_eq!(
            checked(&ORDERED, &field),
            ["x/src/http/low.rs:1: State::g: low imports upward from high"]
        );
    }
}
