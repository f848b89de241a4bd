//! Stand-in for Multus: a main plugin that reads the networks annotation of a pod, and delegates to other
//! plugins as libcni does.
//!
//! The pod's default network is `delegate`; each network of the annotation is a file `NAMESPACE_NAME.json`
//! below `networks`. Interfaces after the first are `net1`, `net2` and so on. The configurations of an ADD
//! are kept below `cache`, and a DEL runs them in reverse order. A plugin gets the runtime's annotations only
//! if its configuration has that capability.

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// Annotation with the networks of a pod: `[NAMESPACE/]NAME[@INTERFACE]`, separated by commas.
const NETWORKS: &str = "k8s.v1.cni.cncf.io/networks";

/// Configuration of this plugin.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Configuration {
    cni_version: String,
    /// Configuration of the default network.
    delegate: Map<String, Value>,
    networks: PathBuf,
    cache: PathBuf,
    #[serde(default)]
    runtime_config: Map<String, Value>,
}

/// One network of a pod: the interface, and the configuration that its plugin gets.
type Network = (String, Value);

fn main() -> ExitCode {
    match run() {
        Ok(output) => {
            let printed = std::io::stdout().write_all(&output);
            if printed.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            println!("{}", json!({"code": 999, "msg": "a delegate failed", "details": format!("{error:#}")}));
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<Vec<u8>> {
    let mut input = Vec::new();
    std::io::stdin().read_to_end(&mut input)?;
    let configuration: Configuration = serde_json::from_slice(&input)?;
    let cached = configuration.cache.join(std::env::var("CNI_CONTAINERID")?);
    match std::env::var("CNI_COMMAND")?.as_str() {
        "ADD" => {
            let networks = networks(&configuration)?;
            // The cache is written before the first ADD, so that a DEL runs for each delegate that may have
            // begun.
            std::fs::create_dir_all(&configuration.cache)?;
            std::fs::write(&cached, serde_json::to_vec(&networks)?)?;
            let mut results = Vec::new();
            for (interface, network) in &networks {
                results.push(delegate("ADD", interface, network)?);
            }
            Ok(results.into_iter().next().unwrap_or_default())
        }
        "DEL" => {
            let networks: Vec<Network> = match std::fs::read(&cached) {
                Ok(bytes) => serde_json::from_slice(&bytes)?,
                // An earlier DEL has removed the cache.
                Err(_) => return Ok(Vec::new()),
            };
            for (interface, network) in networks.iter().rev() {
                delegate("DEL", interface, network)?;
            }
            std::fs::remove_file(&cached)?;
            Ok(Vec::new())
        }
        other => bail!("{other} is no command of this plugin"),
    }
}

/// Networks of the pod, the default one first.
fn networks(configuration: &Configuration) -> Result<Vec<Network>> {
    let interface = std::env::var("CNI_IFNAME")?;
    let mut networks = vec![(interface, injected(configuration, configuration.delegate.clone()))];
    let annotations = configuration.runtime_config.get("io.kubernetes.cri.pod-annotations");
    let annotation =
        annotations.and_then(|all| all.get(NETWORKS)).and_then(Value::as_str).unwrap_or_default();
    let arguments = std::env::var("CNI_ARGS")?;
    let own = arguments.split(';').find_map(|pair| pair.strip_prefix("K8S_POD_NAMESPACE="));
    for (place, selection) in annotation.split(',').map(str::trim).filter(|one| !one.is_empty()).enumerate() {
        let (path, interface) = selection.split_once('@').unwrap_or((selection, ""));
        let (namespace, name) =
            path.split_once('/').or(own.map(|own| (own, path))).context("no namespace")?;
        let file = configuration.networks.join(format!("{namespace}_{name}.json"));
        let text = std::fs::read(&file).with_context(|| file.display().to_string())?;
        let interface = if interface.is_empty() { format!("net{}", place + 1) } else { interface.to_owned() };
        networks.push((interface, injected(configuration, serde_json::from_slice(&text)?)));
    }
    Ok(networks)
}

/// Configuration of a delegate, with what libcni adds to it.
fn injected(configuration: &Configuration, mut delegate: Map<String, Value>) -> Value {
    let is_capable =
        |name: &str| delegate.get("capabilities").and_then(|all| all.get(name)) == Some(&true.into());
    let mut runtime_config = configuration.runtime_config.clone();
    runtime_config.retain(|name, _| is_capable(name));
    delegate.remove("capabilities");
    if !runtime_config.is_empty() {
        delegate.insert("runtimeConfig".to_owned(), runtime_config.into());
    }
    delegate.entry("cniVersion").or_insert_with(|| configuration.cni_version.clone().into());
    delegate.into()
}

fn delegate(verb: &str, interface: &str, network: &Value) -> Result<Vec<u8>> {
    let kind = network.get("type").and_then(Value::as_str).context("a delegate has no type")?;
    let path = std::env::var("CNI_PATH")?;
    let plugin = path.split(':').map(|dir| Path::new(dir).join(kind)).find(|plugin| plugin.exists());
    let plugin = plugin.with_context(|| format!("{kind} is not in {path}"))?;
    let mut child = Command::new(&plugin)
        .env("CNI_COMMAND", verb)
        .env("CNI_IFNAME", interface)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| plugin.display().to_string())?;
    let mut input = child.stdin.take().context("the delegate has no input")?;
    // A delegate that ends early reports that by its exit code.
    let _ = input.write_all(&serde_json::to_vec(network)?);
    drop(input);
    let output = child.wait_with_output()?;
    if !output.status.success() {
        bail!("{kind} {verb} {interface}: {}", String::from_utf8_lossy(&output.stdout));
    }
    Ok(output.stdout)
}
