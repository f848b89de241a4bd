//! Tests of the document.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::bounds::UNBOUNDED;
use super::components::components;
use super::document::{document, operation_id};
use super::parameters::LISTS;
use crate::http::describe::routes::routes;

fn committed() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../api/openapi.json")
}

#[test]
fn the_committed_document_is_what_the_code_says() {
    let text = serde_json::to_string_pretty(&document()).unwrap() + "\n";
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(committed(), &text).unwrap();
    }
    let committed = std::fs::read_to_string(committed()).unwrap();
    assert!(committed == text, "api/openapi.json is not what the code says: UPDATE=1 writes it anew");
}

#[test]
fn whatever_is_referred_to_is_there() {
    fn references<'a>(value: &'a Value, found: &mut BTreeSet<&'a str>) {
        match value {
            Value::Object(fields) => {
                found.extend(fields.get("$ref").and_then(Value::as_str));
                fields.values().for_each(|value| references(value, found));
            }
            Value::Array(items) => items.iter().for_each(|item| references(item, found)),
            _ => {}
        }
    }
    let document = document();
    let mut found = BTreeSet::new();
    references(&document, &mut found);
    assert!(found.len() > 30);
    for reference in found {
        assert!(document.pointer(reference.strip_prefix('#').unwrap()).is_some(), "{reference}");
    }
    let ids: Vec<String> = routes().iter().map(operation_id).collect();
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len());
}

/// A list that `LISTS` lacks would have no fields to sort by, and the document would permit an empty one.
#[test]
fn no_pattern_permits_an_empty_name_of_a_field() {
    fn patterns<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
        match value {
            Value::Object(fields) => {
                found.extend(fields.get("pattern").and_then(Value::as_str));
                fields.values().for_each(|value| patterns(value, found));
            }
            Value::Array(items) => items.iter().for_each(|item| patterns(item, found)),
            _ => {}
        }
    }
    let document = document();
    let mut found = Vec::new();
    patterns(&document, &mut found);
    let empty: Vec<_> = found.iter().filter(|pattern| pattern.contains("()")).collect();
    assert!(found.len() > 30 && empty.is_empty(), "{empty:?}");
}

/// Each field that a list shows exists in the type of its items.
#[test]
fn lists_name_fields_that_there_are() {
    let schemas = components();
    fn resolved<'a>(schemas: &'a Map<String, Value>, schema: &'a Value) -> Vec<&'a Value> {
        let mut all = vec![schema];
        if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
            all.extend(resolved(schemas, &schemas[name.rsplit('/').next().unwrap()]));
        }
        for word in ["allOf", "anyOf", "oneOf"] {
            let parts = schema.get(word).and_then(Value::as_array);
            parts.into_iter().flatten().for_each(|part| all.extend(resolved(schemas, part)));
        }
        all
    }
    for (shape, name) in LISTS {
        let paths = shape.shown().chain(shape.fields().map(|field| field.path));
        for path in paths {
            let mut places = resolved(&schemas, &schemas[name]);
            for segment in path.split('.') {
                let next: Vec<&Value> = places
                    .iter()
                    .filter_map(|schema| match segment.parse::<usize>() {
                        Ok(_) => schema.get("items"),
                        Err(_) => schema.get("properties").and_then(|properties| properties.get(segment)),
                    })
                    .flat_map(|schema| resolved(&schemas, schema))
                    .collect();
                assert!(!next.is_empty(), "{name} has no {path}");
                places = next;
            }
        }
    }
}

/// Only the table gives handlers to the router, so that each has a description and an access rule.
#[test]
fn every_route_of_the_code_is_in_the_table() {
    fn sources(folder: &std::path::Path, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                sources(&path, found);
            } else {
                let text = std::fs::read_to_string(&path).unwrap();
                let shipped = text.split("#[cfg(test)]").next().unwrap();
                if shipped.contains(concat!(".route", "(")) {
                    found.push(path.file_name().unwrap().to_string_lossy().into_owned());
                }
            }
        }
    }
    let mut found = Vec::new();
    sources(&std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/http"), &mut found);
    assert_eq!(found, ["table.rs"]);
    assert!(routes().len() > 50);
}

/// A name in a path may always be one that doesn't exist, or none that could.
#[test]
fn each_path_with_a_name_describes_not_found() {
    let document = document();
    let paths = document.get("paths").and_then(Value::as_object).unwrap();
    let named: Vec<_> = paths.iter().filter(|(path, _)| path.contains('{')).collect();
    assert!(named.len() > 15);
    for (path, operations) in named {
        for (method, operation) in operations.as_object().unwrap() {
            if let Some(responses) = operation.get("responses") {
                assert!(responses.get("404").is_some(), "{method} {path} says nothing of 404");
            }
        }
    }
}

/// Operations of the document with their names.
fn operations(document: &Value) -> Vec<(String, &Value)> {
    let paths = document["paths"].as_object().unwrap().iter();
    let methods =
        paths.flat_map(|(path, methods)| methods.as_object().unwrap().iter().map(move |one| (path, one)));
    methods.map(|(path, (method, operation))| (format!("{method} {path}"), operation)).collect()
}

fn resolved<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    match schema["$ref"].as_str() {
        Some(reference) => document.pointer(reference.strip_prefix('#').unwrap()).unwrap(),
        None => schema,
    }
}

#[test]
fn every_operation_has_a_tag_of_the_list() {
    let document = document();
    let tags: Vec<&str> =
        document["tags"].as_array().unwrap().iter().map(|tag| tag["name"].as_str().unwrap()).collect();
    for (name, operation) in operations(&document) {
        let [tag] = operation["tags"].as_array().unwrap().as_slice() else {
            panic!("{name} has no single tag")
        };
        assert!(tags.contains(&tag.as_str().unwrap()), "{name}: {tag}");
    }
}

/// Generators name a class by the title of its schema, and one without a title by the place where it stands.
#[test]
fn objects_and_enumerations_have_titles_of_their_own() {
    fn inline(place: &str, schema: &Value, found: &mut Vec<String>) {
        let has_class =
            |word: &str| schema.get(word).is_some_and(|words| words.is_object() || words.is_array());
        if has_class("properties") || has_class("enum") || schema.get("const").is_some() {
            found.push(format!("{place}: {schema:.200}"));
        }
        inner(place, schema, found);
    }
    fn inner(place: &str, schema: &Value, found: &mut Vec<String>) {
        for (field, schema) in schema["properties"].as_object().into_iter().flatten() {
            inline(&format!("{place}.{field}"), schema, found);
        }
        for word in ["items", "additionalProperties"] {
            schema.get(word).into_iter().for_each(|schema| inline(place, schema, found));
        }
        for word in ["anyOf", "oneOf", "allOf"] {
            schema[word].as_array().into_iter().flatten().for_each(|schema| inline(place, schema, found));
        }
    }
    let (schemas, mut found, mut titles) = (components(), Vec::new(), BTreeSet::new());
    for (name, schema) in &schemas {
        assert!(
            titles.insert(schema["title"].as_str().unwrap()),
            "{name}: the title is that of another schema"
        );
        inner(name, schema, &mut found);
    }
    assert!(found.is_empty(), "{found:#?}");
}

/// Adds the places of a schema that takes text, integers, lists or maps of any size.
fn unbounded<'a>(
    document: &'a Value,
    place: &str,
    schema: &'a Value,
    seen: &mut BTreeSet<&'a str>,
    found: &mut Vec<String>,
) {
    if let Some(reference) = schema["$ref"].as_str() {
        if seen.insert(reference) {
            let name = reference.rsplit('/').next().unwrap();
            unbounded(document, name, resolved(document, schema), seen, found);
        }
        return;
    }
    let has = |words: &[&str]| words.iter().any(|word| schema.get(word).is_some());
    let is = |kind: &str| match &schema["type"] {
        Value::Array(kinds) => kinds.iter().any(|one| one == kind),
        one => one == kind,
    };
    let is_bounded = (!is("string") || has(&["pattern", "maxLength", "enum", "format"]))
        && (!is("integer") || has(&["enum"]) || has(&["minimum"]) && has(&["maximum"]))
        && (!is("array") || has(&["maxItems"]))
        && (!is("object") || has(&["properties", "maxProperties"]));
    if !is_bounded {
        found.push(place.to_owned());
    }
    for (field, schema) in schema["properties"].as_object().into_iter().flatten() {
        unbounded(document, &format!("{place}.{field}"), schema, seen, found);
    }
    for word in ["items", "additionalProperties", "propertyNames"] {
        let inner = schema.get(word).filter(|inner| inner.is_object());
        inner
            .into_iter()
            .for_each(|inner| unbounded(document, &format!("{place}.{word}"), inner, seen, found));
    }
    for schema in ["anyOf", "oneOf"].iter().flat_map(|word| schema[*word].as_array().into_iter().flatten()) {
        unbounded(document, place, schema, seen, found);
    }
}

#[test]
fn parameters_and_bodies_are_bounded() {
    let document = document();
    let (mut seen, mut found) = (BTreeSet::new(), Vec::new());
    for (name, operation) in operations(&document) {
        for parameter in operation["parameters"].as_array().unwrap() {
            let parameter = resolved(&document, parameter);
            let place = format!("{name} {}", parameter["name"].as_str().unwrap());
            unbounded(&document, &place, &parameter["schema"], &mut seen, &mut found);
        }
        for body in operation["requestBody"]["content"].as_object().into_iter().flat_map(Map::values) {
            unbounded(&document, &name, &body["schema"], &mut seen, &mut found);
        }
    }
    found.retain(|place| !UNBOUNDED.contains(&place.as_str()));
    assert!(found.is_empty(), "{found:#?}");
    assert!(seen.len() > 60);
}
