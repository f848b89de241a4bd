//! Field and label selectors.

use serde_json::Value;

use crate::path::parameter;

/// Selectors of one request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Select {
    /// Path of a field, its value, and true if they must be equal.
    fields: Vec<(String, String, bool)>,
    labels: Vec<Requirement>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Requirement {
    Equal(String, String),
    Different(String, String),
    Present(String),
    Absent(String),
}

/// Fields by which the server can select.
const FIELDS: [&str; 5] =
    ["metadata.name", "metadata.namespace", "spec.nodeName", "status.phase", "involvedObject.uid"];

impl Select {
    /// Selectors of a query.
    ///
    /// # Errors
    /// The part that the server doesn't support.
    pub(crate) fn of(query: &str) -> Result<Self, String> {
        let mut select = Self::default();
        for text in parts(parameter(query, "fieldSelector")) {
            let (field, value, is_equal) =
                requirement(&text).ok_or(format!("invalid field selector {text}"))?;
            if !FIELDS.contains(&field.as_str()) {
                return Err(format!("field label not supported: {field}"));
            }
            select.fields.push((field, value, is_equal));
        }
        for text in parts(parameter(query, "labelSelector")) {
            select.labels.push(match requirement(&text) {
                Some((key, value, true)) => Requirement::Equal(key, value),
                Some((key, value, false)) => Requirement::Different(key, value),
                None if text.contains(' ') => return Err(format!("unable to parse requirement {text}")),
                None => match text.strip_prefix('!') {
                    Some(key) => Requirement::Absent(key.to_owned()),
                    None => Requirement::Present(text),
                },
            });
        }
        Ok(select)
    }

    pub(crate) fn fits(&self, object: &Value) -> bool {
        let has_field = |(field, value, is_equal): &(String, String, bool)| {
            let found = object.pointer(&format!("/{}", field.replace('.', "/")));
            (found.and_then(Value::as_str).unwrap_or_default() == value) == *is_equal
        };
        let label = |key: &str| object["metadata"]["labels"].get(key).and_then(Value::as_str);
        let is_met = |requirement: &Requirement| match requirement {
            Requirement::Equal(key, value) => label(key) == Some(value),
            Requirement::Different(key, value) => label(key) != Some(value),
            Requirement::Present(key) => label(key).is_some(),
            Requirement::Absent(key) => label(key).is_none(),
        };
        self.fields.iter().all(has_field) && self.labels.iter().all(is_met)
    }
}

fn parts(text: Option<String>) -> Vec<String> {
    let text = text.unwrap_or_default();
    text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

fn requirement(text: &str) -> Option<(String, String, bool)> {
    let own =
        |(key, value): (&str, &str), is_equal| (key.trim().to_owned(), value.trim().to_owned(), is_equal);
    let different = text.split_once("!=").map(|pair| own(pair, false));
    let equal = || text.split_once("==").or_else(|| text.split_once('=')).map(|pair| own(pair, true));
    different.or_else(equal)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn selectors_choose_by_fields_and_labels() {
        let pod = json!({
            "metadata": {"name": "web-0", "labels": {"app": "web"}}, "spec": {"nodeName": "n1"},
        });
        for (query, fits) in [
            ("", true),
            ("fieldSelector=spec.nodeName%3Dn1", true),
            ("fieldSelector=spec.nodeName=n2", false),
            ("fieldSelector=spec.nodeName!=n2,metadata.name=web-0", true),
            ("labelSelector=app%3Dweb", true),
            ("labelSelector=app!=web", false),
            ("labelSelector=app,!old", true),
            ("labelSelector=!app", false),
        ] {
            assert_eq!(Select::of(query).unwrap().fits(&pod), fits, "{query}");
        }
        assert!(Select::of("fieldSelector=spec.image=x").unwrap_err().contains("spec.image"));
        assert!(Select::of("labelSelector=app in (a)").is_err());
    }
}
