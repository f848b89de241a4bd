//! Alerts and recording rules of a file.

use anyhow::Result;
use serde_json::Value;

use super::document::{items, text};

/// A rule of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rule {
    pub(super) name: String,
    pub(super) expression: String,
    /// Alert; none for a recording rule.
    pub(super) alert: Option<Alert>,
}

/// The parts of an alert that the runbook and the tests refer to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Alert {
    pub(super) severity: String,
    pub(super) summary: String,
    pub(super) description: String,
    pub(super) runbook: String,
}

/// Rules of a file, in its order.
pub(super) fn read_rules(yaml: &str) -> Result<Vec<Rule>> {
    let document: Value = serde_saphyr::from_str(yaml)?;
    let rules = items(&document, "groups").flat_map(|group| items(group, "rules"));
    Ok(rules.map(Rule::read).collect())
}

impl Rule {
    fn read(rule: &Value) -> Self {
        let alert = rule.get("alert").map(|_| Alert {
            severity: text(rule, "/labels/severity").to_owned(),
            summary: text(rule, "/annotations/summary").to_owned(),
            description: text(rule, "/annotations/description").to_owned(),
            runbook: text(rule, "/annotations/runbook_url").to_owned(),
        });
        let name = if alert.is_some() { text(rule, "/alert") } else { text(rule, "/record") };
        Self { name: name.to_owned(), expression: text(rule, "/expr").to_owned(), alert }
    }
}

/// File of rules for tests.
#[cfg(test)]
pub(super) const EXAMPLE: &str = "
groups:
  - name: a
    rules:
      - record: ipamd:leaders:max
        expr: max by (cluster) (ipamd_raft_is_leader)
      - alert: IpamdNoLeader
        expr: |
          ipamd:leaders:max == 0
        labels: {severity: page}
        annotations:
          summary: No leader
          description: No member leads.
          runbook_url: deploy/docs/alerts/IpamdNoLeader.md
";
