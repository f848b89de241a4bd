//! Steps of the demonstration: forming the cluster, configuring an interface, and verifying both.

use std::path::Path;
use std::time::Instant;

use ipam_api::client::Call;
use ipam_api::cluster::Cluster;
use ipam_api::resource::Address;
use serde_json::{Value, json};

use super::cluster::{Members, client};
use super::console::{DevError, say};
use super::container::Lab;
use super::report;

/// Subnets of the demonstration: name, CIDR and gateway. The IPv6 prefix is for documentation (RFC 3849).
const SUBNETS: [(&str, &str, &str); 2] =
    [("demo", "10.99.0.0/24", "10.99.0.1"), ("demo6", "2001:db8:99::/64", "2001:db8:99::1")];

/// Runs the demonstration; without `check` it continues until it is interrupted.
pub(super) async fn show(
    dir: &Path,
    check: bool,
    members: &mut Members,
    lab: &mut Option<Lab>,
) -> Result<(), DevError> {
    let begun = Instant::now();
    say("starting three members on this machine …");
    members.start(dir)?;
    let cluster = members.formed(dir).await?;
    say(&format!("cluster {} formed in {:.1} s", cluster.id, begun.elapsed().as_secs_f64()));
    let urls = members.urls();
    let first = urls.first().map(String::as_str).unwrap_or_default();
    create(first).await?;
    let plugin = std::env::current_exe()
        .map(|program| program.with_file_name(ipam_api::brand::CNI_TYPE))
        .map_err(|error| DevError::new("this program can't be found", error))?;
    let ipam = json!({
        "type": ipam_api::brand::CNI_TYPE, "node": "dev",
        "socket": dir.join("n1.sock"), "servers": urls,
        "ipv4_pools": ["demo"], "ipv6_pools": ["demo6"],
    });
    let (made, why) = Lab::make(plugin, ipam).await?;
    let lab = lab.insert(made);
    if let Some(why) = why {
        say(&format!("no real interface on this machine, the plugin runs alone: {why}"));
    }
    let real = lab.is_real();
    let container = lab.add().await?;
    let (addresses, took) = (container.addresses(), container.took);
    let leader = cluster.leader.clone().unwrap_or_else(|| "no member".to_owned());
    report::result(&report::Given { leader, members: cluster.members.len(), addresses, took, real });
    if check {
        return verify(&urls, lab, &cluster).await;
    }
    report::next(dir, &urls, lab.containers());
    while let Some(ended) = members.one_ends().await {
        say(&ended);
    }
    Err(DevError("all members have ended".to_owned()))
}

/// Ends containers, then members.
pub(super) async fn clear(members: &mut Members, lab: Option<Lab>) -> Result<(), DevError> {
    let outcome = match lab {
        Some(lab) if members.are_complete() => lab.end().await,
        // The user may have stopped members. The namespaces end without DEL.
        _ => Ok(()),
    };
    members.stop().await.and(outcome)
}

/// Creates the subnets and pools. In a kept data directory they exist already.
async fn create(url: &str) -> Result<(), DevError> {
    let client = client(url)?;
    let put = async |path: String, body: Value| {
        let call = Call::put(&path).json(&body).map_err(|problem| DevError::new(&path, problem))?;
        client.send(call).await.map_err(|problem| DevError::new(&path, problem))
    };
    for (name, cidr, gateway) in SUBNETS {
        put(format!("/v1/subnets/{name}"), json!({"name": name, "cidr": cidr, "gateway": gateway})).await?;
        put(format!("/v1/pools/{name}"), json!({"name": name, "subnet": name})).await?;
    }
    Ok(())
}

/// Checks that the interface and every member have the allocated addresses, and that they are released.
async fn verify(urls: &[String], lab: &mut Lab, cluster: &Cluster) -> Result<(), DevError> {
    let addresses = lab.containers().first().map(|container| container.addresses()).unwrap_or_default();
    if addresses.len() != SUBNETS.len() {
        return Err(DevError(format!(
            "{} addresses were given instead of {}",
            addresses.len(),
            SUBNETS.len()
        )));
    }
    if cluster.members.len() != urls.len() {
        return Err(DevError(format!("the cluster has {} members", cluster.members.len())));
    }
    if lab.is_real() {
        let output = lab.inside(0, &["ip", "-o", "address", "show", "dev", "eth0"]).await?;
        let shown = String::from_utf8_lossy(&output.stdout).into_owned();
        if let Some(missing) = addresses.iter().find(|address| !shown.contains(address.as_str())) {
            return Err(DevError(format!("{missing} is not on the interface, which has {}", shown.trim())));
        }
    }
    expect_state(urls, &addresses, &["allocated"]).await?;
    lab.delete().await?;
    expect_state(urls, &addresses, &["cooling", "free"]).await
}

async fn expect_state(urls: &[String], addresses: &[String], states: &[&str]) -> Result<(), DevError> {
    for url in urls {
        for address in addresses {
            let ip = address.split('/').next().unwrap_or_default();
            let call = Call::get(format!("/v1/addresses/{ip}"));
            let seen: Address =
                client(url)?.call(call).await.map_err(|problem| DevError::new(url, problem))?;
            if !states.contains(&seen.state.as_str()) {
                return Err(DevError(format!(
                    "{ip} is {} as {url} says, and not {}",
                    seen.state,
                    states.join(" or ")
                )));
            }
        }
    }
    Ok(())
}
