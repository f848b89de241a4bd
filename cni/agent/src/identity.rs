//! Identity of the node: the token that the agent gets by joining, and renews.

use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ipam_api::access::NodeKey;
use ipam_api::brand::SECRET_PREFIX;
use ipam_api::client::Call;
use ipam_api::problem::{Code, Problem};
use ipam_api::token::JoinRequest;

use crate::cluster::Cluster;
use crate::config::Config;
use crate::node::Node;

/// File name, in the state directory, of the token that the agent got by joining.
pub const TOKEN: &str = "token";
/// The secret's file until the cluster has accepted it.
const NEW_TOKEN: &str = "token.new";
/// Pause between two attempts to join.
const JOIN_PAUSE: Duration = Duration::from_secs(1);
/// Time between two renewals. A token from a join is valid for 90 days.
const RENEWAL: Duration = Duration::from_secs(24 * 3600);

/// Returns a client of the cluster with the node's token. If a join token is configured, a node without a
/// token first waits for it and for a server, and joins.
///
/// # Errors
/// The refusal of the join, or the file that can't be used.
pub async fn connect(config: &Config) -> Result<Cluster, Problem> {
    let client = |token: Option<&Path>| Cluster::new(&config.servers, config.ca_file.as_deref(), token);
    if config.token_file.is_some() {
        return client(config.token_file.as_deref());
    }
    let token = config.state_dir.join(TOKEN);
    if token.exists() {
        return client(Some(&token));
    }
    let Some(join_token) = &config.join_token_file else { return client(None) };
    while !join_token.exists() {
        tracing::warn!(file = %join_token.display(), "the node can't join yet: it has no join token");
        tokio::time::sleep(JOIN_PAUSE).await;
    }
    let joining = client(Some(join_token))?;
    let new = config.state_dir.join(NEW_TOKEN);
    // A retry after a crash uses the same secret, so the cluster repeats the lost answer.
    let secret = secret(&new).map_err(|error| unusable(&new, &error))?;
    #[cfg(feature = "testing")]
    crate::testing::KillPoint::SecretWritten.reach();
    loop {
        match join(&joining, &config.node, &secret).await {
            Ok(()) => break,
            Err(problem) if problem.status >= 500 => {
                tracing::warn!(%problem, "the node can't join yet");
                tokio::time::sleep(JOIN_PAUSE).await;
            }
            Err(problem) => return Err(problem),
        }
    }
    #[cfg(feature = "testing")]
    crate::testing::KillPoint::Joined.reach();
    std::fs::rename(&new, &token)
        .and_then(|()| std::fs::File::open(&config.state_dir)?.sync_all())
        .map_err(|error| unusable(&token, &error))?;
    tracing::info!(node = %config.node, "the node has joined");
    client(Some(&token))
}

async fn join(cluster: &Cluster, node: &NodeKey, secret: &str) -> Result<(), Problem> {
    let secret_hash = blake3::hash(secret.as_bytes()).to_hex().to_string();
    let request = JoinRequest { node: node.clone(), secret_hash };
    cluster.send(Call::post("/v1/join").json(&request)?.repeatable()).await.map(|_| ())
}

/// Reads the secret of an unfinished join, or generates one and stores it durably.
fn secret(path: &PathBuf) -> io::Result<String> {
    match std::fs::read_to_string(path) {
        Ok(text) if !text.trim().is_empty() => return Ok(text.trim().to_owned()),
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let half = || uuid::Uuid::new_v4().simple();
    let secret = format!("{SECRET_PREFIX}{}{}", half(), half());
    let mut file =
        std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(secret.as_bytes())?;
    file.sync_all()?;
    Ok(secret)
}

fn unusable(path: &Path, error: &io::Error) -> Problem {
    Problem::new(Code::InvalidField, format!("{}: {error}", path.display()))
        .help("Make the state directory writable for the agent.")
}

/// Renews the token that the agent got by joining, once a day.
pub async fn renew(node: Arc<Node>) {
    if node.config.token_file.is_some() || node.config.join_token_file.is_none() {
        return;
    }
    loop {
        // A lost answer is harmless: the next renewal comes long before the end.
        match node.cluster.send(Call::post("/v1/tokens/self/renew").repeatable()).await {
            Ok(_) => tracing::info!("the node's token is renewed"),
            Err(problem) => tracing::warn!(%problem, "the node's token was not renewed"),
        }
        tokio::time::sleep(RENEWAL).await;
    }
}
