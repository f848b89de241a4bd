//! Causes of a refused object.

use serde_json::{Value, json};

/// Reason of a cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    Invalid,
    TypeInvalid,
    Required,
    NotSupported,
    Duplicate,
    TooLong,
    TooMany,
    Forbidden,
}

/// Wrong field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cause {
    reason: Reason,
    field: String,
    message: String,
}

impl Cause {
    pub(crate) fn new(reason: Reason, field: &str, message: impl Into<String>) -> Self {
        let field = if field.is_empty() { "<nil>" } else { field };
        Self { reason, field: field.to_owned(), message: message.into() }
    }

    /// Cause with the value of the field.
    pub(crate) fn invalid(field: &str, value: &Value, why: impl std::fmt::Display) -> Self {
        Self::new(Reason::Invalid, field, format!("Invalid value: {value}: {why}"))
    }

    pub(crate) fn text(&self) -> String {
        format!("{}: {}", self.field, self.message)
    }

    /// Cause as a status has it.
    pub(crate) fn object(&self) -> Value {
        let reason = match self.reason {
            Reason::Invalid => "FieldValueInvalid",
            Reason::TypeInvalid => "FieldValueTypeInvalid",
            Reason::Required => "FieldValueRequired",
            Reason::NotSupported => "FieldValueNotSupported",
            Reason::Duplicate => "FieldValueDuplicate",
            Reason::TooLong => "FieldValueTooLong",
            Reason::TooMany => "FieldValueTooMany",
            Reason::Forbidden => "FieldValueForbidden",
        };
        json!({"reason": reason, "message": self.message, "field": self.field})
    }
}
