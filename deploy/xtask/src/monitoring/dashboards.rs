//! Queries and data sources of Grafana's dashboards.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::document::{items, text};

/// Data source of every panel: the variable, since a uid would belong to one Grafana.
const DATA_SOURCE: &str = "${datasource}";
/// Variables of Grafana that stand for a duration.
const DURATIONS: [&str; 3] = ["$__rate_interval", "$__interval", "$__range"];

/// Expressions of the panels and variables of a dashboard, in PromQL.
pub(super) fn board_expressions(board: &Value) -> Vec<String> {
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
pub(super) fn fixed_ids(name: &str, board: &Value) -> Vec<String> {
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
pub(super) fn as_rules(expressions: &[String]) -> Value {
    let rules = expressions.iter().zip(1..).map(|(expression, number): (_, u32)| {
        json!({"record": format!("dashboard:expression:{number}"), "expr": expression})
    });
    json!({"groups": [{"name": "dashboards", "rules": rules.collect::<Vec<_>>()}]})
}

#[cfg(test)]
mod tests {
    use super::super::rules::read_rules;
    use super::*;

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
