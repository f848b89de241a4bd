//! `/v1/controllers`: controllers of endpoints, and their numbers of replicas.

use ipam_api::request::{Released, ScaleRequest};
use ipam_api::resource as shown;
use ipam_machine::Action;
use ipam_machine::command::{ScaleController, Stickiness};

use super::automatic::end_of;
use super::endpoint::released;
use crate::http::convert::controller_in;
use crate::http::request::{ApiError, ApiResponse, Write};

pub(in crate::http) async fn scale(write: Write) -> Result<ApiResponse<Released>, ApiError> {
    Ok(released(write.propose(scale_of(write.read()?)).await?))
}

pub(in crate::http) async fn end(write: Write) -> Result<ApiResponse<Released>, ApiError> {
    Ok(released(write.propose(end_of(write.read()?)).await?))
}

pub(in crate::http) fn scale_of(request: ScaleRequest) -> Action {
    let ScaleRequest { realm, namespace, controller, replicas, start } = request;
    Action::ScaleController(ScaleController {
        realm,
        namespace,
        controller: controller_in(controller),
        replicas,
        start,
    })
}

pub(in crate::http) fn stickiness(
    controller: Option<shown::Controller>,
    sticky: Option<bool>,
    scale_down: Option<shown::ScaleDown>,
) -> Stickiness {
    Stickiness { controller: controller.map(controller_in), sticky, scale_down }
}
