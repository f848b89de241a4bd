//! Runbook: an index, and a page for each alert.

use std::collections::{BTreeMap, BTreeSet};

use super::rules::Rule;

/// Page that links to the page of each alert.
pub(super) const INDEX: &str = "deploy/docs/alerts.md";
/// Folder of the pages, which have the names of their alerts.
pub(super) const PAGES: &str = "deploy/docs/alerts";
const SEVERITIES: [&str; 2] = ["page", "ticket"];
/// Paragraphs of a page.
const PARAGRAPHS: [&str; 4] = ["**Meaning.**", "**Impact.**", "**Check.**", "**Cure.**"];
/// Begin of a block that `daemon/tests/namespace_operating/` runs; it skips blocks with a further word.
const TESTED_BLOCK: &str = "```sh";

/// Texts of the runbook.
#[derive(Debug, Default)]
pub(super) struct Runbook {
    pub(super) index: String,
    /// Pages by the names of their files without the extension.
    pub(super) pages: BTreeMap<String, String>,
}

/// Complaints about annotations, alerts without a page or a link, and pages and links without an alert.
pub(super) fn without_runbook(rules: &[Rule], runbook: &Runbook) -> Vec<String> {
    let alerts = rules.iter().filter_map(|rule| Some((rule.name.as_str(), rule.alert.as_ref()?)));
    let mut complaints = Vec::new();
    let mut names = BTreeSet::new();
    for (name, alert) in alerts {
        names.insert(name);
        let expected = format!("{PAGES}/{name}.md");
        if alert.runbook != expected {
            complaints.push(format!("{name}: runbook_url is {:?} and not {expected:?}", alert.runbook));
        }
        if !SEVERITIES.contains(&alert.severity.as_str()) {
            complaints.push(format!("{name}: the severity {:?} is none of {SEVERITIES:?}", alert.severity));
        }
        if alert.summary.is_empty() || alert.description.is_empty() {
            complaints.push(format!("{name}: it needs a summary and a description"));
        }
    }
    let links = links(&runbook.index);
    for name in &names {
        match runbook.pages.get(*name) {
            None => complaints.push(format!("{name}: {PAGES}/{name}.md is missing")),
            Some(page) => complaints.extend(incomplete(name, page)),
        }
        if !links.contains(name) {
            complaints.push(format!("{name}: {INDEX} has no link to its page"));
        }
    }
    let present: BTreeSet<&str> = runbook.pages.keys().map(String::as_str).chain(links).collect();
    let stale = present.difference(&names);
    complaints.extend(stale.map(|name| format!("{PAGES}/{name}.md: {name} is no alert")));
    complaints
}

/// Complaints about the page of an alert that lacks its title, a paragraph or a tested command.
fn incomplete(name: &str, page: &str) -> Vec<String> {
    let title = format!("# {name}");
    let lines = [title.as_str(), TESTED_BLOCK].into_iter();
    let lines = lines.filter(|needed| !page.lines().any(|line| line == *needed));
    let paragraphs = PARAGRAPHS.into_iter();
    let paragraphs = paragraphs.filter(|begin| !page.lines().any(|line| line.starts_with(*begin)));
    lines.chain(paragraphs).map(|missing| format!("{name}: its page lacks {missing}")).collect()
}

/// Names of the pages that the index links to.
fn links(index: &str) -> BTreeSet<&str> {
    let links = index.split("](alerts/").skip(1);
    links.filter_map(|link| Some(link.split_once(".md)")?.0)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::rules::{EXAMPLE, read_rules};
    use super::*;

    const LIST: &str = "# Alerts\n\n- [no leader](alerts/IpamdNoLeader.md), [setup](#setup)\n";
    const PAGE: &str = "# IpamdNoLeader\n\n**Meaning.** None leads.\n\n**Impact.** Writes fail.\n\n\
                        **Check.**\n\n```sh\nipamctl status\n```\n\n**Cure.** Start members.\n";

    fn complaints(rules: &str, index: &str, pages: &[(&str, &str)]) -> Vec<String> {
        let pages = pages.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        without_runbook(&read_rules(rules).unwrap(), &Runbook { index: index.to_owned(), pages })
    }

    #[test]
    fn an_alert_needs_a_page_and_a_page_needs_an_alert() {
        let pages = [("IpamdNoLeader", PAGE)];
        assert_eq!(complaints(EXAMPLE, LIST, &pages), Vec::<String>::new());
        let expected = [
            "IpamdNoLeader: deploy/docs/alerts/IpamdNoLeader.md is missing",
            "IpamdNoLeader: deploy/docs/alerts.md has no link to its page",
            "deploy/docs/alerts/IpamdGone.md: IpamdGone is no alert",
            "deploy/docs/alerts/IpamdOld.md: IpamdOld is no alert",
        ];
        assert_eq!(complaints(EXAMPLE, "[old](alerts/IpamdOld.md)\n", &[("IpamdGone", PAGE)]), expected);
        let wrong = EXAMPLE.replace("alerts/Ipamd", "alerts/").replace("page", "night");
        assert_eq!(complaints(&wrong, LIST, &pages).len(), 2);
        let wrong = EXAMPLE.replace("summary", "title");
        assert_eq!(complaints(&wrong, LIST, &pages).len(), 1);
    }

    #[test]
    fn a_page_needs_its_title_its_paragraphs_and_a_tested_command() {
        for (present, replacement, missing) in [
            ("# Ipamd", "## Ipamd", "# IpamdNoLeader"),
            ("**Cure.**", "**Repair.**", "**Cure.**"),
            ("```sh", "```sh example", "```sh"),
        ] {
            let page = PAGE.replace(present, replacement);
            let expected = [format!("IpamdNoLeader: its page lacks {missing}")];
            assert_eq!(complaints(EXAMPLE, LIST, &[("IpamdNoLeader", page.as_str())]), expected);
        }
    }
}
