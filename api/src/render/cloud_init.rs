//! cloud-init: network configuration version 2, below `cloud.cfg.d`.
//!
//! Version 1 has no on-link routes and no match by MAC address without a new name, so it is not rendered.
//! cloud-init passes the document to netplan as it is. Its renderers for ifupdown and sysconfig don't know
//! `on-link`.

use super::file::{HEADER, PUBLIC, RenderError, RenderedFile};
use super::netplan::document;
use super::plan::Plan;
use super::yaml;

const PATH: &str = "/etc/cloud/cloud.cfg.d/60-ipamd.cfg";

pub(super) fn files(plan: &Plan) -> Result<Vec<RenderedFile>, RenderError> {
    let content = format!("{HEADER}{}", yaml::text(&document(plan))?);
    Ok(vec![RenderedFile { path: PATH.to_owned(), mode: PUBLIC, content }])
}
