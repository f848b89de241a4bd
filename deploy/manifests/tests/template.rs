//! Evaluator of the templates of the chart: exactly the actions that they may use, with Go's rules for white
//! space and truth.

use std::collections::BTreeMap;

use serde_json::Value;

/// Part of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Print { path: String, as_yaml: bool },
    If(String, Vec<Part>),
    Range { key: Option<String>, item: String, path: String, body: Vec<Part> },
}

/// Output of a template.
pub(crate) fn evaluate(template: &str, values: &Value) -> String {
    let mut tokens = tokens(template).into_iter();
    let parts = parse(&mut tokens, false);
    let mut output = String::new();
    write(&parts, values, &BTreeMap::new(), &mut output);
    output
}

/// Text and actions in turn, without the white space that an action trims.
fn tokens(template: &str) -> Vec<Result<String, String>> {
    let mut tokens = Vec::new();
    let mut rest = template;
    while let Some((text, after)) = rest.split_once("{{") {
        let (action, after) = after.split_once("}}").expect("an action has an end");
        let trims_before = action.starts_with('-');
        let text = if trims_before { text.trim_end() } else { text };
        assert!(!action.ends_with('-'), "the chart trims before actions only: {action}");
        tokens.push(Ok(text.to_owned()));
        tokens.push(Err(action.trim_start_matches('-').trim().to_owned()));
        rest = after;
    }
    tokens.push(Ok(rest.to_owned()));
    tokens
}

fn parse(tokens: &mut dyn Iterator<Item = Result<String, String>>, is_nested: bool) -> Vec<Part> {
    let mut parts = Vec::new();
    while let Some(token) = tokens.next() {
        let action = match token {
            Ok(text) => {
                parts.push(Part::Text(text));
                continue;
            }
            Err(action) => action,
        };
        let words: Vec<&str> = action.split_whitespace().collect();
        parts.push(match words.as_slice() {
            ["end"] => {
                assert!(is_nested, "an end without a beginning");
                return parts;
            }
            ["if", path] => Part::If(checked(path), parse(tokens, true)),
            ["range", item, ":=", path] => {
                Part::Range { key: None, item: checked(item), path: checked(path), body: body(tokens) }
            }
            ["range", key, item, ":=", path] => {
                let key = key.strip_suffix(',').expect("a comma");
                let (key, item) = (Some(checked(key)), checked(item));
                Part::Range { key, item, path: checked(path), body: body(tokens) }
            }
            ["toYaml", path] => Part::Print { path: checked(path), as_yaml: true },
            [path] => Part::Print { path: checked(path), as_yaml: false },
            other => panic!("the chart may not use {other:?}"),
        });
    }
    assert!(!is_nested, "a beginning without an end");
    parts
}

/// Body of a range, in which Go finds no `.Values`: the dot is the item there.
fn body(tokens: &mut dyn Iterator<Item = Result<String, String>>) -> Vec<Part> {
    let parts = parse(tokens, true);
    for part in &parts {
        if let Part::Print { path, .. } | Part::If(path, _) | Part::Range { path, .. } = part {
            assert!(path.starts_with('$'), "{path} in a range");
        }
    }
    parts
}

/// A variable or a value of the chart.
fn checked(path: &str) -> String {
    assert!(path.starts_with(".Values.") || path.starts_with('$'), "the chart may not use {path}");
    path.to_owned()
}

fn write(parts: &[Part], values: &Value, variables: &BTreeMap<String, Value>, output: &mut String) {
    for part in parts {
        match part {
            Part::Text(text) => output.push_str(text),
            Part::Print { path, as_yaml } => match (find(path, values, variables), as_yaml) {
                (Value::String(text), false) => output.push_str(&text),
                // JSON is YAML; a line of a scalar has no end.
                (value, _) => output.push_str(&value.to_string()),
            },
            Part::If(path, body) => {
                if is_true(&find(path, values, variables)) {
                    write(body, values, variables, output);
                }
            }
            Part::Range { key, item, path, body } => {
                let entries: Vec<(Value, Value)> = match find(path, values, variables) {
                    Value::Array(items) => (0..).map(Value::from).zip(items).collect(),
                    Value::Object(map) => map.into_iter().map(|(key, value)| (key.into(), value)).collect(),
                    other => panic!("{path} is no list: {other}"),
                };
                for (name, value) in entries {
                    let mut inner = variables.clone();
                    inner.insert(item.clone(), value);
                    inner.extend(key.clone().map(|key| (key, name)));
                    write(body, values, &inner, output);
                }
            }
        }
    }
}

fn find(path: &str, values: &Value, variables: &BTreeMap<String, Value>) -> Value {
    match path.strip_prefix(".Values.") {
        Some(path) => {
            let pointer = format!("/{}", path.replace('.', "/"));
            values.pointer(&pointer).unwrap_or_else(|| panic!("values.yaml has no {path}")).clone()
        }
        None => variables.get(path).unwrap_or_else(|| panic!("{path} is not set")).clone(),
    }
}

/// Truth of a value in a template of Go.
fn is_true(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(is_true) => *is_true,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(map) => !map.is_empty(),
    }
}

#[test]
fn templates_are_evaluated_as_by_go() {
    let values = serde_json::json!({"a": {"b": "x: y"}, "list": ["p", "q"], "map": {"k": "v"}, "none": ""});
    for (template, expected) in [
        ("a: {{ toYaml .Values.a.b }}\n", "a: \"x: y\"\n"),
        ("a: {{ .Values.a.b }}", "a: x: y"),
        ("x\n  {{- if .Values.none }}\n  y\n  {{- end }}\nz\n", "x\nz\n"),
        ("x\n  {{- if .Values.list }}\n  y\n  {{- end }}\nz\n", "x\n  y\nz\n"),
        ("[\n{{- range $s := .Values.list }}\n  {{ $s }},\n{{- end }}\n]", "[\n  p,\n  q,\n]"),
        ("{{ range $i, $s := .Values.list }}{{ if $i }},{{ end }}{{ $s }}{{ end }}", "p,q"),
        ("{{- range $k, $v := .Values.map }}\n{{ toYaml $k }}: {{ $v }}{{ end }}", "\n\"k\": v"),
    ] {
        assert_eq!(evaluate(template, &values), expected, "{template}");
    }
}
