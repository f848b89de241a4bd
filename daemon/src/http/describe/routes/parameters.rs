//! Query parameters, as the table of routes names them.

use crate::http::list::{Holds, Shape};

/// A query parameter.
#[derive(Debug, Clone)]
pub(in crate::http) struct Parameter {
    pub(in crate::http) name: String,
    /// Kind of its values, which the OpenAPI document describes.
    pub(in crate::http) kind: &'static str,
    pub(in crate::http) about: String,
}

pub(super) fn parameter(name: impl Into<String>, kind: &'static str, about: impl Into<String>) -> Parameter {
    Parameter { name: name.into(), kind, about: about.into() }
}

pub(super) fn fresh() -> Vec<Parameter> {
    vec![
        parameter("consistency", "consistency", "Read consistency; default: `linearizable`."),
        parameter(
            "at_least_revision",
            "number",
            "Waits until this member has applied this revision, and answers from its own state.",
        ),
    ]
}

/// Parameters of a list without filters.
pub(super) fn paged() -> Vec<Parameter> {
    let mut all = vec![
        parameter("limit", "limit", "Items per page, 1 to 1000."),
        parameter("cursor", "cursor", "`next` of the previous page."),
    ];
    all.extend(fresh());
    all
}

pub(super) fn of_writes() -> Vec<Parameter> {
    vec![
        parameter("dry_run", "boolean", "Returns the outcome without applying the change."),
        parameter("take_over", "boolean", "Also change a resource of another manager."),
        parameter("manager", "line", "Manager of the change; default: `managed_by` of the body."),
    ]
}

pub(super) fn of_list(shape: &Shape) -> Vec<Parameter> {
    let mut all = vec![
        parameter("limit", "limit", "Items per page, 1 to 1000."),
        parameter("cursor", "cursor", "`next` of the previous page; all other parameters must be the same."),
        parameter(
            "sort",
            "fields to sort by",
            "Fields, separated by commas; a leading minus sorts in descending order.",
        ),
        parameter("fields", "fields", "Fields of each item to return, separated by commas."),
        parameter("count", "boolean", "Also returns the number of items on all pages."),
        parameter("q", "text", "Items that contain this text."),
    ];
    all.extend(fresh());
    if shape.named {
        all.push(parameter("labels", "selector", "A label selector, in the syntax of Kubernetes."));
    }
    if shape.addressed {
        all.push(parameter("contains", "address", "Items that contain this address."));
        all.push(parameter("within", "cidr", "Items within this CIDR."));
    }
    for field in shape.fields() {
        let about = format!(
            "Items whose `{}` equals this value; repeat the parameter for several values.",
            field.path
        );
        all.push(parameter(field.name, field.holds.kind(), about));
        if field.holds == Holds::Number {
            for (than, word) in
                [("lt", "less than"), ("le", "at most"), ("gt", "more than"), ("ge", "at least")]
            {
                let about = format!("Items whose `{}` is {word} this value.", field.path);
                all.push(parameter(format!("{}.{than}", field.name), "number", about));
            }
        }
    }
    all
}
