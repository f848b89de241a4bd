//! Query parameters, as the table of routes names them.

use crate::http::list::{Holds, Shape};

/// A query parameter.
#[derive(Debug, Clone)]
pub(in crate::http) struct Parameter {
    pub(in crate::http) name: String,
    /// Its kind, which the OpenAPI document describes.
    pub(in crate::http) kind: &'static str,
    pub(in crate::http) about: String,
}

pub(super) fn parameter(name: impl Into<String>, kind: &'static str, about: impl Into<String>) -> Parameter {
    Parameter { name: name.into(), kind, about: about.into() }
}

pub(super) fn fresh() -> Vec<Parameter> {
    vec![
        parameter(
            "consistency",
            "consistency",
            "How fresh the answer must be; linearizable if nothing is said.",
        ),
        parameter(
            "at_least_revision",
            "number",
            "Waits until this member has seen that revision, and asks no other.",
        ),
    ]
}

pub(super) fn of_writes() -> Vec<Parameter> {
    vec![
        parameter("dry_run", "boolean", "Only says what would happen."),
        parameter("take_over", "boolean", "Also change a resource of another manager."),
        parameter(
            "manager",
            "line",
            "In whose management it is changed; that of the body if nothing is said.",
        ),
    ]
}

pub(super) fn of_list(shape: &Shape) -> Vec<Parameter> {
    let mut all = vec![
        parameter("limit", "limit", "Items of one page, 1 to 1000."),
        parameter("cursor", "cursor", "The `next` of the page before, with the same parameters."),
        parameter(
            "sort",
            "fields to sort by",
            "Fields, divided by commas; a minus before one turns it round.",
        ),
        parameter("fields", "fields", "What is shown of each item, divided by commas."),
        parameter("count", "boolean", "Also says how many there are on all pages."),
        parameter("q", "text", "Items that have this somewhere in their text."),
    ];
    all.extend(fresh());
    if shape.named {
        all.push(parameter("labels", "selector", "A label selector, as Kubernetes writes it."));
    }
    if shape.addressed {
        all.push(parameter("contains", "address", "Items that are about this address."));
        all.push(parameter("within", "cidr", "Items that are about addresses of this CIDR only."));
    }
    for field in shape.fields() {
        let about = format!("Items whose `{}` is this; repeated: one of these.", field.path);
        all.push(parameter(field.name, field.holds.kind(), about));
        if field.holds == Holds::Number {
            for (than, word) in
                [("lt", "less than"), ("le", "at most"), ("gt", "more than"), ("ge", "at least")]
            {
                let about = format!("Items whose `{}` is {word} this.", field.path);
                all.push(parameter(format!("{}.{than}", field.name), "number", about));
            }
        }
    }
    all
}
