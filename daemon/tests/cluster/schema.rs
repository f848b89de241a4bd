//! Comparison of responses with the committed OpenAPI, and a record of the fields that occurred.
//!
//! Stricter than JSON Schema: an undescribed field is wrong. An unknown keyword of the schema fails too, so
//! that nothing is passed unchecked.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

const PREFIX: &str = "#/components/schemas/";
/// Keywords without effect here: documentation, and formats and patterns, which other tests check.
const NOTES: [&str; 6] = ["description", "title", "examples", "default", "format", "pattern"];

/// Schemas of the API, and the fields that occurred.
pub(crate) struct Schemas {
    all: Map<String, Value>,
    /// Each schema that was met, with its fields that need not be there.
    optional: BTreeMap<String, BTreeSet<String>>,
    seen: BTreeSet<String>,
}

impl Schemas {
    /// Schemas of `api/openapi.json`.
    pub(crate) fn committed() -> Self {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../api/openapi.json");
        let api: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        Self::of(api["components"]["schemas"].as_object().unwrap().clone())
    }

    fn of(all: Map<String, Value>) -> Self {
        Self { all, optional: BTreeMap::new(), seen: BTreeSet::new() }
    }

    /// Checks a value against a schema of this name.
    pub(crate) fn check(&mut self, name: &str, value: &Value) -> Result<(), String> {
        self.named(name, value, "")
    }

    /// Fields of all schemas that were met, that need not be there and never were, as `Schema.field`.
    pub(crate) fn unseen(&self) -> Vec<String> {
        let fields = self.optional.iter();
        let fields =
            fields.flat_map(|(name, fields)| fields.iter().map(move |field| format!("{name}.{field}")));
        fields.filter(|field| !self.seen.contains(field)).collect()
    }

    fn named(&mut self, name: &str, value: &Value, place: &str) -> Result<(), String> {
        let schema = self.all.get(name).unwrap_or_else(|| panic!("the API has no schema {name}")).clone();
        self.meet(name, &schema);
        self.one(name, &schema, value, place)
    }

    /// Notes which fields of a schema need not be there, and of all that it leads to.
    fn meet(&mut self, name: &str, schema: &Value) {
        if self.optional.contains_key(name) {
            return;
        }
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        let fields = schema["properties"].as_object().into_iter().flat_map(Map::keys);
        let optional = fields.filter(|field| !required.contains(&Value::String((*field).clone())));
        self.optional.insert(name.to_owned(), optional.cloned().collect());
        for next in references(schema) {
            let next_schema = self.all[&next].clone();
            self.meet(&next, &next_schema);
        }
    }

    /// Checks a value; `name` is the schema in which its fields are counted.
    fn one(&mut self, name: &str, schema: &Value, value: &Value, place: &str) -> Result<(), String> {
        let words = schema.as_object().unwrap_or_else(|| panic!("{name}{place} is no schema: {schema}"));
        // A schema with only a description permits any value.
        if words.keys().all(|word| NOTES.contains(&word.as_str())) {
            return Ok(());
        }
        let wrong = |why: String| Err(format!("{name}{place}: {why}"));
        for (word, says) in words {
            match word.as_str() {
                note if NOTES.contains(&note) => {}
                "$ref" => {
                    let next = says.as_str().unwrap().strip_prefix(PREFIX).unwrap().to_owned();
                    self.named(&next, value, "").map_err(|why| format!("{name}{place} → {why}"))?;
                }
                "type" if !list(says).any(|kind| is(value, kind.as_str().unwrap())) => {
                    return wrong(format!("{value} is not {says}"));
                }
                "type" => {}
                "const" if value != says => return wrong(format!("{value} is not {says}")),
                "enum" if !list(says).any(|one| one == value) => {
                    return wrong(format!("{value} is not of {says}"));
                }
                "const" | "enum" => {}
                "minimum" if value.as_f64().is_some_and(|number| number < says.as_f64().unwrap()) => {
                    return wrong(format!("{value} is below {says}"));
                }
                "maximum" if value.as_f64().is_some_and(|number| number > says.as_f64().unwrap()) => {
                    return wrong(format!("{value} is above {says}"));
                }
                "minLength" if value.as_str().is_some_and(|text| length(text) < says.as_u64().unwrap()) => {
                    return wrong(format!("{value} is shorter than {says}"));
                }
                "maxLength" if value.as_str().is_some_and(|text| length(text) > says.as_u64().unwrap()) => {
                    return wrong(format!("{value} is longer than {says}"));
                }
                "minItems" | "maxItems" | "maxProperties" => {
                    let count = value
                        .as_array()
                        .map_or_else(|| value.as_object().map(Map::len), |all| Some(all.len()));
                    let bound = usize::try_from(says.as_u64().unwrap()).unwrap();
                    let is_over =
                        |count: usize| if word == "minItems" { count < bound } else { count > bound };
                    if count.is_some_and(is_over) {
                        return wrong(format!("{value} breaks {word} {says}"));
                    }
                }
                "propertyNames" => {
                    for name in value.as_object().into_iter().flat_map(Map::keys) {
                        self.one(name, says, &Value::String(name.clone()), place)?;
                    }
                }
                "uniqueItems" => {
                    let items = value.as_array().map_or(&[][..], Vec::as_slice);
                    if items
                        .iter()
                        .enumerate()
                        .any(|(at, item)| items.iter().take(at).any(|other| other == item))
                    {
                        return wrong(format!("{value} has an item twice"));
                    }
                }
                "minimum" | "maximum" | "minLength" | "maxLength" => {}
                "anyOf" | "oneOf" => self.any(name, says, value, place)?,
                "items" => {
                    for (number, item) in value.as_array().into_iter().flatten().enumerate() {
                        self.one(name, says, item, &format!("{place}[{number}]"))?;
                    }
                }
                // Below, with the fields.
                "properties" | "required" | "additionalProperties" => {}
                unknown => panic!("{name}{place} says {unknown}, which nothing here checks"),
            }
        }
        match value {
            Value::Object(fields) => self.fields(name, schema, fields, place),
            _ => Ok(()),
        }
    }

    fn any(&mut self, name: &str, ways: &Value, value: &Value, place: &str) -> Result<(), String> {
        let mut whys = Vec::new();
        for way in list(ways) {
            let before = self.seen.clone();
            match self.one(name, way, value, place) {
                Ok(()) => return Ok(()),
                Err(why) => whys.push(why),
            }
            // What fits in no way has shown nothing.
            self.seen = before;
        }
        Err(whys.join("; or "))
    }

    fn fields(
        &mut self,
        name: &str,
        schema: &Value,
        fields: &Map<String, Value>,
        place: &str,
    ) -> Result<(), String> {
        // Where the schema leads elsewhere, that is where its fields are.
        if ["$ref", "anyOf", "oneOf"].iter().any(|word| schema.get(word).is_some()) {
            return Ok(());
        }
        for required in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            if !fields.contains_key(required) {
                return Err(format!("{name}{place}: {required} is missing"));
            }
        }
        for (field, value) in fields {
            let inner = format!("{place}.{field}");
            match (&schema["properties"][field], &schema["additionalProperties"]) {
                (Value::Null, Value::Object(_)) => {
                    self.one(name, &schema["additionalProperties"], value, &inner)?;
                }
                (Value::Null, _) => return Err(format!("{name}{inner} is not in the schema")),
                (described, _) => {
                    self.one(name, described, value, &inner)?;
                    if !value.is_null() {
                        self.seen.insert(format!("{name}.{field}"));
                    }
                }
            }
        }
        Ok(())
    }
}

/// A list's items, or the one thing that stands alone.
fn list(says: &Value) -> impl Iterator<Item = &Value> {
    says.as_array().map_or(std::slice::from_ref(says), Vec::as_slice).iter()
}

fn is(value: &Value, kind: &str) -> bool {
    match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "null" => value.is_null(),
        unknown => panic!("nothing here checks the type {unknown}"),
    }
}

fn length(text: &str) -> u64 {
    text.chars().count() as u64
}

/// Schemas that one refers to.
fn references(schema: &Value) -> Vec<String> {
    match schema {
        Value::Object(words) => {
            let here = words.get("$ref").and_then(Value::as_str);
            let here = here.and_then(|path| path.strip_prefix(PREFIX)).map(str::to_owned);
            here.into_iter().chain(words.values().flat_map(references)).collect()
        }
        Value::Array(items) => items.iter().flat_map(references).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn a_deviation_from_the_schema_is_found() {
    let good: Value = serde_json::from_str(
        r#"{"address": "10.1.0.9", "network": "default", "state": "allocated", "revision": 9, "allocation":
            {"id": 7, "address": "10.1.0.9/28", "network": "default", "subnet": "lan", "pool": "web",
             "endpoint": {"kind": "host", "name": "a"}, "interface": "eth0", "lifecycle": "held",
             "checked": false, "created_at": "2026-11-20T11:33:02.000Z", "created_by": "root"}}"#,
    )
    .unwrap();
    let check = |value: &Value| Schemas::committed().check("Address", value);
    check(&good).unwrap();
    let spoiled = |pointer: &str, field: &str, to: Option<Value>| {
        let mut value = good.clone();
        let fields = value.pointer_mut(pointer).unwrap().as_object_mut().unwrap();
        match to {
            Some(to) => drop(fields.insert(field.to_owned(), to)),
            None => drop(fields.remove(field).unwrap()),
        }
        check(&value).unwrap_err()
    };
    assert!(spoiled("", "weather", Some("fine".into())).contains("Address.weather is not in the schema"));
    let deep = spoiled("/allocation/endpoint", "weather", Some("fine".into()));
    assert!(deep.contains("EndpointKey.weather is not in the schema"), "{deep}");
    assert!(spoiled("", "state", None).contains("state is missing"));
    assert!(spoiled("", "revision", Some("9".into())).contains("is not"));
    assert!(spoiled("", "revision", Some((-1).into())).contains("below"));
    assert!(spoiled("/allocation", "lifecycle", Some("eternal".into())).contains("is not"));
    assert!(spoiled("/allocation", "interface", Some("x".repeat(16).into())).contains("longer"));

    let mut schemas = Schemas::committed();
    schemas.check("Address", &good).unwrap();
    let unseen = schemas.unseen();
    assert!(
        unseen.contains(&"Address.cooling_ms".to_owned()) && unseen.contains(&"Allocation.node".to_owned())
    );
    assert!(!unseen.contains(&"Address.allocation".to_owned()), "{unseen:?}");
}
