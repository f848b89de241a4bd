//! Metrics and labels that exist, and expressions with others.

use std::collections::{BTreeMap, BTreeSet};

use super::promql::{Selector, selectors};
use super::rules::Rule;

/// Labels that the scrape configuration of the runbook gives to each series.
const SCRAPE_LABELS: [&str; 3] = ["cluster", "instance", "job"];

/// Labels of each metric and recording rule; `None` permits all.
pub(super) type Known = BTreeMap<String, Option<BTreeSet<String>>>;

/// Metrics of the contract with their labels, recording rules, and `up`.
pub(super) fn known(contract: &str, rules: &[Rule]) -> Known {
    let mut known = Known::from([("up".to_owned(), labels(&[]))]);
    for line in contract.lines().filter(|line| !line.starts_with('#')) {
        let mut columns = line.split('|').map(str::trim);
        let (Some(name), Some(kind), Some(list)) = (columns.next(), columns.next(), columns.next()) else {
            continue;
        };
        let own: Vec<&str> = list.split(',').filter(|label| !label.is_empty()).collect();
        if kind == "histogram" {
            known.insert(format!("{name}_bucket"), labels(&[own.as_slice(), &["le"]].concat()));
            known.insert(format!("{name}_sum"), labels(&own));
            known.insert(format!("{name}_count"), labels(&own));
        } else {
            known.insert(name.to_owned(), labels(&own));
        }
    }
    let records = rules.iter().filter(|rule| rule.alert.is_none());
    known.extend(records.map(|rule| (rule.name.clone(), None)));
    known
}

/// Labels of a metric with those of the scrape configuration.
fn labels(own: &[&str]) -> Option<BTreeSet<String>> {
    Some(own.iter().chain(&SCRAPE_LABELS).map(|label| (*label).to_owned()).collect())
}

/// Complaints about the expressions of rules.
pub(super) fn unknown_in_rules(rules: &[Rule], known: &Known) -> Vec<String> {
    rules.iter().flat_map(|rule| unknown(&rule.name, &rule.expression, known)).collect()
}

/// Complaints about metrics and labels of an expression that do not exist.
pub(super) fn unknown(place: &str, expression: &str, known: &Known) -> Vec<String> {
    let mut complaints = Vec::new();
    for Selector { metric, labels } in selectors(expression) {
        match known.get(&metric) {
            None => complaints.push(format!("{place}: there is no metric {metric}")),
            Some(None) => {}
            Some(Some(permitted)) => {
                let strange = labels.iter().filter(|label| !permitted.contains(*label));
                complaints.extend(strange.map(|label| format!("{place}: {metric} has no label {label}")));
            }
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::super::rules::{EXAMPLE, read_rules};
    use super::*;

    const CONTRACT: &str = "\
# metric | type | labels | meaning
ipamd_raft_is_leader | gauge |  | 1 if this member is the leader
ipamd_refusals_total | counter | code | Rejected requests
ipamd_http_request_seconds | histogram | route | Seconds
";

    #[test]
    fn a_metric_that_does_not_exist_is_found() {
        let known = known(CONTRACT, &read_rules(EXAMPLE).unwrap());
        let complaints = |expression| unknown("a", expression, &known);
        for fine in [
            "ipamd_raft_is_leader{instance=\"b\"} or up{job=\"ipamd\"}",
            "rate(ipamd_http_request_seconds_bucket{route=\"/\",le=\"0.5\"}[5m])",
            "ipamd_http_request_seconds_sum / ipamd_http_request_seconds_count",
            "ipamd:leaders:max{any=\"label\"}",
        ] {
            assert_eq!(complaints(fine), Vec::<String>::new(), "{fine}");
        }
        assert_eq!(complaints("rate(ipamd_refusals[5m])"), ["a: there is no metric ipamd_refusals"]);
        assert_eq!(
            complaints("ipamd_http_request_seconds"),
            ["a: there is no metric ipamd_http_request_seconds"]
        );
        assert_eq!(
            complaints("ipamd_refusals_total{pool=\"b\"}"),
            ["a: ipamd_refusals_total has no label pool"]
        );
    }
}
