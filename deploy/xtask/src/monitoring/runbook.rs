//! Sections of the runbook, one for each alert.

use std::collections::BTreeSet;

use super::rules::Rule;

/// Page with a section for each alert.
pub(super) const RUNBOOK: &str = "deploy/docs/alerts.md";
const SEVERITIES: [&str; 2] = ["page", "ticket"];

/// Complaints about annotations, about alerts without a section, and about sections without an alert.
pub(super) fn without_runbook(rules: &[Rule], page: &str) -> Vec<String> {
    let alerts = rules.iter().filter_map(|rule| Some((rule.name.as_str(), rule.alert.as_ref()?)));
    let sections: BTreeSet<&str> = page.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    let mut complaints = Vec::new();
    let mut names = BTreeSet::new();
    for (name, alert) in alerts {
        names.insert(name);
        let expected = format!("{RUNBOOK}#{}", name.to_lowercase());
        if alert.runbook != expected {
            complaints.push(format!("{name}: runbook_url is {:?} and not {expected:?}", alert.runbook));
        }
        if !sections.contains(name) {
            complaints.push(format!("{name}: {RUNBOOK} has no section with this heading"));
        }
        if !SEVERITIES.contains(&alert.severity.as_str()) {
            complaints.push(format!("{name}: the severity {:?} is none of {SEVERITIES:?}", alert.severity));
        }
        if alert.summary.is_empty() || alert.description.is_empty() {
            complaints.push(format!("{name}: it needs a summary and a description"));
        }
    }
    let stale = sections.into_iter().filter(|name| name.starts_with("Ipamd") && !names.contains(name));
    complaints.extend(stale.map(|name| format!("{RUNBOOK}: a section of {name}, which is no alert")));
    complaints
}

#[cfg(test)]
mod tests {
    use super::super::rules::{EXAMPLE, read_rules};
    use super::*;

    #[test]
    fn an_alert_needs_a_section_and_a_section_needs_an_alert() {
        let rules = read_rules(EXAMPLE).unwrap();
        assert_eq!(without_runbook(&rules, "# Alerts\n\n## IpamdNoLeader\n"), Vec::<String>::new());
        let complaints = without_runbook(&rules, "## Setup\n\n### IpamdNoLeader\n\n## IpamdGone\n");
        let expected = [
            "IpamdNoLeader: deploy/docs/alerts.md has no section with this heading",
            "deploy/docs/alerts.md: a section of IpamdGone, which is no alert",
        ];
        assert_eq!(complaints, expected);
        let wrong = EXAMPLE.replace("#ipamdnoleader", "#noleader").replace("page", "night");
        let complaints = without_runbook(&read_rules(&wrong).unwrap(), "## IpamdNoLeader\n");
        assert_eq!(complaints.len(), 2, "{complaints:?}");
        let wrong = EXAMPLE.replace("summary", "title");
        assert_eq!(without_runbook(&read_rules(&wrong).unwrap(), "## IpamdNoLeader\n").len(), 1);
    }
}
