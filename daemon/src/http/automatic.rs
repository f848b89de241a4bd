//! Pools that are made for an application: what requests say of them, and how they are shown.

use ipam_api::request::{self, EndRequest};
use ipam_api::resource::{Application, ApplicationStanding};
use ipam_raft::machine::Action;
use ipam_raft::machine::command::{AutomaticPool, EndController};
use ipam_raft::machine::model::{Automatic, AutomaticStanding};

use super::controller::{controller_in, controller_out};

pub(super) fn automatic_pool(said: request::AutomaticPool) -> AutomaticPool {
    let request::AutomaticPool { size, replicas, reclaim } = said;
    AutomaticPool { size, replicas, reclaim }
}

pub(super) fn end_of(request: EndRequest) -> Action {
    let EndRequest { realm, namespace, controller } = request;
    Action::EndController(EndController { realm, namespace, controller: controller_in(controller) })
}

pub(super) fn application(of: &Automatic) -> Application {
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
