//! JSON with the server's order of fields, for the output as YAML, CSV and columns.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};
use serde_json::Number;

/// JSON value that keeps the order of its fields.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Data {
    Null,
    Flag(bool),
    Number(Number),
    Text(String),
    List(Vec<Data>),
    Map(Vec<(String, Data)>),
}

impl Data {
    /// Reads JSON.
    pub(crate) fn of(json: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(json)
    }

    /// A field of a map.
    pub(crate) fn get(&self, name: &str) -> Option<&Data> {
        match self {
            Data::Map(fields) => fields.iter().find(|(field, _)| field == name).map(|(_, value)| value),
            _ => None,
        }
    }

    /// Value at a path of field names.
    pub(crate) fn at(&self, path: &str) -> Option<&Data> {
        path.split('.').try_fold(self, |found, name| found.get(name))
    }

    /// Text for one cell: words of a list are separated by spaces, deeper values are JSON.
    pub(crate) fn cell(&self) -> String {
        match self {
            Data::Null => String::new(),
            Data::Flag(flag) => flag.to_string(),
            Data::Number(number) => number.to_string(),
            Data::Text(text) => text.clone(),
            Data::List(items) if items.iter().all(Data::is_plain) => {
                items.iter().map(Data::cell).collect::<Vec<_>>().join(" ")
            }
            Data::List(_) | Data::Map(_) => serde_json::to_string(self).unwrap_or_default(),
        }
    }

    fn is_plain(&self) -> bool {
        !matches!(self, Data::List(_) | Data::Map(_))
    }

    /// All fields with their paths, in order. Values in lists have no paths of their own.
    pub(crate) fn flat(&self) -> Vec<(String, String)> {
        let mut found = Vec::new();
        self.flatten("", &mut found);
        found
    }

    fn flatten(&self, path: &str, found: &mut Vec<(String, String)>) {
        match self {
            Data::Map(fields) => {
                for (name, value) in fields {
                    let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                    value.flatten(&path, found);
                }
            }
            other => found.push((path.to_owned(), other.cell())),
        }
    }
}

impl Serialize for Data {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Data::Null => serializer.serialize_unit(),
            Data::Flag(flag) => serializer.serialize_bool(*flag),
            Data::Number(number) => number.serialize(serializer),
            Data::Text(text) => serializer.serialize_str(text),
            Data::List(items) => serializer.collect_seq(items),
            Data::Map(fields) => serializer.collect_map(fields.iter().map(|(name, value)| (name, value))),
        }
    }
}

impl<'de> Deserialize<'de> for Data {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Data;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Data, E> {
        Ok(Data::Null)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Data, E> {
        Ok(Data::Flag(flag))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Data, E> {
        Ok(Data::Number(number.into()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Data, E> {
        Ok(Data::Number(number.into()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Data, E> {
        Ok(Number::from_f64(number).map_or(Data::Null, Data::Number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Data, E> {
        Ok(Data::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Data, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = sequence.next_element()? {
            items.push(item);
        }
        Ok(Data::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Data, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = map.next_entry()? {
            fields.push(field);
        }
        Ok(Data::Map(fields))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_the_servers() {
        let json = br#"{"name":"web","a":[{"z":1,"b":null}],"c":{"y":-1,"x":true},"d":["p","q"]}"#;
        let data = Data::of(json).unwrap();
        assert_eq!(serde_json::to_vec(&data).unwrap(), json);
        assert_eq!(data.at("c.y").unwrap().cell(), "-1");
        assert_eq!(data.at("c.n"), None);
        let flat: Vec<String> =
            data.flat().into_iter().map(|(path, cell)| format!("{path}={cell}")).collect();
        assert_eq!(flat, ["name=web", r#"a=[{"z":1,"b":null}]"#, "c.y=-1", "c.x=true", "d=p q"]);
    }
}
