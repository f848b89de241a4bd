//! Label selectors, as Kubernetes writes them: `team=web,tier!=db,zone in (a,b),!legacy`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::limits::{
    LABEL_KEY_CHARS_MAX, LABEL_VALUE_CHARS_MAX, SELECTOR_BYTES_MAX, SELECTOR_REQUIREMENTS_MAX,
};
use crate::name::shown;
use crate::problem::{Code, Problem};

/// Example with most of the operators.
const EXAMPLE: &str = "team=web,tier!=db,zone in (a,b),!legacy";

/// Label selector: all requirements must hold. A selector without requirements matches everything.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Selector(Vec<Requirement>);

/// Requirement on one label.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Requirement {
    key: String,
    test: Test,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Test {
    Is(String),
    /// Also true if the label is missing.
    IsNot(String),
    In(Vec<String>),
    /// Also true if the label is missing.
    NotIn(Vec<String>),
    Exists,
    Missing,
}

impl Selector {
    /// True if the selector has no requirements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Keys of the labels that the selector reads.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|requirement| requirement.key.as_str())
    }

    /// Required label with its permitted values; `None` if no requirement uses `=` or `in`.
    pub fn telling(&self) -> Option<(&str, &[String])> {
        self.0.iter().find_map(|Requirement { key, test }| match test {
            Test::Is(value) => Some((key.as_str(), std::slice::from_ref(value))),
            Test::In(values) => Some((key.as_str(), values.as_slice())),
            Test::IsNot(_) | Test::NotIn(_) | Test::Exists | Test::Missing => None,
        })
    }

    /// Returns true if all labels that match this selector match the other one, too.
    ///
    /// Compares single requirements. An implication that needs two requirements together is not recognised.
    #[must_use]
    pub fn implies(&self, other: &Self) -> bool {
        let implied = |wanted: &Requirement| {
            self.0.iter().any(|own| own.key == wanted.key && own.test.implies(&wanted.test))
        };
        other.0.iter().all(implied)
    }

    /// True if the selector matches the labels, which are looked up by key.
    pub fn fits<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.0.iter().all(|requirement| requirement.test.holds(label(&requirement.key)))
    }
}

impl Test {
    /// Returns true if each value that passes this test also passes the other test.
    fn implies(&self, other: &Self) -> bool {
        match self {
            Test::Is(value) => other.holds(Some(value)),
            Test::In(values) => values.iter().all(|value| other.holds(Some(value))),
            Test::Missing => other.holds(None),
            Test::Exists => *other == Test::Exists,
            Test::IsNot(value) => other.excludes_only(std::slice::from_ref(value)),
            Test::NotIn(values) => other.excludes_only(values),
        }
    }

    /// Returns true if the test refuses only some of these values, and permits a missing label.
    fn excludes_only(&self, values: &[String]) -> bool {
        match self {
            Test::IsNot(value) => values.contains(value),
            Test::NotIn(unwanted) => unwanted.iter().all(|value| values.contains(value)),
            Test::Is(_) | Test::In(_) | Test::Exists | Test::Missing => false,
        }
    }

    fn holds(&self, value: Option<&str>) -> bool {
        match self {
            Test::Is(wanted) => value == Some(wanted),
            Test::IsNot(unwanted) => value != Some(unwanted),
            Test::In(wanted) => value.is_some_and(|value| wanted.iter().any(|one| one == value)),
            Test::NotIn(unwanted) => value.is_none_or(|value| unwanted.iter().all(|one| one != value)),
            Test::Exists => value.is_some(),
            Test::Missing => value.is_none(),
        }
    }
}

impl FromStr for Selector {
    type Err = Problem;

    fn from_str(text: &str) -> Result<Self, Problem> {
        if text.len() > SELECTOR_BYTES_MAX {
            return Err(wrong(format!("the selector is longer than {SELECTOR_BYTES_MAX} bytes")));
        }
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        let requirements: Vec<Requirement> =
            parts(text)?.into_iter().map(requirement).collect::<Result<_, _>>()?;
        if requirements.len() > SELECTOR_REQUIREMENTS_MAX {
            return Err(wrong(format!(
                "the selector has more than {SELECTOR_REQUIREMENTS_MAX} requirements"
            )));
        }
        Ok(Self(requirements))
    }
}

/// Divides at commas outside parentheses.
fn parts(text: &str) -> Result<Vec<&str>, Problem> {
    let (mut parts, mut begin, mut inside) = (Vec::new(), 0, false);
    for (at, character) in text.char_indices() {
        match character {
            '(' if inside => return Err(wrong("there is a parenthesis inside another")),
            '(' => inside = true,
            ')' if !inside => return Err(wrong("a parenthesis is closed and not opened")),
            ')' => inside = false,
            ',' if !inside => {
                parts.push(text.get(begin..at).unwrap_or_default());
                begin = at + 1;
            }
            _ => {}
        }
    }
    if inside {
        return Err(wrong("a parenthesis is not closed"));
    }
    parts.push(text.get(begin..).unwrap_or_default());
    Ok(parts)
}

fn requirement(part: &str) -> Result<Requirement, Problem> {
    let part = part.trim();
    if let Some((key, value)) = part.split_once("!=") {
        return Ok(Requirement { key: read_key(key)?, test: Test::IsNot(read_value(value)?) });
    }
    if let Some((key, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
        return Ok(Requirement { key: read_key(key)?, test: Test::Is(read_value(value)?) });
    }
    if let Some((head, list)) = part.strip_suffix(')').and_then(|part| part.split_once('(')) {
        let values = list.split(',').map(read_value).collect::<Result<Vec<_>, _>>()?;
        let mut words = head.split_whitespace();
        let test = match (words.next(), words.next(), words.next(), words.next()) {
            (Some(key), Some("in"), None, None) => (key, Test::In(values)),
            (Some(key), Some("notin"), None, None) => (key, Test::NotIn(values)),
            _ => return Err(wrong(format!("{} is not a requirement", shown(part)))),
        };
        return Ok(Requirement { key: read_key(test.0)?, test: test.1 });
    }
    match part.strip_prefix('!') {
        Some(key) => Ok(Requirement { key: read_key(key)?, test: Test::Missing }),
        None => Ok(Requirement { key: read_key(part)?, test: Test::Exists }),
    }
}

/// Refuses a label that no selector could match.
///
/// # Errors
/// `invalid-filter`, with the reason.
pub fn check_label(key: &str, value: &str) -> Result<(), Problem> {
    if key.is_empty() || key.len() > LABEL_KEY_CHARS_MAX || !key.bytes().all(is_label_byte) {
        return Err(wrong(format!("{} is not a label's key", shown(key))));
    }
    if value.len() > LABEL_VALUE_CHARS_MAX || !value.bytes().all(is_label_byte) {
        return Err(wrong(format!("{} is not a label's value that can be selected by", shown(value))));
    }
    Ok(())
}

fn is_label_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'/' | b':')
}

fn read_key(text: &str) -> Result<String, Problem> {
    let key = text.trim();
    check_label(key, "").map(|()| key.to_owned())
}

fn read_value(text: &str) -> Result<String, Problem> {
    let value = text.trim();
    check_label("key", value).map(|()| value.to_owned())
}

fn wrong(detail: impl Into<String>) -> Problem {
    Problem::new(Code::InvalidFilter, detail)
        .help(format!("Write it as Kubernetes does, for example {EXAMPLE}."))
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, Requirement { key, test }) in self.0.iter().enumerate() {
            if number > 0 {
                f.write_str(",")?;
            }
            match test {
                Test::Is(value) => write!(f, "{key}={value}")?,
                Test::IsNot(value) => write!(f, "{key}!={value}")?,
                Test::In(values) => write!(f, "{key} in ({})", values.join(","))?,
                Test::NotIn(values) => write!(f, "{key} notin ({})", values.join(","))?,
                Test::Exists => f.write_str(key)?,
                Test::Missing => write!(f, "!{key}")?,
            }
        }
        Ok(())
    }
}

impl Serialize for Selector {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Selector {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        // The selector is part of a body here, so the code for invalid queries does not apply.
        let said = |problem: Problem| format!("{}; a selector looks like {EXAMPLE}", problem.detail);
        text.parse().map_err(|problem| serde::de::Error::custom(said(problem)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(selector: &str, labels: &[(&str, &'static str)]) -> bool {
        let selector: Selector = selector.parse().unwrap();
        assert_eq!(selector.to_string().parse::<Selector>().unwrap(), selector);
        selector.fits(|key| labels.iter().find(|(name, _)| *name == key).map(|(_, value)| *value))
    }

    #[test]
    fn every_operator_of_kubernetes_is_known() {
        let labels = [("team", "web"), ("zone", "a"), ("example.com/empty", "")];
        for (selector, expected) in [
            ("", true),
            ("team=web", true),
            ("team == web , zone=a", true),
            ("team=db", false),
            ("team!=db", true),
            ("nothing!=db", true),
            ("team!=web", false),
            ("zone in (a, b)", true),
            ("zone in (b,c)", false),
            ("nothing in (a)", false),
            ("zone notin (b,c)", true),
            ("nothing notin (b)", true),
            ("zone notin (a)", false),
            ("team", true),
            ("nothing", false),
            ("!nothing", true),
            ("!team", false),
            ("example.com/empty=", true),
            ("team=web,zone=b", false),
        ] {
            assert_eq!(fits(selector, &labels), expected, "{selector}");
        }
    }

    #[test]
    fn a_selector_implies_each_selector_that_is_less_strict() {
        for (own, other, expected) in [
            ("a=x", "", true),
            ("", "a=x", false),
            ("a=x", "a=x", true),
            ("a=x", "a in (x,y)", true),
            ("a in (x,y)", "a=x", false),
            ("a in (x)", "a=x", true),
            ("a=x", "a", true),
            ("a in (x,y)", "a", true),
            ("a", "a=x", false),
            ("a=x", "a!=y", true),
            ("a=x", "a!=x", false),
            ("a!=x", "a!=x", true),
            ("a notin (x,y)", "a!=x", true),
            ("a!=x", "a notin (x,y)", false),
            ("a!=x", "a", false),
            ("a", "a!=x", false),
            ("!a", "a!=x", true),
            ("!a", "!a", true),
            ("a", "!a", false),
            ("a=x,b=y", "b=y", true),
            ("a=x", "a=x,b=y", false),
        ] {
            let [one, two] = [own, other].map(|text| text.parse::<Selector>().unwrap());
            assert_eq!(one.implies(&two), expected, "{own} implies {other}");
        }
    }

    #[test]
    fn nonsense_is_refused() {
        let long = "a".repeat(SELECTOR_BYTES_MAX + 1);
        let many = vec!["a"; SELECTOR_REQUIREMENTS_MAX + 1].join(",");
        for selector in [
            ",",
            "a,,b",
            "=x",
            "a in",
            "a in (b",
            "a in b)",
            "a in ((b))",
            "a like (b)",
            "a b",
            "a=b c",
            "!",
            &long,
            &many,
        ] {
            let problem = selector.parse::<Selector>().unwrap_err();
            assert_eq!(problem.code, Code::InvalidFilter, "{selector}");
        }
    }
}
