//! Selectors of PromQL expressions. promtool checks the syntax and does not print its parts.

use std::iter::Peekable;

/// Words of PromQL that are no metrics, besides functions and aggregations.
const KEYWORDS: [&str; 8] = ["and", "bool", "group_left", "group_right", "offset", "or", "unless", "inf"];
/// Words in front of a list of labels.
const GROUPINGS: [&str; 6] = ["by", "group_left", "group_right", "ignoring", "on", "without"];

/// A metric in an expression, with the labels that the expression compares.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Selector {
    pub(super) metric: String,
    pub(super) labels: Vec<String>,
}

/// Selectors of a PromQL expression. Labels of groupings, ranges and strings are no metrics.
pub(super) fn selectors(expression: &str) -> Vec<Selector> {
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
