//! The fields that networks, subnets, pools and reservations share.

use clap::Args;
use ipam_api::resource::Labels;

use crate::client::resource_type::ResourceType;
use crate::output::error::Failure;

/// Metadata of a new resource.
#[derive(Debug, Default, Args)]
pub(crate) struct MetadataArguments {
    /// Description
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// Label; may be repeated
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = parse_set)]
    labels: Vec<Edit>,
    /// Annotation; may be repeated
    #[arg(long = "annotation", value_name = "KEY=VALUE", value_parser = parse_set)]
    annotations: Vec<Edit>,
    /// Manager that owns the resource; empty for none
    #[arg(long, value_name = "MANAGER")]
    managed_by: Option<String>,
}

/// The same for what exists already.
#[derive(Debug, Default, Args)]
pub(crate) struct MetadataChanges {
    /// Description
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// Label to set, or KEY- to remove; may be repeated
    #[arg(long = "label", value_name = "KEY=VALUE|KEY-", value_parser = parse_edit)]
    labels: Vec<Edit>,
    /// Annotation to set, or KEY- to remove; may be repeated
    #[arg(long = "annotation", value_name = "KEY=VALUE|KEY-", value_parser = parse_edit)]
    annotations: Vec<Edit>,
    /// Manager that owns the resource; empty for none
    #[arg(long, value_name = "MANAGER")]
    managed_by: Option<String>,
}

/// Change of a label or an annotation.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Edit {
    /// Sets the key to this value.
    Set(String, String),
    /// Removes the key.
    Remove(String),
}

impl MetadataArguments {
    /// Writes the specified metadata into a resource.
    pub(crate) fn apply(&self, resource_type: &mut impl ResourceType) -> Result<(), Failure> {
        write(resource_type, (&self.description, &self.managed_by), (&self.labels, &self.annotations))
    }
}

impl MetadataChanges {
    /// Writes the specified metadata into a resource.
    pub(crate) fn apply(&self, resource_type: &mut impl ResourceType) -> Result<(), Failure> {
        write(resource_type, (&self.description, &self.managed_by), (&self.labels, &self.annotations))
    }
}

fn write(
    resource_type: &mut impl ResourceType,
    (description, managed_by): (&Option<String>, &Option<String>),
    (labels, annotations): (&[Edit], &[Edit]),
) -> Result<(), Failure> {
    let fields = resource_type.metadata_mut();
    if let Some(description) = description {
        fields.description.clone_from(description);
    }
    if let Some(manager) = managed_by {
        *fields.managed_by = Some(manager.clone()).filter(|manager| !manager.is_empty());
    }
    edit(fields.labels, "--label", labels)?;
    edit(fields.annotations, "--annotation", annotations)
}

impl Edit {
    fn key(&self) -> &str {
        match self {
            Edit::Set(key, _) | Edit::Remove(key) => key,
        }
    }
}

/// Formats an edit as on the command line.
impl std::fmt::Display for Edit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Edit::Set(key, value) => write!(f, "{key}={value}"),
            Edit::Remove(key) => write!(f, "{key}-"),
        }
    }
}

/// Applies edits to labels. Refuses two edits of one key, because their order is ambiguous.
fn edit(labels: &mut Labels, flag: &str, edits: &[Edit]) -> Result<(), Failure> {
    for (number, one) in edits.iter().enumerate() {
        let mut before = edits.iter().take(number);
        if let Some(other) = before.find(|other| other.key() == one.key() && *other != one) {
            return Err(contradiction(&format!("{flag} {other}"), &format!("{flag} {one}")));
        }
    }
    for edit in edits {
        match edit {
            Edit::Set(key, value) => labels.insert(key.clone(), value.clone()),
            Edit::Remove(key) => labels.remove(key),
        };
    }
    Ok(())
}

/// Failure for two contradictory flags.
pub(crate) fn contradiction(one: &str, other: &str) -> Failure {
    Failure::usage(
        format!("{one} and {other} contradict each other"),
        "Nothing was changed. Use one of them, or separate commands.",
    )
}

/// Refuses a flag that adds what another flag removes; `meet` compares two of their values.
pub(crate) fn check_apart<Added: std::fmt::Display, Gone: std::fmt::Display>(
    (add, added): (&str, &[Added]),
    (remove, gone): (&str, &[Gone]),
    meet: impl Fn(&Added, &Gone) -> bool,
) -> Result<(), Failure> {
    for one in added {
        if let Some(other) = gone.iter().find(|other| meet(one, other)) {
            return Err(contradiction(&format!("{add} {one}"), &format!("{remove} {other}")));
        }
    }
    Ok(())
}

/// Reads `key=value`.
pub(crate) fn parse_pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err(format!("{} is not of the form key=value", ipam_api::name::shown(text))),
    }
}

fn parse_set(text: &str) -> Result<Edit, String> {
    parse_pair(text).map(|(key, value)| Edit::Set(key, value))
}

/// Reads `key=value`, or `key-`.
fn parse_edit(text: &str) -> Result<Edit, String> {
    match text.strip_suffix('-') {
        Some(key) if !key.is_empty() && !key.contains('=') => Ok(Edit::Remove(key.to_owned())),
        _ => parse_set(text)
            .map_err(|_| format!("{} is neither key=value nor key-", ipam_api::name::shown(text))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minus_takes_away() {
        assert_eq!(parse_edit("old-").unwrap(), Edit::Remove("old".to_owned()));
        assert_eq!(parse_edit("a=b-").unwrap(), Edit::Set("a".to_owned(), "b-".to_owned()));
        assert_eq!(parse_edit("a=").unwrap(), Edit::Set("a".to_owned(), String::new()));
        for bad in ["", "-", "a", "=b"] {
            assert!(parse_edit(bad).is_err(), "{bad}");
        }
        let mut labels = Labels::from([("old".to_owned(), "x".to_owned())]);
        edit(
            &mut labels,
            "--label",
            &[Edit::Remove("old".to_owned()), Edit::Set("a".to_owned(), "b".to_owned())],
        )
        .unwrap();
        assert_eq!(labels, Labels::from([("a".to_owned(), "b".to_owned())]));
    }
}
