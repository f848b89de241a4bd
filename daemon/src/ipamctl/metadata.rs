//! The fields that networks, subnets, pools and reservations share.

use clap::Args;
use ipam_api::resource::Labels;

/// Who reads it and how it is found.
#[derive(Debug, Default, Args)]
pub(crate) struct MetadataArguments {
    /// A sentence for people
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// A label for selecting; may be repeated
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = parse_pair)]
    labels: Vec<(String, String)>,
    /// An annotation for other programs; may be repeated
    #[arg(long = "annotation", value_name = "KEY=VALUE", value_parser = parse_pair)]
    annotations: Vec<(String, String)>,
    /// Who keeps it in another place; empty for nobody
    #[arg(long, value_name = "WHO")]
    managed_by: Option<String>,
}

/// The same for what exists already.
#[derive(Debug, Default, Args)]
pub(crate) struct MetadataChanges {
    #[command(flatten)]
    set: MetadataArguments,
    /// A label to take away; may be repeated
    #[arg(long = "remove-label", value_name = "KEY")]
    remove_labels: Vec<String>,
    /// An annotation to take away; may be repeated
    #[arg(long = "remove-annotation", value_name = "KEY")]
    remove_annotations: Vec<String>,
}

/// The fields in a resource.
pub(crate) struct MetadataFields<'a> {
    pub(crate) description: &'a mut String,
    pub(crate) labels: &'a mut Labels,
    pub(crate) annotations: &'a mut Labels,
    pub(crate) managed_by: &'a mut Option<String>,
}

/// Borrows the shared fields of any resource that has them.
macro_rules! metadata_fields {
    ($intention:expr) => {
        $crate::metadata::MetadataFields {
            description: &mut $intention.description,
            labels: &mut $intention.labels,
            annotations: &mut $intention.annotations,
            managed_by: &mut $intention.managed_by,
        }
    };
}
pub(crate) use metadata_fields;

impl MetadataArguments {
    /// Writes what was said into the fields.
    pub(crate) fn apply(&self, fields: MetadataFields<'_>) {
        if let Some(description) = &self.description {
            fields.description.clone_from(description);
        }
        fields.labels.extend(self.labels.iter().cloned());
        fields.annotations.extend(self.annotations.iter().cloned());
        if let Some(who) = &self.managed_by {
            *fields.managed_by = Some(who.clone()).filter(|who| !who.is_empty());
        }
    }
}

impl MetadataChanges {
    /// Writes what was said into the fields.
    pub(crate) fn apply(&self, fields: MetadataFields<'_>) {
        fields.labels.retain(|key, _| !self.remove_labels.contains(key));
        fields.annotations.retain(|key, _| !self.remove_annotations.contains(key));
        self.set.apply(fields);
    }
}

/// Reads `key=value`.
fn parse_pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err(format!("{} is not of the form key=value", ipam_api::name::shown(text))),
    }
}
