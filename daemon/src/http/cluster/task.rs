//! `/v1/tasks`: tasks of the leader, as this member ran them. Answers without a leader too.

use ipam_api::access::{Target, Verb};
use ipam_api::reclaim::Tasks;

use crate::http::request::{ApiError, ApiResponse, Read};

pub(in crate::http) async fn show(read: Read) -> Result<ApiResponse<Tasks>, ApiError> {
    read.app.check_here(&read.caller, (Verb::Read, Target::Cluster))?;
    let node = &read.app.node;
    let leads = node.leadership().borrow().is_some();
    let body = Tasks { member: node.status().name, leads, tasks: read.app.tasks.shown() };
    Ok(ApiResponse::new(body, node.stale().0.revision()))
}
