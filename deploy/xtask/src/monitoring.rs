//! Checks of the rules and dashboards in `deploy/monitoring/`, with promtool and against the metrics.
//!
//! **Invariant:** each check is a function from texts to complaints; only `test` reads files and runs
//! promtool.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::iter::Peekable;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use crate::workspace::{Workspace, call};

const FOLDER: &str = "deploy/monitoring";
const METRICS: &str = "api/contracts/metrics.txt";
/// Page with a section for each alert.
const RUNBOOK: &str = "deploy/docs/alerts.md";

/// Data source of every panel: the variable, since a uid would belong to one Grafana.
const DATA_SOURCE: &str = "${datasource}";
/// Variables of Grafana that stand for a duration.
const DURATIONS: [&str; 3] = ["$__rate_interval", "$__interval", "$__range"];

/// Labels that the scrape configuration of the runbook gives to each series.
const SCRAPE_LABELS: [&str; 3] = ["cluster", "instance", "job"];
const SEVERITIES: [&str; 2] = ["page", "ticket"];

/// Words of PromQL that are no metrics, besides functions and aggregations.
const KEYWORDS: [&str; 8] = ["and", "bool", "group_left", "group_right", "offset", "or", "unless", "inf"];
/// Words in front of a list of labels.
const GROUPINGS: [&str; 6] = ["by", "group_left", "group_right", "ignoring", "on", "without"];

/// Labels of each metric and recording rule; `None` permits all.
type Known = BTreeMap<String, Option<BTreeSet<String>>>;

/// Checks rules, their tests, dashboards and the runbook.
pub(crate) fn test(workspace: &Workspace, promtool: &Path) -> Result<()> {
    let folder = workspace.root.join(FOLDER);
    let (rule_files, test_files) = (files(&folder, "yaml")?, files(&folder.join("tests"), "yaml")?);
    call(Command::new(promtool).args(["check", "rules"]).args(&rule_files))?;

    let mut rules = Vec::new();
    for file in &rule_files {
        rules.extend(read_rules(&read(file)?).with_context(|| file.display().to_string())?);
    }
    let mut tested = Tested::default();
    for file in &test_files {
        tested.add(&read(file)?).with_context(|| file.display().to_string())?;
    }
    let known = known(&read(&workspace.root.join(METRICS))?, &rules);
    let mut complaints = unknown_in_rules(&rules, &known);
    complaints.extend(untested(&rules, &tested));
    complaints.extend(without_runbook(&rules, &read(&workspace.root.join(RUNBOOK))?));
    let mut expressions = Vec::new();
    for file in files(&folder.join("dashboards"), "json")? {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let board: Value = serde_json::from_str(&read(&file)?).with_context(|| name.clone())?;
        complaints.extend(fixed_ids(&name, &board));
        let of_board = board_expressions(&board);
        if of_board.is_empty() {
            complaints.push(format!("{name}: it has no query"));
        }
        complaints.extend(of_board.iter().flat_map(|expression| unknown(&name, expression, &known)));
        expressions.extend(of_board);
    }
    for complaint in &complaints {
        println!("{complaint}");
    }
    if !complaints.is_empty() {
        bail!("{} complaints about {FOLDER}", complaints.len());
    }

    let scratch = workspace.target.join("monitoring");
    fs::create_dir_all(&scratch)?;
    let parsed = scratch.join("expressions.yaml");
    fs::write(&parsed, as_rules(&expressions).to_string())
        .with_context(|| format!("can't write {}", parsed.display()))?;
    call(Command::new(promtool).args(["check", "rules"]).arg(&parsed))?;
    call(Command::new(promtool).args(["test", "rules"]).args(&test_files))
}

fn read(file: &Path) -> Result<String> {
    fs::read_to_string(file).with_context(|| format!("can't read {}", file.display()))
}

/// Files of a folder with an extension, in the order of their names.
fn files(folder: &Path, extension: &str) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| format!("can't read {}", folder.display()))?;
    let mut files = entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>()?;
    files.retain(|file| file.extension().is_some_and(|found| found == extension));
    files.sort();
    Ok(files)
}

/// Items of a list in a document; none if the list is missing.
fn items<'a>(document: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    document.get(key).and_then(Value::as_array).into_iter().flatten()
}

/// Text at a JSON pointer; empty if it is missing.
fn text<'a>(document: &'a Value, pointer: &str) -> &'a str {
    document.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// A rule of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Rule {
    name: String,
    expression: String,
    /// A recording rule has none.
    alert: Option<Alert>,
}

/// The parts of an alert that the runbook and the tests refer to.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Alert {
    severity: String,
    summary: String,
    description: String,
    runbook: String,
}

fn read_rules(yaml: &str) -> Result<Vec<Rule>> {
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

/// Alerts and recording rules that the tests cover.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tested {
    /// Names with severities that fire.
    firing: BTreeSet<(String, String)>,
    /// Names of alerts that do not fire.
    quiet: BTreeSet<String>,
    /// Metrics whose values are compared.
    queried: BTreeSet<String>,
}

impl Tested {
    /// Adds the cases of a test file.
    fn add(&mut self, yaml: &str) -> Result<()> {
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
fn untested(rules: &[Rule], tested: &Tested) -> Vec<String> {
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

/// Complaints about annotations, about alerts without a section, and about sections without an alert.
fn without_runbook(rules: &[Rule], page: &str) -> Vec<String> {
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

/// Metrics of the contract with their labels, recording rules, and `up`.
fn known(contract: &str, rules: &[Rule]) -> Known {
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

fn unknown_in_rules(rules: &[Rule], known: &Known) -> Vec<String> {
    rules.iter().flat_map(|rule| unknown(&rule.name, &rule.expression, known)).collect()
}

/// Complaints about metrics and labels of an expression that do not exist.
fn unknown(place: &str, expression: &str, known: &Known) -> Vec<String> {
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

/// A metric in an expression, with the labels that the expression compares.
#[derive(Debug, PartialEq, Eq)]
struct Selector {
    metric: String,
    labels: Vec<String>,
}

/// Selectors of a PromQL expression. Labels of groupings, ranges and strings are no metrics.
fn selectors(expression: &str) -> Vec<Selector> {
    let mut selectors = Vec::new();
    let mut tokens = tokens(expression).into_iter().peekable();
    while let Some(token) = tokens.next() {
        let next = tokens.peek().copied().unwrap_or_default();
        if token == "[" {
            skip_behind(&mut tokens, "]");
        } else if GROUPINGS.contains(&token) && next == "(" {
            skip_behind(&mut tokens, ")");
        } else if is_name(token) && !KEYWORDS.contains(&token) && !["(", "by", "without"].contains(&next) {
            let labels = if next == "{" { label_names(&mut tokens) } else { Vec::new() };
            selectors.push(Selector { metric: token.to_owned(), labels });
        } else if token == "{" {
            // A selector by labels alone could match any metric.
            skip_behind(&mut tokens, "}");
            selectors.push(Selector { metric: "without a name".to_owned(), labels: Vec::new() });
        }
    }
    selectors
}

fn skip_behind<'a>(tokens: &mut Peekable<impl Iterator<Item = &'a str>>, end: &str) {
    while tokens.next().is_some_and(|token| token != end) {}
}

/// Names of the labels between braces.
fn label_names<'a>(tokens: &mut Peekable<impl Iterator<Item = &'a str>>) -> Vec<String> {
    tokens.take_while(|token| *token != "}").filter(|token| is_name(token)).map(str::to_owned).collect()
}

fn is_name(token: &str) -> bool {
    token.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}

/// Words, strings and single marks, without white space.
fn tokens(expression: &str) -> Vec<&str> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || "_:.$".contains(c);
    let mut tokens = Vec::new();
    let mut rest = expression.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' | '\'' => string_length(rest, first),
            _ if is_word(first) => rest.find(|c: char| !is_word(c)).unwrap_or(rest.len()),
            _ => first.len_utf8(),
        };
        let (token, behind) = rest.split_at_checked(length).unwrap_or((rest, ""));
        tokens.push(token);
        rest = behind.trim_start();
    }
    tokens
}

/// Bytes of the string at the begin of a text, with both quotes.
fn string_length(text: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        if c == quote && !is_escaped {
            return at + c.len_utf8();
        }
        is_escaped = c == '\\' && !is_escaped;
    }
    text.len()
}

/// Expressions of the panels and variables of a dashboard, in PromQL.
fn board_expressions(board: &Value) -> Vec<String> {
    let rows = items(board, "panels").flat_map(|row| items(row, "panels"));
    let panels = items(board, "panels").chain(rows);
    let queries = panels.flat_map(|panel| items(panel, "targets")).map(|target| text(target, "/expr"));
    let variables = board.get("templating").into_iter().flat_map(|templating| items(templating, "list"));
    let variables = variables.filter_map(|variable| {
        let (selector, _) = text(variable, "/query/query").strip_prefix("label_values(")?.rsplit_once(',')?;
        Some(selector)
    });
    queries.chain(variables).map(plain).collect()
}

/// An expression with a duration in place of Grafana's variables. Other variables are in strings.
fn plain(expression: &str) -> String {
    DURATIONS.iter().fold(expression.to_owned(), |expression, variable| expression.replace(variable, "5m"))
}

/// Complaints about ids of one installation of Grafana.
fn fixed_ids(name: &str, board: &Value) -> Vec<String> {
    let mut complaints = Vec::new();
    if board.get("id").is_some_and(|id| !id.is_null()) {
        complaints.push(format!("{name}: the dashboard has an id of one Grafana"));
    }
    let mut sources = BTreeSet::new();
    data_sources(board, &mut sources);
    let fixed = sources.into_iter().filter(|uid| *uid != DATA_SOURCE);
    complaints.extend(fixed.map(|uid| format!("{name}: the data source {uid:?} is not {DATA_SOURCE}")));
    complaints
}

/// Collects the uids of all data sources in a document.
fn data_sources<'a>(document: &'a Value, uids: &mut BTreeSet<&'a str>) {
    match document {
        Value::Array(items) => items.iter().for_each(|item| data_sources(item, uids)),
        Value::Object(fields) => {
            for (key, value) in fields {
                if key == "datasource" {
                    uids.insert(text(value, "/uid"));
                } else {
                    data_sources(value, uids);
                }
            }
        }
        _ => {}
    }
}

/// A file of recording rules, so that promtool parses the expressions. JSON is YAML.
fn as_rules(expressions: &[String]) -> Value {
    let rules = expressions.iter().zip(1..).map(|(expression, number): (_, u32)| {
        json!({"record": format!("dashboard:expression:{number}"), "expr": expression})
    });
    json!({"groups": [{"name": "dashboards", "rules": rules.collect::<Vec<_>>()}]})
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTRACT: &str = "\
# metric | type | labels | meaning
ipamd_raft_is_leader | gauge |  | 1 if this member is the leader
ipamd_refusals_total | counter | code | Rejected requests
ipamd_http_request_seconds | histogram | route | Seconds
";

    const RULES: &str = "
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
          runbook_url: deploy/docs/alerts.md#ipamdnoleader
";

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

    fn found(expression: &str) -> Vec<(String, Vec<String>)> {
        selectors(expression).into_iter().map(|one| (one.metric, one.labels)).collect()
    }

    /// Name and labels of a metric in an expression.
    type Metric = (&'static str, &'static [&'static str]);

    #[test]
    fn metrics_and_their_labels_are_found_in_an_expression() {
        let cases: [(&str, &[Metric]); 7] = [
            ("up", &[("up", &[])]),
            (
                "sum by (cluster, le) (rate(a_total{x=\"1\",y!~\"b|c\"}[5m])) > 14.4 * 0.001",
                &[("a_total", &["x", "y"])],
            ),
            ("sum(a) by (b) / on (c) group_left (d) e offset 10m", &[("a", &[]), ("e", &[])]),
            ("a:b:c{d=\"e{f}\\\" g\"} and 1 or h unless -i", &[("a:b:c", &["d"]), ("h", &[]), ("i", &[])]),
            ("max_over_time(rate(a[$__rate_interval])[1h:5m]) > bool 2", &[("a", &[])]),
            ("a / ignoring (b) group_left c", &[("a", &[]), ("c", &[])]),
            ("{job=\"a\"}", &[("without a name", &[])]),
        ];
        for (expression, expected) in cases {
            let expected: Vec<(String, Vec<String>)> = expected
                .iter()
                .map(|(metric, labels)| {
                    ((*metric).to_owned(), labels.iter().map(|label| (*label).to_owned()).collect())
                })
                .collect();
            assert_eq!(found(expression), expected, "{expression}");
        }
    }

    #[test]
    fn a_metric_that_does_not_exist_is_found() {
        let known = known(CONTRACT, &read_rules(RULES).unwrap());
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

    #[test]
    fn rules_without_tests_are_found() {
        let rules = read_rules(RULES).unwrap();
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

    #[test]
    fn an_alert_needs_a_section_and_a_section_needs_an_alert() {
        let rules = read_rules(RULES).unwrap();
        assert_eq!(without_runbook(&rules, "# Alerts\n\n## IpamdNoLeader\n"), Vec::<String>::new());
        let complaints = without_runbook(&rules, "## Setup\n\n### IpamdNoLeader\n\n## IpamdGone\n");
        let expected = [
            "IpamdNoLeader: deploy/docs/alerts.md has no section with this heading",
            "deploy/docs/alerts.md: a section of IpamdGone, which is no alert",
        ];
        assert_eq!(complaints, expected);
        let wrong = RULES.replace("#ipamdnoleader", "#noleader").replace("page", "night");
        let complaints = without_runbook(&read_rules(&wrong).unwrap(), "## IpamdNoLeader\n");
        assert_eq!(complaints.len(), 2, "{complaints:?}");
        let wrong = RULES.replace("summary", "title");
        assert_eq!(without_runbook(&read_rules(&wrong).unwrap(), "## IpamdNoLeader\n").len(), 1);
    }

    #[test]
    fn expressions_of_panels_rows_and_variables_are_found() {
        let board = json!({
            "panels": [
                {"targets": [{"expr": "rate(a[$__rate_interval])"}, {"expr": "b"}]},
                {"panels": [{"targets": [{"expr": "c"}]}]},
            ],
            "templating": {"list": [
                {"query": "prometheus"},
                {"query": {"query": "label_values(d{e=\"$f\",g=\"h\"}, i)"}},
            ]},
        });
        let expected = ["rate(a[5m])", "b", "c", "d{e=\"$f\",g=\"h\"}"];
        assert_eq!(board_expressions(&board), expected);
        let rules = as_rules(&["a".to_owned()]);
        assert_eq!(read_rules(&rules.to_string()).unwrap()[0].expression, "a");
    }

    #[test]
    fn ids_of_one_grafana_are_found() {
        let source = |uid: &str| json!({"id": null, "panels": [{"datasource": {"uid": uid}}]});
        assert_eq!(fixed_ids("a", &source("${datasource}")), Vec::<String>::new());
        assert_eq!(fixed_ids("a", &source("P1809")).len(), 1);
        assert_eq!(fixed_ids("a", &json!({"id": 7})).len(), 1);
    }
}
