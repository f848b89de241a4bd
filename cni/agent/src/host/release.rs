//! Release of all addresses of the host's own interfaces.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use ipam_api::brand::DEFAULT;
use ipam_api::client::{Call, push_encoded};
use ipam_api::problem::Code;
use ipam_api::request::Released;
use rustix::thread::CapabilitySet;

use super::kernel::Kernel;
use super::netlink::Netlink;
use super::rendering::write;
use super::session::Session;
use crate::boot;
use crate::config::Config;
use crate::identity::connect;
use crate::journal::JournalFile;

/// Time limit of the request.
const REQUEST: Duration = Duration::from_secs(30);

/// Start of a refusal.
const NOTHING: &str = "nothing is released";

/// Releases the addresses in the cluster, and removes what the agent has added. Returns a summary.
///
/// # Errors
/// The reason; what was not released stays configured.
pub(super) async fn release(config: &Config) -> Result<String, String> {
    let Some(host) = config.host.clone() else {
        return Err("the configuration has no [[interface]], so there is nothing to release".to_owned());
    };
    // A running agent would request the addresses again.
    let _lock = JournalFile::open(&config.state_dir).map_err(|error| error.to_string())?;
    let boot_id = boot::id().map_err(|error| error.to_string())?;
    let kernel = Netlink::open().map_err(|error| error.to_string())?;
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", config.state_dir.display());
    let session = Session::open(host, kernel, &config.state_dir, &boot_id, Path::new("/"), &config.node);
    let mut session = session.map_err(|error| failed(&error))?;
    let is_permitted = rustix::thread::capabilities(None)
        .is_ok_and(|sets| sets.effective.contains(CapabilitySet::NET_ADMIN));
    check(&mut session, is_permitted).await?;
    let cluster = connect(config).await.map_err(|problem| problem.to_string())?;
    let mut path = format!("/v1/endpoints/host/{}/{DEFAULT}/", config.node.realm);
    push_encoded(&mut path, config.node.name.as_str());
    // The freed addresses cool, so that no other host gets them before they are removed here.
    let count = match cluster.send(Call::delete(path).repeatable().within(REQUEST)).await {
        Ok(answer) => answer.read::<Released>().map_err(|problem| problem.to_string())?.addresses.len(),
        Err(problem) if problem.code == Code::NotFound => 0,
        Err(problem) => return Err(problem.to_string()),
    };
    clear(&mut session).await?;
    Ok(format!("{count} addresses are released"))
}

/// Checks that the agent can remove its additions, before the cluster frees the addresses.
///
/// # Errors
/// The reason why it can't.
pub(super) async fn check<K: Kernel>(session: &mut Session<K>, is_permitted: bool) -> Result<(), String> {
    if !session.config.mode.applies() {
        return Ok(());
    }
    if !is_permitted {
        return Err(format!("{NOTHING}: removing addresses from this host needs CAP_NET_ADMIN; use sudo"));
    }
    let view = session.view().await.map_err(|error| error.to_string())?;
    let remains = session.remains().await.map_err(|error| error.to_string())?;
    let concerns = |name: &&str| {
        let mut bound = view.bindings.bound.iter();
        bound.any(|one| one.device == *name) || remains.iter().any(|one| one.split(' ').next() == Some(*name))
    };
    let frozen: Vec<&str> = view.frozen.iter().map(String::as_str).filter(concerns).collect();
    if frozen.is_empty() {
        return Ok(());
    }
    let links = frozen.join(", ");
    Err(format!("{NOTHING}: another network manager has {links}; take it out of that one first"))
}

/// Removes what the agent has added to the kernel, its files and its journal.
///
/// # Errors
/// The reason why something is left.
pub(super) async fn clear<K: Kernel>(session: &mut Session<K>) -> Result<(), String> {
    let directory = session.config.directory.clone();
    write(&directory, &[], &session.journal.rendered)?;
    session.note_rendered(BTreeSet::new()).map_err(|error| error.to_string())?;
    session.adopt(Vec::new(), BTreeSet::new()).await.map_err(|error| error.to_string())?;
    let left = session.remains().await.map_err(|error| error.to_string())?;
    if !left.is_empty() {
        let left = left.join(", ");
        return Err(format!(
            "the addresses are released, but this host still has {left}; repeat the command"
        ));
    }
    session.forget().map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::fake::{FakeKernel, link};
    use super::*;
    use crate::host_config::HostConfig;

    fn open(kernel: &FakeKernel, dir: &Path) -> Session<FakeKernel> {
        let section = toml::from_str("name = \"eth1\"\nipv4_pools = [\"p\"]").unwrap();
        let interval = |_: &str, ms| Ok(Duration::from_millis(ms));
        let config = HostConfig::check(None, vec![section], interval).unwrap().unwrap();
        let node = serde_json::from_value(json!({"name": "n1"})).unwrap();
        Session::open(config, kernel.clone(), dir, "b1", dir, &node).unwrap()
    }

    #[tokio::test]
    async fn nothing_is_released_that_could_not_be_removed() {
        let dir = tempfile::tempdir().unwrap();
        let kernel = FakeKernel::new(vec![link(2, "eth1", 2)], true);
        let mut session = open(&kernel, dir.path());
        check(&mut session, true).await.unwrap();
        assert!(check(&mut session, false).await.unwrap_err().contains("CAP_NET_ADMIN"));
        std::fs::create_dir_all(dir.path().join("run/network")).unwrap();
        std::fs::write(dir.path().join("run/network/ifstate"), "eth1=eth1\n").unwrap();
        assert!(check(&mut session, true).await.unwrap_err().contains("has eth1"));
    }

    #[tokio::test]
    async fn the_journal_stays_while_addresses_stay() {
        for has_tags in [true, false] {
            let dir = tempfile::tempdir().unwrap();
            let kernel = FakeKernel::new(vec![link(2, "eth1", 2)], has_tags);
            kernel.foreign(2, "192.0.2.1/24");
            let mut session = open(&kernel, dir.path());
            let given = json!({"address": "10.0.0.7/24", "pool": "p", "allocation": 1, "checked": true});
            let wanted = serde_json::from_value(json!([{"name": "eth1", "addresses": [given]}])).unwrap();
            session.adopt(wanted, BTreeSet::new()).await.unwrap();
            kernel.state().refused = "remove address".to_owned();
            assert!(clear(&mut session).await.unwrap_err().contains("eth1 10.0.0.7/24"));
            assert!(dir.path().join("host.json").exists());
            kernel.state().refused.clear();
            clear(&mut open(&kernel, dir.path())).await.unwrap();
            assert!(!dir.path().join("host.json").exists());
            assert_eq!(kernel.shown(), ["eth1 192.0.2.1/24", "eth1 mtu 1500"]);
        }
    }
}
