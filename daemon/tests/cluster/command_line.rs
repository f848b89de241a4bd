//! The real `ipamctl` against a real cluster: what a person types, and what a script relies on.

use std::process::Stdio;

use serde_json::Value;
use tokio::process::Command;

use crate::support::{Cluster, programs};

/// Result of a command.
#[derive(Debug)]
pub(crate) struct CommandOutput {
    code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl CommandOutput {
    #[track_caller]
    pub(crate) fn ends(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:?}");
        self
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// Types a line; what is quoted in a shell isn't needed here.
pub(crate) async fn ipamctl(servers: &[String], line: &str) -> CommandOutput {
    let output = Command::new(programs::ipamctl())
        .args(line.split_whitespace())
        .env_clear()
        .env("IPAM_SERVERS", servers.join(","))
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    CommandOutput {
        code: output.status.code().unwrap(),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_day_of_an_administrator() {
    let cluster = Cluster::up(3).await;
    let servers = cluster.urls();
    let done = async |line: &str| ipamctl(&servers, line).await.ends(0);

    let status = done("status").await.stdout;
    for name in ["n1", "n2", "n3", "leader"] {
        assert!(status.contains(name), "{status}");
    }
    assert_eq!(done("status -o json").await.json()["members"].as_array().unwrap().len(), 3);
    done("subnet create lan --cidr 10.1.0.0/28 --gateway 10.1.0.1").await;
    done("subnet create lan6 --cidr 2001:db8:1::/64 --gateway 2001:db8:1::1").await;
    done("pool create web --subnet lan --range 10.1.0.2-10.1.0.3").await;
    done("pool create web6 --subnet lan6").await;
    assert_eq!(done("pool list -o json").await.json()["items"].as_array().unwrap().len(), 2);
    assert_eq!(done("pool list -o name").await.stdout, "web\nweb6\n");

    let given = done("allocate --endpoint host/db-07 --pool web --pool web6 -o json").await.json();
    let addresses = given["interfaces"][0]["addresses"].as_array().unwrap();
    assert_eq!(addresses.len(), 2);
    let address = addresses[0]["address"].as_str().unwrap().split('/').next().unwrap().to_owned();
    let again = done("allocate --endpoint host/db-07 --pool web --pool web6 -o json").await.json();
    assert_eq!(again["interfaces"], given["interfaces"]);
    let holder = done(&format!("who-has {address}")).await.stdout;
    assert!(holder.contains("host/db-07"), "{holder}");
    let holder = done(&format!("who-has {address} -o json")).await.json();
    assert_eq!(holder["allocation"]["endpoint"]["name"], "db-07");
    assert!(done("endpoint list").await.stdout.contains("db-07"));
    assert_eq!(done("allocation list -o json").await.json()["items"].as_array().unwrap().len(), 2);

    done("allocate --endpoint host/db-08 --pool web").await;
    let full = ipamctl(&servers, "allocate --endpoint host/db-09 --pool web").await.ends(1);
    assert!(full.stderr.contains("pool exhausted"), "{full:?}");
    done("pool set web --add-range 10.1.0.8-10.1.0.9").await;
    done("allocate --endpoint host/db-09 --pool web").await;
    let pool = done("pool show web -o json").await.json();
    assert_eq!(pool["status"]["counts"]["allocated"], 3);

    done("release --endpoint host/db-09 --yes").await;
    done(&format!("release {address} --yes")).await;
    let freed = done(&format!("who-has {address} -o json")).await.json();
    assert_eq!(freed["allocation"], Value::Null, "{freed}");
    done("reservation create kept --address 10.1.0.9").await;
    done("reservation delete kept --yes").await;
    done("pool delete web --yes").await;
    assert!(done("pool show web").await.stdout.contains("erminating"));
    done("release --endpoint host/db-08 --yes").await;
    ipamctl(&servers, "pool show web").await.ends(3);
    done("version").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exit_codes_are_what_scripts_rely_on() {
    let mut cluster = Cluster::up(3).await;
    let servers = cluster.urls();
    ipamctl(&servers, "subnet create lan --cidr 10.1.0.0/28").await.ends(0);
    // Refused by a rule.
    let overlap = ipamctl(&servers, "subnet create lan-2 --cidr 10.1.0.0/24").await.ends(1);
    assert!(overlap.stderr.contains("overlap") && overlap.stdout.is_empty(), "{overlap:?}");
    // Typed wrongly, here or for the server.
    ipamctl(&servers, "subnet create lan-2 --cidr 10.1.0.0/99").await.ends(2);
    ipamctl(&servers, "pool frobnicate").await.ends(2);
    ipamctl(&servers, "subnet create A/B --cidr 10.2.0.0/24").await.ends(2);
    let server = "--server ftp://x pool list";
    ipamctl(&servers, server).await.ends(2);
    // Not there.
    let missing = ipamctl(&servers, "subnet show lam").await.ends(3);
    assert!(missing.stderr.contains("lan"), "{missing:?}");
    ipamctl(&servers, "who-has 10.9.9.9 --network none").await.ends(3);
    // Another write came first.
    ipamctl(&servers, "subnet create lan --cidr 10.1.0.0/28").await.ends(4);
    // Without a majority nothing is changed, and the command is safe to repeat.
    let leader = cluster.leader().await;
    let left = (0..3).find(|at| *at != leader).unwrap();
    for at in (0..3).filter(|at| *at != left) {
        cluster.members[at].kill();
    }
    cluster.members[left].not_ready("not ready").await;
    let read = ipamctl(&servers, "subnet list --timeout 3s").await.ends(5);
    assert!(read.stderr.contains("no leader"), "{read:?}");
    ipamctl(&servers, "allocate --endpoint host/h1 --pool none --timeout 3s").await.ends(5);
    let stale = ipamctl(&servers, "subnet list --consistency stale -o name").await.ends(0);
    assert_eq!(stale.stdout, "lan\n");
    let status = ipamctl(&servers, "status --timeout 3s").await.ends(0);
    assert!(status.stdout.contains("NO LEADER"), "{status:?}");
    cluster.kill_all();
    let unreachable = ipamctl(&servers, "subnet list --timeout 1s").await.ends(5);
    assert!(unreachable.stderr.contains("unavailable: "), "{unreachable:?}");
}
