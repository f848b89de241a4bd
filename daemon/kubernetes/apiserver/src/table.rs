//! Tables: rows as `kubectl get` prints them.

use jiff::Timestamp;
use serde_json::{Value, json};
use serde_json_path::JsonPath;

use crate::form::metadata;
use crate::path::{Place, parameter};
use crate::status::Refusal;

/// Part of the objects that rows contain beside their cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Include {
    Nothing,
    Metadata,
    Object,
}

impl Include {
    /// Part that a query names.
    ///
    /// # Errors
    /// 400 for an unknown one.
    pub(crate) fn of(query: &str) -> Result<Self, Refusal> {
        match parameter(query, "includeObject").as_deref() {
            None | Some("" | "Metadata") => Ok(Self::Metadata),
            Some("None") => Ok(Self::Nothing),
            Some("Object") => Ok(Self::Object),
            Some(other) => Err(Refusal::new(400, format!("unrecognized includeObject value: {other:?}"))),
        }
    }
}

/// Table of an object, or of the items of a list.
pub(crate) fn table(place: &Place, object: &Value, include: Include, now: Timestamp) -> Value {
    let columns = columns(place);
    let one = std::slice::from_ref(object);
    let rows = object["items"].as_array().map_or(one, Vec::as_slice).iter().map(|object| {
        let name = object["metadata"]["name"].clone();
        let cells = std::iter::once(name).chain(columns.iter().map(|column| cell(object, column, now)));
        let mut row = json!({"cells": cells.collect::<Vec<_>>()});
        match include {
            Include::Nothing => {}
            Include::Metadata => row["object"] = metadata(object),
            Include::Object => row["object"] = object.clone(),
        }
        row
    });
    let name = json!({"name": "Name", "type": "string", "format": "name", "description": "", "priority": 0});
    let definitions = std::iter::once(name).chain(columns.iter().map(definition)).collect::<Vec<_>>();
    json!({
        "kind": "Table", "apiVersion": "meta.k8s.io/v1",
        "metadata": {
            "resourceVersion": object["metadata"]["resourceVersion"],
            "continue": object["metadata"]["continue"].as_str().unwrap_or_default(),
        },
        "columnDefinitions": definitions, "rows": rows.collect::<Vec<_>>(),
    })
}

/// Columns after the name.
fn columns(place: &Place) -> Vec<Value> {
    let custom = place.custom.as_ref().map(|custom| custom.columns.clone()).unwrap_or_default();
    let age = || json!({"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"});
    if custom.is_empty() { vec![age()] } else { custom }
}

fn definition(column: &Value) -> Value {
    let text = |field: &str| column[field].as_str().unwrap_or_default();
    json!({
        "name": column["name"], "type": column["type"], "format": text("format"),
        "description": text("description"), "priority": column["priority"].as_u64().unwrap_or_default(),
    })
}

fn cell(object: &Value, column: &Value, now: Timestamp) -> Value {
    let path = format!("${}", column["jsonPath"].as_str().unwrap_or_default());
    let Some(found) = JsonPath::parse(&path).ok().and_then(|path| path.query(object).first().cloned()) else {
        return Value::Null;
    };
    match (column["type"].as_str(), &found) {
        (Some("date"), Value::String(time)) => age(time, now).into(),
        (Some("string"), Value::String(_)) => found,
        (Some("string"), other) => other.to_string().into(),
        _ => found,
    }
}

/// Time since a moment, in the two largest units that matter.
fn age(time: &str, now: Timestamp) -> String {
    let Ok(time) = time.parse::<Timestamp>() else { return "<invalid>".to_owned() };
    let seconds = (now.as_second() - time.as_second()).max(0);
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let pair = |large: i64, unit: &str, small: i64, of: &str| match small {
        0 => format!("{large}{unit}"),
        _ => format!("{large}{unit}{small}{of}"),
    };
    match seconds {
        0..120 => format!("{seconds}s"),
        120..600 => pair(minutes, "m", seconds % 60, "s"),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => pair(hours, "h", minutes % 60, "m"),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => pair(days, "d", hours % 24, "h"),
        691_200..63_072_000 => format!("{days}d"),
        63_072_000..252_288_000 => pair(days / 365, "y", days % 365, "d"),
        _ => format!("{}y", days / 365),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_have_the_units_of_kubectl() {
        let now: Timestamp = "2026-01-11T00:00:00Z".parse().unwrap();
        for (time, expected) in [
            ("2026-01-10T23:59:17Z", "43s"),
            ("2026-01-10T23:57:30Z", "2m30s"),
            ("2026-01-10T23:30:00Z", "30m"),
            ("2026-01-10T20:00:00Z", "4h"),
            ("2026-01-10T19:50:00Z", "4h10m"),
            ("2026-01-08T00:00:00Z", "3d"),
            ("2026-01-01T00:00:00Z", "10d"),
            ("2023-01-10T00:00:00Z", "3y2d"),
            ("2027-01-01T00:00:00Z", "0s"),
            ("x", "<invalid>"),
        ] {
            assert_eq!(age(time, now), expected, "{time}");
        }
    }
}
