//! Coverage of the rules by their tests.

use std::collections::BTreeSet;

use anyhow::Result;
use serde_json::Value;

use super::document::{items, text};
use super::promql::selectors;
use super::rules::Rule;

/// Alerts and recording rules that the tests cover.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Tested {
    /// Names with severities that fire.
    firing: BTreeSet<(String, String)>,
    /// Names of alerts that do not fire.
    quiet: BTreeSet<String>,
    /// Metrics whose values are compared.
    queried: BTreeSet<String>,
}

impl Tested {
    /// Adds the cases of a test file.
    pub(super) fn add(&mut self, yaml: &str) -> Result<()> {
        let document: Value = serde_saphyr::from_str(yaml)?;
        for test in items(&document, "tests") {
            for case in items(test, "alert_rule_test") {
                let name = text(case, "/alertname");
                if items(case, "exp_alerts").next().is_none() {
                    self.quiet.insert(name.to_owned());
                }
                self.firing.extend(items(case, "exp_alerts").map(|alert| {
                    let severity = text(alert, "/exp_labels/severity");
                    (name.to_owned(), severity.to_owned())
                }));
            }
            // An absent sample alone proves no rule.
            let cases =
                items(test, "promql_expr_test").filter(|case| items(case, "exp_samples").next().is_some());
            self.queried
                .extend(cases.flat_map(|case| selectors(text(case, "/expr"))).map(|found| found.metric));
        }
        Ok(())
    }
}

/// Complaints about rules without tests, and about tests of alerts that do not exist.
pub(super) fn untested(rules: &[Rule], tested: &Tested) -> Vec<String> {
    let mut complaints = Vec::new();
    for rule in rules {
        let name = &rule.name;
        match &rule.alert {
            None if !tested.queried.contains(name) => complaints.push(format!("{name}: no test compares it")),
            None => {}
            Some(alert) => {
                if !tested.firing.contains(&(name.clone(), alert.severity.clone())) {
                    complaints.push(format!("{name}: no test in which it fires as a {}", alert.severity));
                }
                if !tested.quiet.contains(name) {
                    complaints.push(format!("{name}: no test in which it does not fire"));
                }
            }
        }
    }
    let exists = |name: &str| rules.iter().any(|rule| rule.alert.is_some() && rule.name == name);
    let names = tested.firing.iter().map(|(name, _)| name).chain(&tested.quiet).collect::<BTreeSet<_>>();
    let strange = names.into_iter().filter(|name| !exists(name));
    complaints.extend(strange.map(|name| format!("{name}: a test of an alert that does not exist")));
    complaints
}

#[cfg(test)]
mod tests {
    use super::super::rules::{EXAMPLE, read_rules};
    use super::*;

    const TESTS: &str = "
tests:
  - alert_rule_test:
      - {eval_time: 1m, alertname: IpamdNoLeader, exp_alerts: []}
      - eval_time: 2m
        alertname: IpamdNoLeader
        exp_alerts:
          - exp_labels: {severity: page}
    promql_expr_test:
      - expr: round(ipamd:leaders:max, 1)
        exp_samples: [{labels: '{}', value: 1}]
";

    fn tested(yaml: &str) -> Tested {
        let mut tested = Tested::default();
        tested.add(yaml).unwrap();
        tested
    }

    #[test]
    fn rules_without_tests_are_found() {
        let rules = read_rules(EXAMPLE).unwrap();
        assert_eq!(rules.len(), 2);
        assert_eq!(untested(&rules, &tested(TESTS)), Vec::<String>::new());
        let expected = [
            "ipamd:leaders:max: no test compares it",
            "IpamdNoLeader: no test in which it fires as a page",
            "IpamdNoLeader: no test in which it does not fire",
        ];
        assert_eq!(untested(&rules, &Tested::default()), expected);
        let other = TESTS.replace("severity: page", "severity: ticket");
        assert_eq!(untested(&rules, &tested(&other)), expected[1..2]);
        let other = tested(&TESTS.replace("IpamdNoLeader", "IpamdGone"));
        let strange = "IpamdGone: a test of an alert that does not exist";
        assert_eq!(untested(&rules, &other), [expected[1], expected[2], strange]);
    }

    #[test]
    fn an_absent_sample_is_no_test_of_a_rule() {
        let yaml = "tests:\n  - promql_expr_test:\n      - {expr: 'a:b:c', exp_samples: []}\n";
        assert_eq!(tested(yaml), Tested::default());
    }
}
