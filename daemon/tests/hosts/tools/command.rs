//! `ipamctl endpoint show -o netplan` into `netplan generate`, with a real member.

use std::process::Command;

use ipam_api::client::Call;
use ipam_api::render::{Format, HostConfiguration, RenderedFile};
use ipam_api::request::Allocated;
use serde_json::json;

use super::netplan::generated;
use super::networkd;
use super::observed::is_applied;
use super::room::Room;
use crate::support::ask::{get, put};
use crate::support::{Cluster, LONG, programs, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn n5_11_the_output_of_ipamctl_is_a_file_of_netplan() {
    let cluster = Cluster::up(1).await;
    let client = cluster.ask();
    let dns = json!({"nameservers": ["10.31.0.53"], "search": ["example.org"]});
    for (name, cidr, gateway) in
        [("rack", "10.31.0.0/24", "10.31.0.1"), ("rack6", "2001:db8:31::/64", "2001:db8:31::1")]
    {
        put(&client, "subnets", json!({"name": name, "cidr": cidr, "gateway": gateway, "dns": dns})).await;
        put(&client, "pools", json!({"name": name, "subnet": name})).await;
    }
    let request = json!({
        "endpoint": {"kind": "host", "name": "db-07"},
        "interfaces": [{"name": "eth0", "ipv4_pools": ["rack"], "ipv6_pools": ["rack6"]}],
    });
    let call = Call::post("/v1/allocations").json(&request).unwrap().repeatable().within(LONG);
    let given: Allocated = client.call(call).await.unwrap();
    let server = format!("http://{}", cluster.members[0].client);
    let ipamctl = |words: &[&str]| {
        let output =
            Command::new(programs::ipamctl()).args(["--server", &server]).args(words).output().unwrap();
        assert!(output.status.success(), "{words:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let content = ipamctl(&["endpoint", "show", "host/db-07", "-o", "netplan"]);

    let room = Room::make();
    // What `> /etc/netplan/60-ipamd.yaml` writes.
    room.write(&RenderedFile {
        path: "/etc/netplan/60-ipamd.yaml".to_owned(),
        mode: 0o600,
        content: content.clone(),
    });
    let files = generated(&room, "/");
    assert_eq!(files.len(), 1, "{files:?}");
    networkd::start(&room);
    until("networkd applies what netplan made of it", async || is_applied(&room, &given.interfaces)).await;

    // The same over HTTP, and all formats into a folder.
    let folder = tempfile::tempdir().unwrap();
    for format in Format::ALL {
        let path = format!("/v1/endpoints/host/default/default/db-07/configuration/{format}");
        let served: HostConfiguration = get(&client, &path).await.unwrap();
        let root = folder.path().to_str().unwrap();
        ipamctl(&["endpoint", "show", "host/db-07", "-o", format.as_str(), "--output-dir", root]);
        for file in &served.files {
            let path = folder.path().join(file.path.trim_start_matches('/'));
            assert_eq!(std::fs::read_to_string(&path).unwrap(), file.content, "{format}");
            let mode = std::os::unix::fs::PermissionsExt::mode(&path.metadata().unwrap().permissions());
            assert_eq!(mode & 0o777, file.mode, "{format}");
        }
        if format == Format::Netplan {
            assert_eq!(served.files[0].content, content);
        }
    }
    for (path, code) in [
        ("host/default/default/db-07/configuration/windows", "not-found"),
        ("host/default/default/none/configuration/netplan", "not-found"),
    ] {
        let refused = get::<HostConfiguration>(&client, &format!("/v1/endpoints/{path}")).await.unwrap_err();
        assert_eq!(refused.code.to_string(), code, "{refused:?}");
    }
}
