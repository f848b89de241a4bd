//! Automatic pools: their part of requests, and their representation.

use ipam_api::request::{self, EndRequest};
use ipam_api::resource::{Application, ApplicationStanding, PoolSize};
use ipam_api::{Code, Problem};
use ipam_machine::Action;
use ipam_machine::command::{AutomaticPool, EndController};
use ipam_machine::model::{Automatic, AutomaticStanding};

use crate::http::convert::{controller_in, controller_out};

/// Automatic pools that a request specifies.
///
/// # Errors
/// `conflicting-fields` for a size relative to replicas if their number is unknown.
pub(in crate::http) fn automatic_pool(
    said: request::AutomaticPool,
    replicas: Option<u32>,
) -> Result<AutomaticPool, Problem> {
    let request::AutomaticPool { size, reclaim } = said;
    if let (PoolSize::Flexible(_), None) = (size, replicas) {
        let detail = format!("a pool of {size} depends on the replicas, which the request does not give");
        return Err(Problem::new(Code::ConflictingFields, detail)
            .at("/replicas")
            .help("Say how many replicas there are, or a size such as 5."));
    }
    Ok(AutomaticPool { size, replicas: replicas.unwrap_or_default(), reclaim })
}

pub(in crate::http) fn end_of(request: EndRequest) -> Action {
    let EndRequest { realm, namespace, controller } = request;
    Action::EndController(EndController { realm, namespace, controller: controller_in(controller) })
}

pub(in crate::http) fn application(of: &Automatic) -> Application {
    Application {
        realm: of.realm.clone(),
        namespace: of.namespace.clone(),
        controller: controller_out(&of.controller),
        interface: of.interface.clone(),
        size: of.size,
        replicas: of.replicas,
        standing: match of.standing {
            AutomaticStanding::Present => ApplicationStanding::Present,
            AutomaticStanding::Elsewhere => ApplicationStanding::Elsewhere,
            AutomaticStanding::Ended => ApplicationStanding::Ended,
        },
    }
}
