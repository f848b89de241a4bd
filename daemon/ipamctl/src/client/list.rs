//! Reads lists page by page up to a limit, and shows them in any format.

use std::fmt::Display;

use ipam_api::client::with_query;
use ipam_api::limits::PAGE_ITEMS_MAX;
use ipam_api::time::Timestamp;
use ipam_api::{Code, Problem};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::client::requests::with_all;
use crate::client::session::Session;
use crate::output::data::Data;
use crate::output::error::Failure;
use crate::output::format::Format;
use crate::output::table::Table;
use crate::output::{json, text};

/// Result of reading a list.
pub(crate) struct ListResult<Item> {
    /// Items that the filter accepted.
    pub(crate) items: Vec<Item>,
    /// Revision of the last page.
    pub(crate) revision: u64,
    /// Items as JSON: the server's response itself if one page sufficed and no item was omitted.
    pub(crate) json: Vec<u8>,
    /// True if the servers have further items.
    pub(crate) more: bool,
}

/// A list to show.
pub(crate) struct Listing<Item: 'static> {
    /// Singular and plural of the resource; the plural is also the path segment in the API.
    pub(crate) words: (&'static str, &'static str),
    /// Fields and the values that they must have.
    pub(crate) filters: Vec<(&'static str, String)>,
    /// Name of an item.
    pub(crate) name: fn(&Item) -> String,
    /// Renders the table; the flag requests the additional columns of `wide`.
    pub(crate) table: fn(&[Item], bool, Timestamp) -> Table,
}

/// One page, with each item as the unparsed JSON of the server.
#[derive(Deserialize)]
struct RawPage {
    items: Vec<Box<RawValue>>,
    revision: u64,
    #[serde(default)]
    next: Option<String>,
}

impl Session {
    /// Shows a list in the requested format, with the items that `keep` accepts.
    pub(crate) async fn show_list<Item: DeserializeOwned>(
        &self,
        listing: Listing<Item>,
        keep: impl Fn(&Item) -> bool,
    ) -> Result<(), Failure> {
        let fields = &self.reading.fields;
        if !fields.is_empty() && !matches!(self.format, Format::Name) {
            return self.show_fields(&listing).await;
        }
        let path = self.narrowed_path(&listing);
        let result = self.list(&path, self.wanted(), keep).await?;
        let names: Vec<String> = result.items.iter().map(listing.name).collect();
        let table = || (listing.table)(&result.items, self.format.is_wide(), self.now());
        self.show_table(&result.json, &names.join("\n"), table)?;
        self.say_footer(&result, listing.words);
        Ok(())
    }

    /// Shows selected fields of a list. Only the servers filter, because the items may lack the filter's
    /// fields.
    async fn show_fields<Item>(&self, listing: &Listing<Item>) -> Result<(), Failure> {
        let fields = &self.reading.fields;
        let path = with_query(&self.narrowed_path(listing), "fields", &fields.join(","));
        let result: ListResult<Data> = self.list(&path, self.wanted(), |_| true).await?;
        self.show_table(&result.json, "", || columns(&result.items, fields))?;
        self.say_footer(&result, listing.words);
        Ok(())
    }

    /// Path of a list with its sort order, label selector and filters.
    fn narrowed_path<Item>(&self, listing: &Listing<Item>) -> String {
        let labels = self.reading.selector.as_ref().map(ToString::to_string);
        let sort = self.reading.sort_by.as_deref().map(|order| sort_fields(listing.words.1, order));
        let own = [("labels", labels), ("sort", sort)];
        let filters = listing.filters.iter().map(|(field, value)| (*field, Some(value.clone())));
        with_all(&format!("/v1/{}", listing.words.1), own.into_iter().chain(filters))
    }

    /// Maximum number of items; `None` for all. A table on a terminal is limited to `PAGE_ITEMS_MAX` items by
    /// default; any other output is unlimited.
    fn wanted(&self) -> Option<usize> {
        let table = self.environment.terminal && self.format.is_for_people() && !self.reading.all;
        let limit = self.reading.limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX));
        limit.or(if table { Some(PAGE_ITEMS_MAX) } else { None })
    }

    /// Reads pages until `keep` has accepted `wanted` items, or all pages without a limit.
    pub(crate) async fn list<Item: DeserializeOwned>(
        &self,
        path: &str,
        wanted: Option<usize>,
        keep: impl Fn(&Item) -> bool,
    ) -> Result<ListResult<Item>, Failure> {
        let limit = wanted.unwrap_or(PAGE_ITEMS_MAX).min(PAGE_ITEMS_MAX);
        let first = with_query(path, "limit", &limit.to_string());
        let mut query = first.clone();
        let (mut items, mut kept, mut whole) = (Vec::new(), Vec::new(), true);
        loop {
            let answer = self.read(&query).await?;
            let page: RawPage = answer.read()?;
            let mut full = false;
            for raw in page.items {
                full = wanted.is_some_and(|wanted| items.len() >= wanted);
                if full {
                    whole = false;
                    break;
                }
                let item: Item = serde_json::from_str(raw.get()).map_err(unreadable)?;
                if keep(&item) {
                    items.push(item);
                    kept.push(raw);
                } else {
                    whole = false;
                }
            }
            let enough = full || wanted.is_some_and(|wanted| items.len() >= wanted);
            match page.next {
                Some(cursor) if !enough => query = with_query(&first, "cursor", &cursor),
                next => {
                    let more = full || next.is_some();
                    let json = if whole && query == first {
                        answer.body
                    } else {
                        json::joined(&kept, page.revision)
                    };
                    return Ok(ListResult { items, revision: page.revision, json, more });
                }
            }
        }
    }

    fn say_footer<Item>(&self, result: &ListResult<Item>, (one, many): (&str, &str)) {
        let footer = text::footer(result.items.len(), one, many, result.revision);
        match result.more {
            true => self.tell(&format!("the first {footer} · there are more: --all")),
            false => self.tell(&footer),
        }
    }
}

/// Columns of tables with a title other than the name of their field: collection, column, field.
const COLUMNS: &[(&str, &str, &str)] = &[
    ("networks", "held", "allocated"),
    ("subnets", "held", "allocated"),
    ("pools", "held", "allocated"),
    ("pools", "condition", "ready"),
    ("pools", "cooling", "cooling_ms"),
    ("nodes", "agent", "agent_version"),
    ("nodes", "boot", "boot_id"),
    ("endpoints", "endpoint", "realm,namespace,kind,name"),
    ("allocations", "holder", "endpoint"),
    ("allocations", "age", "-created_at"),
    ("allocations", "by", "created_by"),
    ("prefixes", "owner", "path"),
    ("prefixes", "below", "children"),
    ("prefixes", "ends_in", "ends_in_ms"),
    ("prefixes", "age", "-created_at"),
    ("prefixes", "by", "created_by"),
    ("tokens", "expires", "expires_at"),
    ("tokens", "created", "-created_at"),
    ("tokens", "by", "created_by"),
];

/// Converts a sort order, by column titles or fields, to fields of the API.
fn sort_fields(plural: &str, order: &str) -> String {
    let field = |word: &str| {
        let (word, backwards) = word.strip_prefix('-').map_or((word, false), |word| (word, true));
        let column = word.to_lowercase().replace([' ', '-'], "_");
        let known = COLUMNS.iter().find(|(list, title, _)| *list == plural && *title == column);
        let fields = known.map_or(column.as_str(), |(_, _, fields)| fields);
        let fields = fields.split(',').map(|field| match (field.strip_prefix('-'), backwards) {
            (Some(field), true) => field.to_owned(),
            (None, true) => format!("-{field}"),
            (_, false) => field.to_owned(),
        });
        fields.collect::<Vec<_>>().join(",")
    };
    order.split(',').map(field).collect::<Vec<_>>().join(",")
}

/// A table of fields, each under the last word of its path.
fn columns(items: &[Data], fields: &[String]) -> Table {
    let rows = fields.iter().fold(Table::of(items), |rows, field| {
        let title = field.rsplit('.').next().unwrap_or(field).to_uppercase();
        let number = !items.is_empty()
            && items.iter().all(|item| matches!(item.at(field), None | Some(Data::Null | Data::Number(_))));
        let cell = |item: &Data| match item.at(field) {
            // Counts saturate at the largest exact integer of JSON; the exact number is then unknown.
            Some(Data::Number(number)) => number.as_u64().map_or_else(|| number.to_string(), text::count),
            other => text::dash(&other.map(Data::cell).unwrap_or_default()),
        };
        if number { rows.number(title, cell) } else { rows.text(title, cell) }
    });
    rows.table()
}

/// Failure for a response that this program can't parse.
pub(crate) fn unreadable(why: impl Display) -> Failure {
    Problem::new(Code::Unreachable, format!("the server's answer can't be read: {why}"))
        .help("Check that the address is that of ipamd, and that the versions match.")
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_sorted_by_the_columns_that_they_show() {
        for (plural, order, fields) in [
            ("pools", "held", "allocated"),
            ("pools", "-HELD,name", "-allocated,name"),
            ("pools", "status.counts.free", "status.counts.free"),
            ("allocations", "age", "-created_at"),
            ("allocations", "-age", "created_at"),
            ("prefixes", "ends in", "ends_in_ms"),
            ("prefixes", "-ends-in", "-ends_in_ms"),
            ("endpoints", "-endpoint", "-realm,-namespace,-kind,-name"),
            ("reservations", "held", "held"),
        ] {
            assert_eq!(sort_fields(plural, order), fields, "{plural} {order}");
        }
    }

    #[test]
    fn a_number_beyond_json_is_no_exact_one() {
        let item = Data::of(br#"{"name":"a","free":9007199254740991,"size":7}"#).unwrap();
        let fields = ["name", "free", "size"].map(str::to_owned);
        assert_eq!(columns(&[item], &fields).render(false, None), "a  >9e15  7\n");
    }
}
