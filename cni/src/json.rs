//! Tolerant reading of JSON: unknown keys are ignored, malformed known ones reported with their path.

use ipam_api::name::shown;
use serde_json::{Map, Value};

use crate::fail::{self, Failure};

/// Reads a document that is one object.
///
/// # Errors
/// Code 6.
pub fn parse(bytes: &[u8]) -> Result<Map<String, Value>, Failure> {
    const MSG: &str = "the network configuration can't be read";
    match serde_json::from_slice(bytes) {
        Ok(Value::Object(document)) => Ok(document),
        Ok(_) => Err(Failure::new(fail::DECODE, MSG, "it must be a JSON object")),
        Err(_) if bytes.trim_ascii().is_empty() => Err(Failure::new(fail::DECODE, MSG, "it is empty")),
        Err(error) => Err(Failure::new(fail::DECODE, MSG, error.to_string())),
    }
}

/// Object somewhere in a configuration. A missing object has no members.
#[derive(Debug, Clone)]
pub struct Section<'a> {
    path: String,
    members: Option<&'a Map<String, Value>>,
}

impl<'a> Section<'a> {
    #[must_use]
    pub fn whole(document: &'a Map<String, Value>) -> Self {
        Self { path: String::new(), members: Some(document) }
    }

    /// Returns a member by name; `None` also for `null`.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&'a Value> {
        self.members?.get(key).filter(|value| !value.is_null())
    }

    /// Names of the members.
    pub fn keys(&self) -> impl Iterator<Item = &'a str> {
        self.members.into_iter().flat_map(|members| members.keys().map(String::as_str))
    }

    /// True if the section exists.
    #[must_use]
    pub fn exists(&self) -> bool {
        self.members.is_some()
    }

    /// Path of a key in messages.
    #[must_use]
    pub fn path(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// Nested object.
    ///
    /// # Errors
    /// Code 7 if it is not an object.
    pub fn section(&self, key: &str) -> Result<Section<'a>, Failure> {
        let members = match self.get(key) {
            None => None,
            Some(Value::Object(members)) => Some(members),
            Some(_) => return Err(self.wrong(key, "must be an object")),
        };
        Ok(Section { path: self.path(key), members })
    }

    /// A list of objects.
    ///
    /// # Errors
    /// Code 7 if it is not a list of objects.
    pub fn sections(&self, key: &str) -> Result<Vec<Section<'a>>, Failure> {
        let wrong = || self.wrong(key, "must be a list of objects");
        let items = match self.get(key) {
            None => return Ok(Vec::new()),
            Some(Value::Array(items)) => items.iter().enumerate(),
            Some(_) => return Err(wrong()),
        };
        let section = |(i, item): (usize, &'a Value)| match item {
            Value::Object(members) => {
                Ok(Section { path: format!("{}[{i}]", self.path(key)), members: Some(members) })
            }
            _ => Err(wrong()),
        };
        items.map(section).collect()
    }

    /// Text of a member. An empty text counts as absent, since templates produce it.
    ///
    /// # Errors
    /// Code 7 if it is not text.
    pub fn text(&self, key: &str) -> Result<Option<&'a str>, Failure> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.as_str()).filter(|text| !text.is_empty())),
            Some(_) => Err(self.wrong(key, "must be a text")),
        }
    }

    /// Text of the first key that is present.
    ///
    /// # Errors
    /// Code 7 if a value is not text.
    pub fn first(&self, keys: [&str; 2]) -> Result<Option<&'a str>, Failure> {
        for key in keys {
            if let Some(text) = self.text(key)? {
                return Ok(Some(text));
            }
        }
        Ok(None)
    }

    /// Boolean.
    ///
    /// # Errors
    /// Code 7 if it is not a boolean.
    pub fn boolean(&self, key: &str) -> Result<Option<bool>, Failure> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::Bool(said)) => Ok(Some(*said)),
            Some(_) => Err(self.wrong(key, "must be true or false")),
        }
    }

    /// List of texts, or a single one.
    ///
    /// # Errors
    /// Code 7 if it is neither.
    pub fn texts(&self, key: &str) -> Result<Vec<&'a str>, Failure> {
        let wrong = || self.wrong(key, "must be a list of texts");
        let texts: Vec<&str> = match self.get(key) {
            None => Vec::new(),
            Some(Value::String(text)) => vec![text],
            Some(Value::Array(items)) => {
                items.iter().map(|item| item.as_str().ok_or_else(wrong)).collect::<Result<_, _>>()?
            }
            Some(_) => return Err(wrong()),
        };
        Ok(texts.into_iter().filter(|text| !text.is_empty()).collect())
    }

    /// Failure about the first key that is present.
    #[must_use]
    pub fn wrong_in(&self, keys: [&str; 2], why: &str) -> Failure {
        let [key, other] = keys;
        let key = if self.get(key).is_some() { key } else { other };
        Failure::configuration(format!("{}: {why}", self.path(key)))
    }

    /// Failure about a member.
    #[must_use]
    pub fn wrong(&self, key: &str, why: &str) -> Failure {
        let value = self.get(key).map(|value| shown(&value.to_string())).unwrap_or_default();
        Failure::configuration(format!("{} {why}, not {value}", self.path(key)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_text_is_a_list_of_one() {
        let document = parse(br#"{"a":"x","b":["x","","y"],"c":null,"d":7,"e":{"f":[1]}}"#).unwrap();
        let whole = Section::whole(&document);
        assert_eq!(whole.texts("a").unwrap(), ["x"]);
        assert_eq!(whole.texts("b").unwrap(), ["x", "y"]);
        assert!(whole.texts("c").unwrap().is_empty());
        assert!(whole.texts("d").unwrap_err().details.starts_with("d must be a list"));
        let failure = whole.section("e").unwrap().texts("f").unwrap_err();
        assert!(failure.details.starts_with("e.f must be a list"), "{}", failure.details);
    }
}
