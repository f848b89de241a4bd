//! Prose of comments and Markdown, held to counts that may only fall.
//!
//! Each rule counts its findings per folder of a crate. A count above its ceiling fails. A count below its
//! ceiling fails too, until the ceiling is lowered, so that prose never gets worse again.

use std::collections::BTreeMap;

/// Rule of prose. The order is that of the columns of [`CEILINGS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rule {
    Opening,
    Vague,
    LongCode,
    VagueMarkdown,
    LongMarkdown,
}

impl Rule {
    const ALL: [Rule; 5] =
        [Rule::Opening, Rule::Vague, Rule::LongCode, Rule::VagueMarkdown, Rule::LongMarkdown];

    fn finding(self) -> &'static str {
        match self {
            Rule::Opening => "doc comments that open with a question word",
            Rule::Vague => "comment lines or function names with a vague pronoun",
            Rule::LongCode => "lines of Rust above 110 columns",
            Rule::VagueMarkdown => "lines of Markdown with a vague pronoun",
            Rule::LongMarkdown => "lines of Markdown above 120 columns",
        }
    }
}

/// Ceilings of a folder's findings: openings, vague, long, vague Markdown, long Markdown. A file counts for
/// the longest folder that contains it.
const CEILINGS: [(&str, [usize; 5]); 9] = [
    ("api/", [0, 0, 13, 0, 0]),
    ("raft/machine/", [0, 0, 70, 0, 0]),
    ("raft/", [0, 0, 19, 0, 0]),
    ("daemon/ipamctl/", [0, 0, 69, 0, 0]),
    ("daemon/", [0, 0, 62, 0, 0]),
    ("cni/", [0, 0, 1, 0, 0]),
    ("jepsen/", [0, 0, 2, 0, 0]),
    ("deploy/", [0, 0, 17, 0, 0]),
    ("", [0, 0, 0, 0, 0]),
];

/// Largest share of doc comments, in thousandths, that may open with a question word.
const OPENINGS_PER_MILLE_MAX: usize = 30;
/// Largest share of comment lines, in thousandths, that may have a vague pronoun.
const VAGUE_PER_MILLE_MAX: usize = 15;

/// Columns of a line of Rust, which is also rustfmt's `max_width`: rustfmt wraps no comments and strings.
const CODE_COLUMNS_MAX: usize = 110;
/// Columns of a line of Markdown outside tables and code blocks.
const MARKDOWN_COLUMNS_MAX: usize = 120;

/// Places that a complaint lists.
const PLACES_MAX: usize = 20;

/// Words with which a doc comment names no subject.
const OPENINGS: [&str; 14] = [
    "What", "Who", "Whom", "Whose", "Whether", "How", "Which", "Why", "Where", "When", "That", "Whoever",
    "Whatever", "Wherever",
];

/// Pronouns instead of a subject, as sequences of words.
const VAGUE: [&[&str]; 9] = [
    &["somebody"],
    &["nobody"],
    &["whoever"],
    &["someone"],
    &["anyone"],
    &["anybody"],
    &["everybody"],
    &["those", "who"],
    &["what", "it"],
];

/// Terms that standard ones replaced, as parts of identifiers and words. The changelog lists public ones.
const RETIRED: [&str; 9] =
    ["acquaintance", "giveable", "intention", "nudge", "remarks", "taker", "tenure", "unclaimed", "wish"];

/// Findings of a file, with their lines, and the totals that shares refer to.
#[derive(Debug, Default, PartialEq, Eq)]
struct Scan {
    findings: Vec<(Rule, usize)>,
    docs: usize,
    comments: usize,
}

/// Complaints about the prose of all files, given as path and text.
pub(crate) fn check(sources: &[(&str, String)]) -> Vec<String> {
    let mut places: BTreeMap<(&str, Rule), Vec<String>> = BTreeMap::new();
    let mut total = Scan::default();
    for (path, text) in sources {
        let scan = scan(path, text);
        let Some((folder, _)) = CEILINGS.iter().find(|(folder, _)| path.starts_with(folder)) else {
            continue;
        };
        for &(rule, line) in &scan.findings {
            places.entry((folder, rule)).or_default().push(format!("{path}:{line}"));
        }
        total.docs += scan.docs;
        total.comments += scan.comments;
        total.findings.extend(scan.findings);
    }
    let ratchets = CEILINGS.iter().flat_map(|(folder, ceilings)| {
        Rule::ALL.iter().zip(ceilings).filter_map(|(&rule, &ceiling)| {
            ratchet(folder, rule, places.get(&(*folder, rule)).map_or(&[], Vec::as_slice), ceiling)
        })
    });
    let retired = sources.iter().flat_map(|(path, text)| retired(path, text));
    ratchets.chain(shares(&total)).chain(retired).collect()
}

fn scan(path: &str, text: &str) -> Scan {
    if path.ends_with(".rs") {
        rust(text)
    } else if path.ends_with(".md") {
        Scan { findings: markdown(text), ..Scan::default() }
    } else if has_hash_comments(path) {
        hash_comments(text)
    } else {
        Scan::default()
    }
}

/// Returns true for scripts, settings and scenarios, whose comments begin with `#`.
fn has_hash_comments(path: &str) -> bool {
    let folders = [".ci/", "daemon/tests/namespace_operating/bin/", "deploy/debian/"];
    let ends = [".toml", ".yaml", ".sh", ".py", ".txt", ".service", ".timer"];
    folders.iter().any(|folder| path.starts_with(folder)) || ends.iter().any(|end| path.ends_with(end))
}

/// Complaints about retired terms in Rust and Markdown.
fn retired(path: &str, text: &str) -> Vec<String> {
    let is_checked = path.ends_with(".rs") && !path.ends_with("xtask/src/prose.rs")
        || path.ends_with(".md") && !["CHANGELOG.md", "MUTANTS.md"].iter().any(|name| path.ends_with(name));
    let lines = text.lines().zip(1..).filter(|_| is_checked);
    let complaints = lines.filter_map(|(line, number)| {
        let line = line.to_lowercase();
        let term = RETIRED.iter().find(|term| line.contains(**term))?;
        Some(format!("{path}:{number}: {term} is a retired term"))
    });
    complaints.collect()
}

/// Complaint about a count that isn't its ceiling.
fn ratchet(folder: &str, rule: Rule, places: &[String], ceiling: usize) -> Option<String> {
    let (count, finding) = (places.len(), rule.finding());
    let folder = if folder.is_empty() { "./" } else { folder };
    if count < ceiling {
        return Some(format!("{folder}: {count} {finding}: lower the ceiling of {ceiling} to {count}"));
    }
    let listed = places.iter().take(PLACES_MAX).cloned().collect::<Vec<_>>().join(", ");
    (count > ceiling)
        .then(|| format!("{folder}: {count} {finding}, above the ceiling of {ceiling}: {listed}"))
}

/// Complaints about shares in all files that are above their bounds.
fn shares(total: &Scan) -> Vec<String> {
    let bounds = [
        (Rule::Opening, total.docs, OPENINGS_PER_MILLE_MAX),
        (Rule::Vague, total.comments, VAGUE_PER_MILLE_MAX),
    ];
    let above = bounds.into_iter().filter_map(|(rule, of, max)| {
        let count = total.findings.iter().filter(|(one, _)| *one == rule).count();
        (count * 1000 > of * max).then(|| format!("{count} {} of {of}: at most {max} ‰", rule.finding()))
    });
    above.collect()
}

fn rust(text: &str) -> Scan {
    let mut scan = Scan::default();
    let mut is_in_doc = false;
    for (line, number) in text.lines().zip(1..) {
        if line.chars().count() > CODE_COLUMNS_MAX {
            scan.findings.push((Rule::LongCode, number));
        }
        let Some(comment) = line.trim_start().strip_prefix("//") else {
            if is_vague_name(line) {
                scan.findings.push((Rule::Vague, number));
            }
            is_in_doc = false;
            continue;
        };
        scan.comments += 1;
        if is_vague(comment) {
            scan.findings.push((Rule::Vague, number));
        }
        let doc = comment.strip_prefix(['/', '!']);
        if let (Some(doc), false) = (doc, is_in_doc) {
            scan.docs += 1;
            if OPENINGS.contains(&words(doc).next().unwrap_or_default()) {
                scan.findings.push((Rule::Opening, number));
            }
        }
        is_in_doc = doc.is_some();
    }
    scan
}

fn hash_comments(text: &str) -> Scan {
    let mut scan = Scan::default();
    let mut is_in_comment = false;
    for (line, number) in text.lines().zip(1..) {
        let Some(comment) = line.trim_start().strip_prefix('#') else {
            is_in_comment = false;
            continue;
        };
        scan.comments += 1;
        if is_vague(comment) {
            scan.findings.push((Rule::Vague, number));
        }
        if !is_in_comment && OPENINGS.contains(&words(comment).next().unwrap_or_default()) {
            scan.findings.push((Rule::Opening, number));
        }
        is_in_comment = true;
    }
    scan
}

fn markdown(text: &str) -> Vec<(Rule, usize)> {
    let mut findings = Vec::new();
    let mut is_in_code = false;
    for (line, number) in text.lines().zip(1..) {
        if line.trim_start().starts_with("```") {
            is_in_code = !is_in_code;
        } else if !is_in_code {
            if is_vague(line) {
                findings.push((Rule::VagueMarkdown, number));
            }
            if !line.trim_start().starts_with('|') && line.chars().count() > MARKDOWN_COLUMNS_MAX {
                findings.push((Rule::LongMarkdown, number));
            }
        }
    }
    findings
}

fn is_vague(line: &str) -> bool {
    // Code is no prose: `nobody` is a user.
    let prose: String = line.split('`').step_by(2).collect::<Vec<_>>().join(" _ ").to_lowercase();
    let words: Vec<&str> = words(&prose).collect();
    VAGUE.iter().any(|phrase| words.windows(phrase.len()).any(|window| window == *phrase))
}

/// Returns true for the line of a function whose name has a vague pronoun.
fn is_vague_name(line: &str) -> bool {
    let parts = line.split_once("fn ").filter(|(before, _)| !before.contains('"'));
    let name = parts.and_then(|(_, rest)| rest.split_once('('));
    name.is_some_and(|(name, _)| is_vague(&name.replace('_', " ")))
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_word_counts_once_for_each_doc_comment() {
        let text = [
            "//! What this is.",
            "//! How it works.",
            "",
            "/// Pools.",
            "/// Which pools.",
            "fn a() {}",
            "/// Whoever calls.",
            "fn b() {}",
            "// Why this is done.",
            "/// Whatsoever.",
        ];
        let text = text.join("\n");
        let scan = rust(&text);
        assert_eq!(scan.findings, [(Rule::Opening, 1), (Rule::Vague, 7), (Rule::Opening, 7)]);
        assert_eq!((scan.docs, scan.comments), (4, 7));
    }

    #[test]
    fn a_vague_pronoun_is_found_in_comments_and_function_names() {
        let lines = [
            ("// Nobody waits.", true),
            ("    /// Pools for those who ask.", true),
            ("//! Says what it has.", true),
            ("// Those pools are for the user `nobody`.", false),
            ("// Somebodys.", false),
            ("// What is it?", false),
            ("let a = \"nobody\";", false),
            ("    async fn nobody_waits() {", true),
            ("fn none(nobody: u8) {", false),
        ];
        for (line, is_found) in lines {
            assert_eq!(rust(line).findings.contains(&(Rule::Vague, 1)), is_found, "{line}");
        }
    }

    #[test]
    fn comments_of_scripts_and_scenarios_are_held_to_the_same_rules() {
        let text = "#!/bin/bash\n# What it does.\n# How.\nsu nobody\n  # Pools.\n# Somebody.\n";
        let scan = scan("a/b.txt", text);
        assert_eq!(scan.findings, [(Rule::Vague, 2), (Rule::Vague, 6)]);
        assert_eq!(hash_comments("# Where.\n# Why.\n\n# When.\n").findings.len(), 2);
        assert_eq!(super::scan("a/b.json", text), Scan::default());
    }

    #[test]
    fn a_long_line_of_rust_is_found_by_its_characters() {
        let line = |columns: usize| "é".repeat(columns);
        assert!(rust(&line(110)).findings.is_empty());
        assert_eq!(rust(&format!("a\n{}\n", line(111))).findings, [(Rule::LongCode, 2)]);
    }

    #[test]
    fn tables_and_code_blocks_of_markdown_may_be_long() {
        let long = "a ".repeat(61);
        let text = format!("{long}\n| {long} |\n```\n{long} nobody\n```\n  {long}\n");
        assert_eq!(markdown(&text), [(Rule::LongMarkdown, 1), (Rule::LongMarkdown, 6)]);
    }

    #[test]
    fn a_vague_pronoun_of_markdown_is_found_in_tables_too() {
        let text = "# Pools\n| somebody | a |\n```sh\nsu nobody\n```\nAsk anyone.\n";
        assert_eq!(markdown(text), [(Rule::VagueMarkdown, 2), (Rule::VagueMarkdown, 6)]);
    }

    #[test]
    fn a_retired_term_is_found_in_identifiers_and_prose() {
        let found = retired("api/src/a.rs", "struct InterfaceWish;\n// Pools.\n/// Its takers.\n");
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(retired("CHANGELOG.md", "`wish` is a request").is_empty());
    }

    #[test]
    fn a_count_above_or_below_its_ceiling_fails() {
        let places = ["a.rs:1".to_owned(), "a.rs:3".to_owned()];
        assert_eq!(ratchet("api/", Rule::Vague, &places, 2), None);
        let above = ratchet("api/", Rule::Vague, &places, 1).unwrap();
        assert!(above.ends_with("above the ceiling of 1: a.rs:1, a.rs:3"), "{above}");
        let below = ratchet("", Rule::Vague, &places, 3).unwrap();
        assert!(below.ends_with("lower the ceiling of 3 to 2"), "{below}");
    }

    #[test]
    fn a_share_above_its_bound_fails() {
        let total = |openings, vague| {
            let findings = [vec![(Rule::Opening, 1); openings], vec![(Rule::Vague, 1); vague]].concat();
            Scan { findings, docs: 100, comments: 200 }
        };
        assert_eq!(shares(&total(3, 3)), Vec::<String>::new());
        assert_eq!(shares(&total(4, 3)).len(), 1);
        assert_eq!(shares(&total(4, 4)).len(), 2);
    }

    #[test]
    fn a_file_counts_for_the_longest_folder() {
        for (place, (folder, _)) in CEILINGS.iter().enumerate() {
            let hidden = CEILINGS.iter().take(place).find(|(earlier, _)| folder.starts_with(earlier));
            assert_eq!(hidden, None, "{folder}");
        }
    }
}
