//! Refusals that many commands share.

use ipam_api::name::ResourceName;

use crate::value::cause::Constant;
use crate::value::row::Meta;
use crate::value::{Cause, Expect, Kind, Refusal, Text};

/// Refuses unless a resource is as expected.
pub(crate) fn check_expected(
    kind: Kind,
    name: impl Into<ResourceName>,
    meta: Option<&Meta>,
    expect: Expect,
) -> Result<(), Refusal> {
    let cause = match (expect, meta) {
        (Expect::Anything, _) | (Expect::Absent, None) => return Ok(()),
        (Expect::Revision(expected), Some(meta)) if expected == meta.revision => return Ok(()),
        (Expect::Absent, Some(meta)) => Cause::Exists { kind, name: name.into(), revision: meta.revision },
        (Expect::Revision(expected), None) => Cause::NothingToChange { kind, name: name.into(), expected },
        (Expect::Revision(expected), Some(meta)) => Cause::Changed {
            kind,
            name: name.into(),
            current: meta.revision,
            by: Text::clone(&meta.updated_by),
            fields: meta.updated_fields.to_vec(),
            expected,
        },
    };
    Err(cause.into())
}

pub(crate) fn not_found(kind: Kind, name: impl Into<ResourceName>) -> Refusal {
    Cause::NotFound { kind, name: name.into() }.into()
}

pub(crate) fn immutable(kind: Kind, name: impl Into<ResourceName>, value: Constant) -> Refusal {
    Cause::Immutable { kind, name: name.into(), value }.into()
}
