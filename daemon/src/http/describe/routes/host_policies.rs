//! Routes of the addresses of hosts with a policy.

use ipam_api::Code;
use ipam_api::access::{Target, Verb};

use super::route::{Handled, Route};
use crate::http::resource::host_policy_use;

pub(super) fn routes() -> [Handled; 2] {
    [
        Route::post(
            "/v1/host-policies/{name}/render",
            (Verb::Allocate, Target::Allocation),
            "Allocates the addresses of a node by a host policy, and renders its desired state.",
        )
        .takes("RenderHostPolicy")
        .json(200, "RenderedHostPolicy")
        .refuses(&[
            Code::NotFound,
            Code::ConflictingFields,
            Code::InvalidField,
            Code::PoolExhausted,
            Code::NoPoolSelected,
            Code::NoPoolFits,
            Code::PoolDisabled,
            Code::QuotaExceeded,
        ])
        .to(host_policy_use::render),
        Route::post(
            "/v1/host-policies/{name}/reset",
            (Verb::Release, Target::Endpoint),
            "Releases the addresses of one node or of all nodes of a host policy.",
        )
        .takes("ResetHostPolicy")
        .json(200, "HostPolicyReset")
        .refuses(&[Code::NotFound])
        .to(host_policy_use::reset),
    ]
}
