//! YAML of an object, with template actions at the places of holes.
//!
//! A string of the object is a hole as a whole or contains holes; a key is a hole if its lines replace a part
//! of the map.

use std::fmt::Write as _;

use serde_json::{Map, Value};

/// Characters around the number of a hole. No manifest contains them.
const OPEN: char = '\u{e000}';
const CLOSE: char = '\u{e001}';

/// Template actions, by the numbers of their holes.
#[derive(Debug, Default)]
pub(crate) struct Holes(Vec<String>);

impl Holes {
    /// Adds an action, or lines of actions; returns the text of its hole.
    pub(crate) fn add(&mut self, action: impl Into<String>) -> String {
        self.0.push(action.into());
        format!("{OPEN}{}{CLOSE}", self.0.len() - 1)
    }

    /// YAML of an object.
    pub(crate) fn write(&self, value: &Value) -> String {
        let mut text = String::new();
        self.block(value, 0, &mut text);
        text
    }

    fn block(&self, value: &Value, indent: usize, text: &mut String) {
        match value {
            Value::Object(map) if !map.is_empty() => self.map(map, indent, text),
            Value::Array(items) if !items.is_empty() => {
                for item in items {
                    let mut nested = String::new();
                    self.block(item, indent + 2, &mut nested);
                    // The first line of an item begins behind its dash.
                    let _ = writeln!(text, "{:indent$}- {}", "", nested.trim());
                }
            }
            scalar => {
                let _ = writeln!(text, "{:indent$}{}", "", self.scalar(scalar, indent));
            }
        }
    }

    fn map(&self, map: &Map<String, Value>, indent: usize, text: &mut String) {
        for (key, value) in map {
            if key.starts_with(OPEN) {
                for line in self.fill(key).lines() {
                    let _ = writeln!(text, "{:indent$}{line}", "");
                }
                continue;
            }
            let key = plain_or_quoted(key);
            match value {
                Value::Object(nested) if !nested.is_empty() => {
                    let _ = writeln!(text, "{:indent$}{key}:", "");
                    self.map(nested, indent + 2, text);
                }
                Value::Array(items) if !items.is_empty() => {
                    let _ = writeln!(text, "{:indent$}{key}:", "");
                    self.block(value, indent, text);
                }
                scalar => {
                    let _ = writeln!(text, "{:indent$}{key}: {}", "", self.scalar(scalar, indent + 2));
                }
            }
        }
    }

    fn scalar(&self, value: &Value, indent: usize) -> String {
        match value {
            Value::String(string) if is_hole(string) => self.fill(string),
            Value::String(string) if string.contains('\n') => {
                let mut block = String::from(if string.ends_with('\n') { "|" } else { "|-" });
                for line in self.fill(string).lines() {
                    block.push('\n');
                    if !line.is_empty() {
                        let _ = write!(block, "{:indent$}{line}", "");
                    }
                }
                block
            }
            Value::String(string) => self.fill(&plain_or_quoted(string)),
            other => other.to_string(),
        }
    }

    /// Replaces holes by their actions.
    fn fill(&self, text: &str) -> String {
        let mut filled = text.to_owned();
        for (number, action) in self.0.iter().enumerate() {
            filled = filled.replace(&format!("{OPEN}{number}{CLOSE}"), action);
        }
        filled
    }
}

fn is_hole(text: &str) -> bool {
    text.starts_with(OPEN) && text.find(CLOSE).is_some_and(|at| at + CLOSE.len_utf8() == text.len())
}

/// A string as YAML: plain if every reader parses it as a string, otherwise quoted as in JSON.
fn plain_or_quoted(text: &str) -> String {
    let is_plain = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c))
        && !["true", "false", "yes", "no", "on", "off", "null", "y", "n"].contains(&&*text.to_lowercase());
    // Other characters of a hole are replaced within the quotes.
    if is_plain { text.to_owned() } else { Value::from(text).to_string() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_without_holes_is_read_back() {
        let object = json!({
            "a": {"b": [1, "1", "true", "10%", "*/5 * * * *", {"c": {"d": null}, "e": []}, [], {}]},
            "text": "one\n\n  two: 3\nfour\n",
            "k/1": false, "empty": "", "": "x",
        });
        let text = Holes::default().write(&object);
        let again: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
        assert_eq!(again, [object], "{text}");
    }

    #[test]
    fn holes_have_their_actions() {
        let mut holes = Holes::default();
        let object = json!({
            "whole": holes.add("{{ toYaml .Values.a }}"),
            "part": format!("x-{}", holes.add("{{ .Values.b }}")),
            holes.add("{{- if .Values.c }}\nc: 1\n{{- end }}"): null,
        });
        let text = holes.write(&json!({"at": object}));
        let expected = "at:\n  part: \"x-{{ .Values.b }}\"\n  whole: {{ toYaml .Values.a }}\n  \
                        {{- if .Values.c }}\n  c: 1\n  {{- end }}\n";
        assert_eq!(text, expected);
    }
}
