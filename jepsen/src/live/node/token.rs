//! Tokens of nodes in clusters that require tokens.

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use anyhow::{Context as _, Result};
use ipam_api::client::Call;
use ipam_api::token::Token;
use serde_json::json;

use crate::workload::Server;

/// Creates the token of a node as an administrator, and writes it to a file that only its owner can read.
///
/// # Errors
/// If the servers refuse the request or the file can't be written.
pub async fn create_token(admin: &dyn Server, node: &str, file: &Path) -> Result<()> {
    let body = json!({"name": format!("node-{node}"), "role": "node", "node": {"name": node}});
    let token: Token = admin.send(Call::post("/v1/tokens").json(&body)?).await?.read()?;
    let secret = token.secret.context("a new token has no secret")?;
    let mut options = std::fs::OpenOptions::new();
    let opened = options.write(true).create(true).truncate(true).mode(0o600).open(file);
    let mut opened = opened.with_context(|| file.display().to_string())?;
    Ok(writeln!(opened, "{secret}")?)
}
