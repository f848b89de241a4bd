//! `-o jsonpath=…`: single values out of an answer, for scripts.
//!
//! The paths follow RFC 9535. The template around them follows kubectl: braces, literal text, and
//! `{range …}…{end}`.

use std::str::FromStr;

use serde_json::Value;
use serde_json_path::JsonPath;

/// Text with paths in it.
#[derive(Debug, Clone)]
pub(crate) struct Template(Vec<Piece>);

#[derive(Debug, Clone)]
enum Piece {
    Text(String),
    Path(JsonPath),
    /// Pieces that are repeated for each value of a path.
    Range(JsonPath, Vec<Piece>),
}

impl FromStr for Template {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("a path is missing, as in jsonpath={.items[*].name}".to_owned());
        }
        if !text.contains('{') {
            return Ok(Self(vec![Piece::Path(path(text)?)]));
        }
        let mut rest = text;
        let pieces = pieces(&mut rest, false)?;
        Ok(Self(pieces))
    }
}

/// Reads pieces until the text ends, or `{end}` where that is expected.
fn pieces(rest: &mut &str, inside: bool) -> Result<Vec<Piece>, String> {
    let mut found = Vec::new();
    while let Some((before, behind)) = rest.split_once('{') {
        if !before.is_empty() {
            found.push(Piece::Text(before.to_owned()));
        }
        let (word, behind) = braced(behind)?;
        *rest = behind;
        let word = word.trim();
        if word == "end" {
            return if inside { Ok(found) } else { Err("{end} without {range …}".to_owned()) };
        }
        found.push(if let Some(of) = word.strip_prefix("range ") {
            Piece::Range(path(of)?, pieces(rest, true)?)
        } else if word.starts_with('"') {
            Piece::Text(serde_json::from_str(word).map_err(|_| format!("{word} is not a text in quotes"))?)
        } else {
            Piece::Path(path(word)?)
        });
    }
    if inside {
        return Err("{range …} without {end}".to_owned());
    }
    if !rest.is_empty() {
        found.push(Piece::Text((*rest).to_owned()));
    }
    Ok(found)
}

/// Splits a text at the closing brace. A brace in quotes doesn't close.
fn braced(text: &str) -> Result<(&str, &str), String> {
    let mut quote = None;
    for (index, c) in text.char_indices() {
        match quote {
            Some(open) if open == c => quote = None,
            Some(_) => {}
            None if c == '"' || c == '\'' => quote = Some(c),
            None if c == '}' => {
                let (word, behind) = text.split_at(index);
                return Ok((word, behind.get(1..).unwrap_or_default()));
            }
            None => {}
        }
    }
    Err(format!("the brace before {text} isn't closed"))
}

/// Reads a path; kubectl leaves out the `$`.
fn path(text: &str) -> Result<JsonPath, String> {
    let text = text.trim();
    let whole = if text.starts_with('$') {
        text.to_owned()
    } else if let Some(behind) = text.strip_prefix('@') {
        format!("${behind}")
    } else if text == "." {
        "$".to_owned()
    } else if text.starts_with('.') || text.starts_with('[') {
        format!("${text}")
    } else {
        format!("$.{text}")
    };
    JsonPath::parse(&whole).map_err(|error| format!("{text}: {error}"))
}

impl Template {
    /// The text for an answer. Several values of one path have a space between them.
    pub(crate) fn render(&self, value: &Value) -> String {
        let mut text = String::new();
        render(&self.0, value, &mut text);
        text
    }
}

fn render(pieces: &[Piece], value: &Value, text: &mut String) {
    for piece in pieces {
        match piece {
            Piece::Text(literal) => text.push_str(literal),
            Piece::Path(path) => {
                let found: Vec<String> = path.query(value).iter().map(|found| plain(found)).collect();
                text.push_str(&found.join(" "));
            }
            Piece::Range(path, inner) => {
                for found in path.query(value).iter() {
                    render(inner, found, text);
                }
            }
        }
    }
}

/// A value without the quotes of a text.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_followed() {
        let list = serde_json::json!({"items": [
            {"name": "web", "ranges": ["10.0.0.1", "10.0.0.9"], "free": 6},
            {"name": "lab", "ranges": [], "free": 0}
        ], "revision": 7});
        for (template, expected) in [
            ("{.revision}", "7"),
            (".revision", "7"),
            ("revision", "7"),
            ("{.items[*].name}", "web lab"),
            ("{.items[0].ranges[1]}", "10.0.0.9"),
            ("{.items[?@.free > 0].name}", "web"),
            ("{.items[1].ranges}", "[]"),
            ("at {$.revision}: {.items[0]['name']}", "at 7: web"),
            (r#"{range .items[*]}{.name}{"\t"}{.free}{"\n"}{end}"#, "web\t6\nlab\t0\n"),
            ("{.nothing}", ""),
        ] {
            assert_eq!(template.parse::<Template>().unwrap().render(&list), expected, "{template}");
        }
    }

    #[test]
    fn a_malformed_path_is_refused() {
        for bad in ["", "{.a", "{.a[}", "{end}", "{range .a}{.b}", "{\"a}", "{}"] {
            assert!(bad.parse::<Template>().is_err(), "{bad}");
        }
    }
}
