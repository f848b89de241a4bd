//! Dependency rules of `deny.toml`, checked by cargo-deny or, if that is missing, by this module.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context as _, Result, bail};
use toml::{Table, Value};

use crate::workspace::{Workspace, call};

/// Checks bans, licences and sources.
pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    if workspace.has_cargo_tool("deny") {
        // Advisories would need a clone of their database, which needs internet access.
        return call(&mut workspace.cargo(["deny", "check", "bans", "licenses", "sources"]));
    }
    let read = |name: &str| -> Result<Table> {
        fs::read_to_string(workspace.root.join(name))?.parse().with_context(|| format!("can't read {name}"))
    };
    let (rules, lock) = (read("deny.toml")?, read("Cargo.lock")?);
    let words = ["tree", "--locked", "--workspace", "--target", "all", "--all-features", "--prefix", "none"];
    let edges = ["--edges", "normal,build,dev", "--format", "{p}|{l}"];
    let output = workspace.cargo(words).args(edges).output().context("can't start cargo")?;
    if !output.status.success() {
        bail!("cargo tree failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let mut complaints = licences(&rules, &String::from_utf8_lossy(&output.stdout))?;
    let packages = packages(&lock)?;
    complaints.extend(sources(&rules, &packages)?);
    complaints.extend(bans(&rules, &packages)?);
    if !complaints.is_empty() {
        complaints.iter().for_each(|complaint| println!("{complaint}"));
        bail!("{} complaints; deny.toml has the rules and their reasons", complaints.len());
    }
    println!(
        "checked by xtask: licences, sources, bans; advisories not checked (cargo-deny is not installed)"
    );
    Ok(())
}

/// A package of the lock file.
#[derive(Debug)]
struct Package<'a> {
    name: &'a str,
    source: Option<&'a str>,
    /// Names of its dependencies.
    dependencies: Vec<&'a str>,
}

fn packages(lock: &Table) -> Result<Vec<Package<'_>>> {
    let all = lock.get("package").and_then(Value::as_array).context("Cargo.lock has no packages")?;
    all.iter()
        .map(|package| {
            let text = |key| package.get(key).and_then(Value::as_str);
            let dependencies = package.get("dependencies").and_then(Value::as_array).into_iter().flatten();
            Ok(Package {
                name: text("name").context("a package of Cargo.lock has no name")?,
                source: text("source"),
                dependencies: dependencies
                    .filter_map(|dependency| dependency.as_str()?.split(' ').next())
                    .collect(),
            })
        })
        .collect()
}

/// The strings of the array at `table.key`.
fn strings<'a>(rules: &'a Table, table: &str, key: &str) -> Result<Vec<&'a str>> {
    let array = rules.get(table).and_then(|table| table.get(key)).and_then(Value::as_array);
    let array = array.with_context(|| format!("deny.toml has no {table}.{key}"))?;
    Ok(array.iter().filter_map(Value::as_str).collect())
}

/// Packages from sources that are not allowed. A package without a source is part of this workspace.
fn sources(rules: &Table, packages: &[Package<'_>]) -> Result<Vec<String>> {
    let allowed = strings(rules, "sources", "allow-registry")?;
    let is_allowed =
        |source: &str| source.strip_prefix("registry+").is_some_and(|url| allowed.contains(&url));
    let strange = |package: &Package<'_>| {
        let source = package.source.filter(|source| !is_allowed(source))?;
        Some(format!("{} comes from {source}", package.name))
    };
    Ok(packages.iter().filter_map(strange).collect())
}

/// Banned packages, unless a permitted wrapper uses them.
fn bans(rules: &Table, packages: &[Package<'_>]) -> Result<Vec<String>> {
    let banned = rules.get("bans").and_then(|bans| bans.get("deny")).and_then(Value::as_array);
    let mut complaints = Vec::new();
    for rule in banned.context("deny.toml has no bans.deny")? {
        let name = rule.get("crate").and_then(Value::as_str).context("a ban of deny.toml names no crate")?;
        let wrappers = rule.get("wrappers").and_then(Value::as_array);
        let Some(wrappers) = wrappers else {
            complaints
                .extend(packages.iter().find(|one| one.name == name).map(|_| format!("{name} is banned")));
            continue;
        };
        let uses = packages.iter().filter(|package| package.dependencies.contains(&name));
        let strange = uses.filter(|user| !wrappers.iter().any(|one| one.as_str() == Some(user.name)));
        complaints
            .extend(strange.map(|user| format!("{} depends on {name}, which is banned there", user.name)));
    }
    Ok(complaints)
}

/// Packages without a licence that is allowed, as cargo's tree lists them: `NAME VERSION|LICENCE`.
fn licences(rules: &Table, tree: &str) -> Result<Vec<String>> {
    let allowed = strings(rules, "licenses", "allow")?;
    let mut exceptions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let listed = rules.get("licenses").and_then(|table| table.get("exceptions")).and_then(Value::as_array);
    for exception in listed.into_iter().flatten() {
        let name = exception.get("crate").and_then(Value::as_str).context("an exception names no crate")?;
        let more = exception.get("allow").and_then(Value::as_array).into_iter().flatten();
        exceptions.insert(name, more.filter_map(Value::as_str).collect());
    }
    let mut complaints = Vec::new();
    for line in tree.lines() {
        let Some((package, licence)) = line.trim_end_matches(" (*)").split_once('|') else { continue };
        let name = package.split(' ').next().unwrap_or_default();
        let more = exceptions.get(name).map(Vec::as_slice).unwrap_or_default();
        if !Expression::of(licence).holds(&|one| allowed.contains(&one) || more.contains(&one)) {
            complaints.push(format!("{package} has the licence {licence:?}"));
        }
    }
    complaints.sort_unstable();
    complaints.dedup();
    Ok(complaints)
}

/// A licence expression of SPDX, read from the front. AND binds more tightly than OR.
struct Expression {
    words: Vec<String>,
    at: usize,
}

impl Expression {
    fn of(text: &str) -> Self {
        // A slash is how older manifests write OR.
        let spaced = text.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
        Self { words: spaced.split_whitespace().map(str::to_owned).collect(), at: 0 }
    }

    /// Returns false for a text that is no expression, such as an empty one.
    fn holds(mut self, allowed: &dyn Fn(&str) -> bool) -> bool {
        self.any(allowed) && self.at == self.words.len()
    }

    fn any(&mut self, allowed: &dyn Fn(&str) -> bool) -> bool {
        let mut holds = self.all(allowed);
        while self.take("OR") {
            holds |= self.all(allowed);
        }
        holds
    }

    fn all(&mut self, allowed: &dyn Fn(&str) -> bool) -> bool {
        let mut holds = self.one(allowed);
        while self.take("AND") {
            holds &= self.one(allowed);
        }
        holds
    }

    fn one(&mut self, allowed: &dyn Fn(&str) -> bool) -> bool {
        if self.take("(") {
            let holds = self.any(allowed);
            return self.take(")") && holds;
        }
        let Some(mut licence) = self.next() else { return false };
        if self.take("WITH") {
            licence = format!("{licence} WITH {}", self.next().unwrap_or_default());
        }
        // A licence "or later" permits the named version.
        allowed(licence.trim_end_matches('+'))
    }

    fn next(&mut self) -> Option<String> {
        let word = self.words.get(self.at).cloned();
        self.at += usize::from(word.is_some());
        word
    }

    fn take(&mut self, wanted: &str) -> bool {
        let is_next = self.words.get(self.at).is_some_and(|word| word == wanted);
        self.at += usize::from(is_next);
        is_next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: &str = r#"
[bans]
deny = [{ crate = "sled", wrappers = ["ipam-raft"] }, { crate = "bincode", reason = "dead" }]
[licenses]
allow = ["MIT", "Apache-2.0"]
exceptions = [{ crate = "maps", allow = ["MPL-2.0"] }]
[sources]
allow-registry = ["https://github.com/rust-lang/crates.io-index"]
"#;

    fn rules() -> Table {
        RULES.parse().unwrap()
    }

    #[test]
    fn a_licence_expression_holds_by_what_is_allowed() {
        for (text, expected) in [
            ("MIT", true),
            ("GPL-3.0", false),
            ("GPL-3.0 OR MIT", true),
            ("Unlicense/MIT", true),
            ("MIT AND GPL-3.0", false),
            ("GPL-3.0 OR MIT AND Apache-2.0", true),
            ("(GPL-3.0 OR MIT) AND Apache-2.0", true),
            ("MIT AND (GPL-3.0 OR ISC)", false),
            ("Apache-2.0 WITH LLVM-exception", false),
            ("Apache-2.0 WITH LLVM-exception OR MIT", true),
            ("Apache-2.0+", true),
            ("", false),
            ("MIT AND", false),
            ("MIT Apache-2.0", false),
            ("(MIT", false),
        ] {
            let allowed = |one: &str| ["MIT", "Apache-2.0"].contains(&one);
            assert_eq!(Expression::of(text).holds(&allowed), expected, "{text}");
        }
    }

    #[test]
    fn an_exception_counts_for_one_package() {
        let tree = "maps v7.0.0|MPL-2.0+
other v1.0.0|MPL-2.0 (*)
other v1.0.0|MPL-2.0
ring v0.17.0|MIT
";
        assert_eq!(licences(&rules(), tree).unwrap(), ["other v1.0.0 has the licence \"MPL-2.0\""]);
    }

    #[test]
    fn bans_and_strange_sources_are_found() {
        let lock = r#"
[[package]]
name = "ipamd"
dependencies = ["sled 0.34.7", "bincode"]
[[package]]
name = "ipam-raft"
dependencies = ["sled"]
[[package]]
name = "sled"
source = "registry+https://github.com/rust-lang/crates.io-index"
[[package]]
name = "bincode"
source = "git+https://example.org/bincode"
"#;
        let lock: Table = lock.parse().unwrap();
        let packages = packages(&lock).unwrap();
        assert_eq!(
            bans(&rules(), &packages).unwrap(),
            ["ipamd depends on sled, which is banned there", "bincode is banned"]
        );
        assert_eq!(
            sources(&rules(), &packages).unwrap(),
            ["bincode comes from git+https://example.org/bincode"]
        );
    }

    /// The rules are written for cargo-deny; the check reads the same file.
    #[test]
    fn the_rules_of_the_project_are_read() {
        let rules: Table = include_str!("../../../deny.toml").parse().unwrap();
        assert_eq!(
            licences(
                &rules,
                "libfuzzer-sys v0.4.0|NCSA
x v1.0.0|GPL-3.0
"
            )
            .unwrap()
            .len(),
            1
        );
        assert_eq!(bans(&rules, &[]).unwrap(), Vec::<String>::new());
        assert_eq!(sources(&rules, &[]).unwrap(), Vec::<String>::new());
    }
}
