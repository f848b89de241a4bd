//! Output of single objects in the requested format.

use ipam_api::client::Answer;
use ipam_api::{Code, Problem};
use serde_json::json;

use crate::client::session::Session;
use crate::output::data::Data;
use crate::output::error::Failure;
use crate::output::format::Format;
use crate::output::table::Table;
use crate::output::{csv, yaml};

impl Session {
    /// Shows one object: its data, its name, or its text for people.
    pub(crate) fn show(
        &self,
        json: &[u8],
        name: &str,
        text: impl FnOnce() -> Result<String, Failure>,
    ) -> Result<(), Failure> {
        if self.data(json)? {
            return Ok(());
        }
        if matches!(self.format, Format::Name) { self.print(name) } else { self.print(&text()?) }
    }

    /// Shows data that is a table for people.
    pub(crate) fn show_table(
        &self,
        json: &[u8],
        name: &str,
        table: impl FnOnce() -> Table,
    ) -> Result<(), Failure> {
        self.show(json, name, || Ok(table().render(self.headers, self.environment.width)))
    }

    /// Reports a completed change: a sentence for people, the server's data or the name for scripts.
    pub(crate) fn done(&self, answer: &Answer, name: &str, sentence: &str) -> Result<(), Failure> {
        if self.format.is_for_people() {
            let tried = if self.writing.dry_run { "   (a dry run: nothing was changed)" } else { "" };
            self.say(&format!("{sentence}{tried}"));
            return Ok(());
        }
        // A deletion may have an empty answer, but readers of documents expect one.
        let document = if answer.body.is_empty() { self.removed(answer, name) } else { answer.body.clone() };
        if self.data(&document)? {
            return Ok(());
        }
        if matches!(self.format, Format::Name) { self.print(name) } else { Ok(()) }
    }

    /// Document that reports a deletion.
    fn removed(&self, answer: &Answer, name: &str) -> Vec<u8> {
        let mut document = json!({"name": name, "deleted": !self.writing.dry_run});
        if let (Some(revision), Some(fields)) = (answer.revision, document.as_object_mut()) {
            fields.insert("revision".to_owned(), revision.into());
        }
        document.to_string().into_bytes()
    }

    /// Writes JSON in the requested data format. Returns false if the output is text or names.
    pub(crate) fn data(&self, json: &[u8]) -> Result<bool, Failure> {
        match &self.format {
            Format::Table | Format::Wide | Format::Name | Format::Host(_) => return Ok(false),
            Format::Json => self.print_bytes(json)?,
            Format::Yaml => {
                let data = Data::of(json).map_err(|error| no_data(error.to_string()))?;
                self.print(&yaml::text(&data).map_err(no_data)?)?;
            }
            Format::Csv => {
                let data = Data::of(json).map_err(|error| no_data(error.to_string()))?;
                let items = match data.get("items") {
                    Some(Data::List(items)) => items.clone(),
                    _ => vec![data],
                };
                let rows = csv::text(&items, &self.reading.fields, self.headers).map_err(no_data)?;
                self.print_bytes(&rows)?;
            }
            Format::JsonPath(template) => {
                let value = serde_json::from_slice(json).map_err(|error| no_data(error.to_string()))?;
                self.print(&template.render(&value))?;
            }
        }
        Ok(true)
    }
}

fn no_data(why: String) -> Failure {
    Problem::new(Code::Unreachable, format!("the server's answer can't be shown: {why}"))
        .help("Look at it with -o json.")
        .into()
}
