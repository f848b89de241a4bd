//! `/v1/attachments`: requests of a CNI plugin besides ADD.

use axum::extract::Path;
use ipam_api::access::{Target, Verb};
use ipam_api::name::{InterfaceName, Name, ObjectName};
use ipam_api::request::{Attachment, AttachmentKey, ReleaseAttachmentRequest, Released};
use ipam_api::{Code, Problem};
use ipam_machine::Action;
use ipam_machine::command::{ReleaseAttachment, ReleaseAttachmentOf, Text, Via};

use super::endpoint::released;
use crate::http::convert::{interface, started};
use crate::http::request::{ApiError, ApiResponse, Read, Write};

type KeyPath = (String, String, String, String, String);

pub(in crate::http) async fn release(write: Write) -> Result<ApiResponse<Released>, ApiError> {
    let action = release_of(write.read()?)?;
    let applied = write.propose_via(Via::Cni, action).await?;
    Ok(released(applied))
}

pub(in crate::http) fn release_of(request: ReleaseAttachmentRequest) -> Result<Action, Problem> {
    let Some(began) = request.started else {
        let detail = "`started` is missing: when the asking process began";
        return Err(Problem::new(Code::InvalidField, detail).at("/started"));
    };
    let release = ReleaseAttachment { key: request.attachment, started: started(began) };
    Ok(match (request.endpoint, request.uid) {
        (Some(endpoint), Some(uid)) => {
            Action::ReleaseAttachmentOf(ReleaseAttachmentOf { release, endpoint, uid: Text::given(uid) })
        }
        _ => Action::ReleaseAttachment(release),
    })
}

pub(in crate::http) async fn show(
    Path(path): Path<KeyPath>,
    read: Read,
) -> Result<ApiResponse<Attachment>, ApiError> {
    let key = key(&path).map_err(|problem| Problem::new(Code::NotFound, problem.detail))?;
    let (state, stale_ms) = read.state((Verb::Read, Target::Attachment)).await?;
    read.app.check_own(&read.caller, &state, &key)?;
    let revision = state.revision();
    let found = state.attachment(&key).and_then(|(id, row)| {
        Some(Attachment {
            attachment: key.clone(),
            endpoint: state.endpoints.get(row.endpoint)?.key.clone(),
            interface: state.given(&row.allocations, Some(id)).first().map(interface)?,
            revision,
        })
    });
    let found =
        found.ok_or_else(|| Problem::new(Code::NotFound, format!("attachment {key} does not exist")))?;
    Ok(ApiResponse { stale_ms, ..ApiResponse::new(found, revision) })
}

fn key((realm, node, config, container_id, interface): &KeyPath) -> Result<AttachmentKey, Problem> {
    Ok(AttachmentKey {
        realm: Name::new(realm)?,
        node: ObjectName::new(node)?,
        config: ObjectName::new(config)?,
        container_id: ObjectName::new(container_id)?,
        interface: InterfaceName::new(interface)?,
    })
}
