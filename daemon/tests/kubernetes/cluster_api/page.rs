//! Commands and settings of the page about Cluster API, in the order of the page.

use std::path::Path;
use std::process::{Command, Output};

use test_apiserver::ApiServer;

use crate::support::ask::get;
use crate::support::{Cluster, programs};

/// Programs whose commands are compared with their descriptions, since tests can't have or run them.
const NOT_RUN: [&str; 3] = ["clusterctl", "export", "ipamd"];

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// Texts of the blocks of a language.
fn blocks(language: &str) -> Vec<String> {
    let page = std::fs::read_to_string(root().join("deploy/docs/cluster-api.md")).unwrap();
    let begin = format!("```{language}\n");
    let blocks = page.split(&begin).skip(1);
    blocks.map(|block| block.split("```").next().unwrap().to_owned()).collect()
}

/// Readers of the page: a directory, the servers of `ipamd`, and a management cluster.
struct Reader {
    cluster: Cluster,
    api: ApiServer,
}

impl Reader {
    fn run(&self, program: &Path, words: &[&str]) -> Output {
        let dir = self.cluster.dir.path();
        let mut command = Command::new(program);
        command
            .args(words)
            .current_dir(dir)
            .env("HOME", dir)
            .env("IPAM_SERVERS", self.cluster.urls().join(","));
        command.output().unwrap_or_else(|error| panic!("{}: {error}", program.display()))
    }

    #[track_caller]
    fn does(&self, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let url = format!("--server={}", self.api.url());
        let (program, words) = match words.split_first().unwrap() {
            (&"kubectl", words) => (ipam_manifests::kubectl(), [&[url.as_str()], words].concat()),
            (&"ipamctl", words) => (programs::ipamctl(), words.to_vec()),
            (&program @ ("mkdir" | "cp"), words) => (program.into(), words.to_vec()),
            (other, _) => panic!("{other} is not known here"),
        };
        let output = self.run(&program, &words);
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_command_of_the_page_works() {
    let reader = Reader { cluster: Cluster::up(1).await, api: ApiServer::start() };
    let dir = reader.cluster.dir.path();
    std::os::unix::fs::symlink(root().join("deploy"), dir.join("deploy")).unwrap();
    std::fs::write(dir.join("ca.crt"), "").unwrap();
    let repository = dir.join("repository");
    // The state that the page supposes: a pool, and a claim whose finalizer was removed.
    for line in [
        "ipamctl subnet create machines --cidr 10.20.0.0/24",
        "ipamctl pool create machines --subnet machines",
        "ipamctl allocate --endpoint claim/default/shop/shop-md-0-x7k2p --pool machines",
    ] {
        reader.does(line);
    }
    let text = blocks("sh").concat();
    let mut count = 0;
    for line in text.lines().filter(|line| !line.is_empty()) {
        count += 1;
        if !NOT_RUN.contains(&line.split(' ').next().unwrap()) {
            reader.does(
                &line.replace("/srv/clusterctl", repository.to_str().unwrap()).replace("POOL", "machines"),
            );
        }
    }
    assert!(count > 10, "{text}");
    // A release of clusterctl is a directory with these two files.
    for file in ["ipam-components.yaml", "metadata.yaml"] {
        let place = format!("ipam-ipamd/v{}/{file}", env!("CARGO_PKG_VERSION"));
        assert!(repository.join(&place).exists(), "{place}");
    }
    let addresses: serde_json::Value = get(&reader.cluster.ask(), "/v1/allocations").await.unwrap();
    let held: Vec<&str> =
        addresses["items"].as_array().unwrap().iter().map(|one| one["address"].as_str().unwrap()).collect();
    assert_eq!(held, ["10.20.0.50/24"], "only the preallocated address is left");
}

#[test]
fn the_flags_and_settings_of_the_page_exist() {
    let help = Command::new(programs::ipamd()).args(["cluster-api", "--help"]).output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let text = blocks("sh").concat();
    let commands: Vec<&str> = text.lines().filter(|line| line.starts_with("ipamd ")).collect();
    assert_eq!(commands.len(), 1, "{text}");
    for flag in commands[0].split(' ').filter(|word| word.starts_with("--")) {
        assert!(help.contains(&format!("{flag} <")), "{flag}: {help}");
    }
    let dir = tempfile::tempdir().unwrap();
    let (file, kubeconfig) = (dir.path().join("ipamd.toml"), dir.path().join("kubeconfig"));
    std::fs::write(&kubeconfig, "").unwrap();
    let settings = blocks("toml").concat();
    let settings = settings.replace("/etc/ipamd/management.kubeconfig", kubeconfig.to_str().unwrap());
    std::fs::write(&file, format!("name = \"n1\"\n{settings}")).unwrap();
    let checked =
        Command::new(programs::ipamd()).args(["check-config", "--config"]).arg(&file).output().unwrap();
    assert!(checked.status.success() && settings.contains("[[cluster_api]]"), "{checked:?}");
}
