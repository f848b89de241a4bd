//! Arguments that several commands have.

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use ipam_api::Name;
use serde::de::DeserializeOwned;

/// A resource by its name.
#[derive(Debug, Args)]
pub(crate) struct Named {
    /// Name
    pub(crate) name: Name,
}

/// A resource of a realm by its name.
#[derive(Debug, Args)]
pub(crate) struct NamedInRealm {
    /// Name, or realm/name
    pub(crate) name: String,
}

/// An allocation or a prefix by its number.
#[derive(Debug, Args)]
pub(crate) struct Numbered {
    /// ID
    pub(crate) id: u64,
}

/// A resource and all that is said of it.
#[derive(Debug, Args)]
pub(crate) struct Described<Name: Args, Metadata: Args> {
    #[command(flatten)]
    pub(crate) named: Name,
    #[command(flatten)]
    pub(crate) metadata: Metadata,
}

/// Parser for an API value that is one of these words. Help and completions list them.
pub(crate) fn one_of<Value, const N: usize>(words: [&'static str; N]) -> impl TypedValueParser<Value = Value>
where
    Value: DeserializeOwned + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(words).try_map(|word| serde_json::from_value::<Value>(word.into()))
}

/// Writes an optional field: another value, or none.
pub(crate) fn replace<Value>(field: &mut Option<Value>, value: Option<Value>, none: bool) {
    if value.is_some() || none {
        *field = value;
    }
}

/// Replaces a list, unless its flag was not specified.
pub(crate) fn replace_list<Item: Clone>(field: &mut Vec<Item>, said: &[Item]) {
    if !said.is_empty() {
        *field = said.to_vec();
    }
}
