//! Containers, run by runc as a kubelet and containerd would have it run them.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::{Value, json};

use super::lab::{API, Lab, Node};
use super::pod::{Pod, environment, words};

/// Directory of a pod with the credentials of its account.
const ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// Directory of the node with the state of runc.
const RUNC: &str = "/run/runc";

/// Reason why a container can't start yet.
pub(crate) type Waiting = String;

/// Container that runs.
pub(crate) struct Container {
    id: String,
    child: Child,
    log: PathBuf,
}

impl Container {
    /// Starts a container of a pod on a node, unless a volume is missing.
    pub(crate) fn start(lab: &Lab, node: &Node, pod: &Pod, container: &Value) -> Result<Self, Waiting> {
        let id = format!("{}-{}-{}", pod.name, container["name"].as_str().unwrap(), lab.number());
        let bundle = node.dir.path().join(&id);
        fs::create_dir(&bundle).unwrap();
        let copied =
            Command::new("cp").arg("-al").arg(lab.rootfs()).arg(bundle.join("rootfs")).status().unwrap();
        assert!(copied.success());
        let config = config(lab, node, pod, container, &bundle)?;
        fs::write(bundle.join("config.json"), config.to_string()).unwrap();
        let log = node.dir.path().join(format!("{id}.log"));
        let output = File::create(&log).unwrap();
        let mut command = node.command(&["runc", "--root", RUNC, "run", "--bundle"]);
        command.arg(&bundle).arg(&id).stdout(output.try_clone().unwrap()).stderr(output);
        Ok(Self { id, child: command.spawn().unwrap(), log })
    }

    /// Runs a program in the container, with this input.
    pub(crate) fn exec(&self, node: &Node, words: &[&str], input: &str) -> Output {
        let mut command = node.command(&["runc", "--root", RUNC, "exec", &self.id]);
        command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // A program that does not read its input may have ended.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        child.wait_with_output().unwrap()
    }

    /// Exit code, once the container has ended.
    pub(crate) fn ended(&mut self) -> Option<i32> {
        self.child.try_wait().unwrap().map(|status| status.code().unwrap())
    }

    /// Sends a signal to the program, and waits for its end.
    pub(crate) fn kill(&mut self, node: &Node, signal: &str) -> i32 {
        let killed = node.command(&["runc", "--root", RUNC, "kill", &self.id, signal]).output().unwrap();
        assert!(killed.status.success(), "{killed:?}\n{}", self.logged());
        self.child.wait().unwrap().code().unwrap()
    }

    pub(crate) fn logged(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }
}

/// Configuration for runc.
fn config(lab: &Lab, node: &Node, pod: &Pod, container: &Value, bundle: &Path) -> Result<Value, Waiting> {
    assert_eq!(pod.spec["hostNetwork"], true, "all pods are on the network of their host");
    let fields = BTreeMap::from([
        ("metadata.name", pod.name.clone()),
        ("spec.nodeName", node.name.clone()),
        ("status.hostIP", node.address.to_string()),
    ]);
    let mut variables = environment(container, &fields);
    let args = words(container, &variables);
    variables.insert("PATH".to_owned(), "/".to_owned());
    variables.insert("KUBERNETES_SERVICE_HOST".to_owned(), API.0.to_string());
    variables.insert("KUBERNETES_SERVICE_PORT".to_owned(), API.1.to_string());
    let env: Vec<String> = variables.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let context = &container["securityContext"];
    assert_eq!(context["capabilities"]["drop"], json!(["ALL"]));
    let added = context["capabilities"]["add"].as_array().into_iter().flatten();
    let capabilities: Vec<String> = added.map(|name| format!("CAP_{}", name.as_str().unwrap())).collect();
    // A user other than root has none of the bounding ones.
    let cgroup = format!("/{}", bundle.file_name().unwrap().display());
    let namespaces = ["pid", "ipc", "uts", "mount"].map(|kind| json!({"type": kind}));
    let user = pod.context("runAsUser").unwrap();
    Ok(json!({
        "ociVersion": "1.0.2",
        "process": {
            "user": {
                "uid": user, "gid": pod.context("runAsGroup").unwrap(),
                "additionalGids": pod.context("fsGroup").into_iter().collect::<Vec<_>>(),
            },
            "args": args, "env": env, "cwd": "/",
            "noNewPrivileges": context["allowPrivilegeEscalation"] == false,
            "capabilities": {"bounding": capabilities, "effective": capabilities, "permitted": capabilities},
        },
        "root": {"path": "rootfs", "readonly": context["readOnlyRootFilesystem"]},
        "hostname": node.name,
        "mounts": mounts(lab, node, pod, container, bundle)?,
        "linux": {"namespaces": namespaces, "cgroupsPath": cgroup},
    }))
}

fn mounts(
    lab: &Lab,
    node: &Node,
    pod: &Pod,
    container: &Value,
    bundle: &Path,
) -> Result<Vec<Value>, Waiting> {
    let mut mounts = vec![
        json!({"destination": "/proc", "type": "proc", "source": "proc"}),
        json!({"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"]}),
        bind("/etc/hosts", &lab.hosts(), &["ro"]),
        bind("/etc/resolv.conf", &lab.resolv_conf(), &["ro"]),
    ];
    if let Some(account) = pod.account() {
        let dir = bundle.join("account");
        fs::create_dir(&dir).unwrap();
        let token = lab.api.token_of(&pod.namespace, account);
        fs::write(dir.join("token"), token.ok_or(format!("{}: no account {account}", pod.name))?).unwrap();
        fs::write(dir.join("namespace"), &pod.namespace).unwrap();
        fs::copy(lab.ca.certificate(), dir.join("ca.crt")).unwrap();
        mounts.push(bind(ACCOUNT, &dir, &["ro"]));
    }
    for mount in container["volumeMounts"].as_array().into_iter().flatten() {
        let source = source(lab, node, pod, mount["name"].as_str().unwrap())?;
        let mut options = vec![if mount["readOnly"] == true { "ro" } else { "rw" }];
        options.extend((mount["mountPropagation"] == "HostToContainer").then_some("rslave"));
        mounts.push(bind(mount["mountPath"].as_str().unwrap(), &source, &options));
    }
    Ok(mounts)
}

fn bind(destination: &str, source: &Path, options: &[&str]) -> Value {
    let options = [&["rbind"], options].concat();
    json!({"destination": destination, "type": "bind", "source": source, "options": options})
}

/// Directory of a volume, as a kubelet prepares it.
fn source(lab: &Lab, node: &Node, pod: &Pod, name: &str) -> Result<PathBuf, Waiting> {
    let group = pod.context("fsGroup");
    let own = node.dir.path().join(format!("volume-{}-{name}", pod.name));
    let Some(volume) = pod.volume(name) else { return Ok(directory(&own, group)) };
    let text = |value: &Value, key: &str| value[key].as_str().unwrap().to_owned();
    if let Some(host) = volume.get("hostPath") {
        let path = text(host, "path");
        if host["type"] == "DirectoryOrCreate" {
            node.run(&format!("mkdir -p {path}"));
        }
        return Ok(path.into());
    }
    if volume.contains_key("emptyDir") {
        return Ok(directory(&own, group));
    }
    let (files, of) = match (volume.get("configMap"), volume.get("secret")) {
        (Some(map), _) => (lab.files(&pod.namespace, "configmaps", &text(map, "name")), map),
        (_, Some(secret)) => (lab.files(&pod.namespace, "secrets", &text(secret, "secretName")), secret),
        _ => panic!("a volume of a kind that is not known here: {volume:?}"),
    };
    let files = match files {
        Some(files) => files,
        None if of["optional"] == true => BTreeMap::new(),
        None => return Err(format!("{}: the volume {name} needs {of}", pod.name)),
    };
    let mode = u32::try_from(of["defaultMode"].as_u64().unwrap_or(0o644)).unwrap();
    fill(&own, &files, mode, group);
    Ok(own)
}

/// Directory that the group of a pod may write to.
fn directory(path: &Path, group: Option<u32>) -> PathBuf {
    fs::create_dir_all(path).unwrap();
    chown(path, Some(0), Some(group.unwrap_or(0))).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o2770)).unwrap();
    path.to_owned()
}

/// Brings the files of a volume up to date.
fn fill(path: &Path, files: &BTreeMap<String, Vec<u8>>, mode: u32, group: Option<u32>) {
    fs::create_dir_all(path).unwrap();
    for entry in fs::read_dir(path).unwrap().map(Result::unwrap) {
        if !files.contains_key(entry.file_name().to_str().unwrap()) {
            fs::remove_file(entry.path()).unwrap();
        }
    }
    for (name, content) in files {
        let draft = path.join(format!(".{name}"));
        fs::write(&draft, content).unwrap();
        chown(&draft, Some(0), Some(group.unwrap_or(0))).unwrap();
        // A group of a pod may read what its owner may.
        let mode = if group.is_some() { mode | 0o440 } else { mode };
        fs::set_permissions(&draft, fs::Permissions::from_mode(mode)).unwrap();
        fs::rename(draft, path.join(name)).unwrap();
    }
}

/// Brings the Secrets of a pod up to date, as a kubelet does from time to time.
pub(crate) fn refresh(lab: &Lab, node: &Node, pod: &Pod) -> Result<(), Waiting> {
    let mut secrets = pod.list("volumes").filter(|volume| volume.get("secret").is_some());
    secrets.try_for_each(|volume| source(lab, node, pod, volume["name"].as_str().unwrap()).map(drop))
}
