//! Leases: how they are renewed and shown.

use ipam_api::request::{RenewRequest, Renewed, RenewedLease};
use ipam_api::{Code, Problem};
use ipam_machine::command::{Leases, Renew};
use ipam_machine::{Action, Answer, Applied};

use crate::http::convert::lease;
use crate::http::request::{ApiError, ApiResponse, Write};

/// Action of a renewal; without a body each lease keeps its TTL.
pub(super) fn renewal(which: Leases, write: &Write) -> Result<Action, Problem> {
    let RenewRequest { ttl_ms } =
        if write.body.is_empty() { RenewRequest::default() } else { write.read()? };
    Ok(Action::Renew(Renew { which, ttl_ms }))
}

pub(in crate::http) fn renewed(applied: Applied) -> Result<ApiResponse<Renewed>, ApiError> {
    let revision = applied.revision;
    Ok(ApiResponse::new(answer(applied.answer, revision)?, revision))
}

pub(in crate::http) fn answer(answer: Answer, revision: u64) -> Result<Renewed, Problem> {
    let Answer::Renewed { leases, more } = answer else {
        return Err(Problem::new(Code::Internal, "the machine gave another answer than was asked for"));
    };
    let one = |one: ipam_machine::command::Renewed| RenewedLease {
        allocation: one.allocation.get(),
        address: one.address,
        lease: lease(&one.lease),
    };
    Ok(Renewed { leases: leases.into_iter().map(one).collect(), more, revision })
}
