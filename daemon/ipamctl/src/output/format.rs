//! Output formats.

use std::str::FromStr;

use ipam_api::render;

use super::jsonpath::Template;

/// Format of data.
#[derive(Debug, Clone)]
pub(crate) enum Format {
    /// Columns for people.
    Table,
    /// More columns.
    Wide,
    /// The API's JSON; lists are `{"items": …}`.
    Json,
    /// The API's JSON as YAML.
    Yaml,
    /// One name per line.
    Name,
    /// One row per item, one column per field.
    Csv,
    /// Values at JSONPath expressions.
    JsonPath(Template),
    /// Configuration files of a network manager, which `endpoint show` renders.
    Host(render::Format),
}

impl Format {
    /// True for formats that people read.
    pub(crate) fn is_for_people(&self) -> bool {
        matches!(self, Format::Table | Format::Wide)
    }

    /// True if there is room for more columns.
    pub(crate) fn is_wide(&self) -> bool {
        matches!(self, Format::Wide)
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(template) = text.strip_prefix("jsonpath=") {
            return template.parse().map(Format::JsonPath);
        }
        Ok(match text {
            "table" => Format::Table,
            "wide" => Format::Wide,
            "json" => Format::Json,
            "yaml" => Format::Yaml,
            "name" => Format::Name,
            "csv" => Format::Csv,
            _ => match text.parse() {
                Ok(host) => Format::Host(host),
                Err(_) => return Err(unknown()),
            },
        })
    }
}

fn unknown() -> String {
    let hosts = render::Format::ALL.map(render::Format::as_str).join(", ");
    format!(
        "the formats are table, wide, json, yaml, name, csv and jsonpath={{…}}; endpoint show also has \
         {hosts}"
    )
}
