//! Sections of the runbook, one for each alert.

use std::collections::{BTreeMap, BTreeSet};

use super::rules::Rule;

/// Page with a section for each alert.
pub(super) const RUNBOOK: &str = "deploy/docs/alerts.md";
const SEVERITIES: [&str; 2] = ["page", "ticket"];
/// Begin of a block that `daemon/tests/namespace_operating/` runs; it skips blocks with a further word.
const TESTED_BLOCK: &str = "```sh";

/// Complaints about annotations, alerts without a section or a command, and sections without an alert.
pub(super) fn without_runbook(rules: &[Rule], page: &str) -> Vec<String> {
    let alerts = rules.iter().filter_map(|rule| Some((rule.name.as_str(), rule.alert.as_ref()?)));
    let sections = sections(page);
    let mut complaints = Vec::new();
    let mut names = BTreeSet::new();
    for (name, alert) in alerts {
        names.insert(name);
        let expected = format!("{RUNBOOK}#{}", name.to_lowercase());
        if alert.runbook != expected {
            complaints.push(format!("{name}: runbook_url is {:?} and not {expected:?}", alert.runbook));
        }
        match sections.get(name) {
            None => complaints.push(format!("{name}: {RUNBOOK} has no section with this heading")),
            Some(false) => complaints.push(format!("{name}: its section has no tested command")),
            Some(true) => {}
        }
        if !SEVERITIES.contains(&alert.severity.as_str()) {
            complaints.push(format!("{name}: the severity {:?} is none of {SEVERITIES:?}", alert.severity));
        }
        if alert.summary.is_empty() || alert.description.is_empty() {
            complaints.push(format!("{name}: it needs a summary and a description"));
        }
    }
    let stale = sections.into_keys().filter(|name| name.starts_with("Ipamd") && !names.contains(name));
    complaints.extend(stale.map(|name| format!("{RUNBOOK}: a section of {name}, which is no alert")));
    complaints
}

/// Headings of a page; true if a test runs a command of the section.
fn sections(page: &str) -> BTreeMap<&str, bool> {
    let mut sections = BTreeMap::new();
    let mut heading = "";
    for line in page.lines() {
        heading = line.strip_prefix("## ").unwrap_or(heading);
        *sections.entry(heading).or_insert(false) |= line == TESTED_BLOCK;
    }
    sections
}

#[cfg(test)]
mod tests {
    use super::super::rules::{EXAMPLE, read_rules};
    use super::*;

    const SECTION: &str = "## IpamdNoLeader\n\n```sh\nipamctl status\n```\n";

    #[test]
    fn an_alert_needs_a_section_and_a_section_needs_an_alert() {
        let rules = read_rules(EXAMPLE).unwrap();
        assert_eq!(without_runbook(&rules, &format!("# Alerts\n\n{SECTION}")), Vec::<String>::new());
        let complaints = without_runbook(&rules, "## Setup\n\n### IpamdNoLeader\n\n## IpamdGone\n");
        let expected = [
            "IpamdNoLeader: deploy/docs/alerts.md has no section with this heading",
            "deploy/docs/alerts.md: a section of IpamdGone, which is no alert",
        ];
        assert_eq!(complaints, expected);
        let wrong = EXAMPLE.replace("#ipamdnoleader", "#noleader").replace("page", "night");
        let complaints = without_runbook(&read_rules(&wrong).unwrap(), SECTION);
        assert_eq!(complaints.len(), 2, "{complaints:?}");
        let wrong = EXAMPLE.replace("summary", "title");
        assert_eq!(without_runbook(&read_rules(&wrong).unwrap(), SECTION).len(), 1);
    }

    #[test]
    fn the_section_of_an_alert_needs_a_tested_command() {
        let rules = read_rules(EXAMPLE).unwrap();
        let expected = ["IpamdNoLeader: its section has no tested command"];
        let block = "```sh\nipamctl status\n```\n";
        for page in [
            "## IpamdNoLeader\n".to_owned(),
            format!("## Setup\n{block}## IpamdNoLeader\n"),
            format!("## IpamdNoLeader\n## Objectives\n{block}"),
            SECTION.replace("```sh", "```sh example"),
        ] {
            assert_eq!(without_runbook(&rules, &page), expected, "{page}");
        }
    }
}
