//! Kubeconfig: server and credentials of the current context.

use std::fs;
use std::path::{Path, PathBuf};

use ipam_api::client::{Options, http};
use reqwest::Client;
use serde_json::Value;
use tempfile::TempDir;

/// Server and credentials.
#[derive(Debug)]
pub(super) struct Kubeconfig {
    pub(super) server: String,
    pub(super) token: Option<String>,
    options: Options,
    /// Holds the files of inline certificates.
    _files: TempDir,
}

impl Kubeconfig {
    /// Reads the current context of a file.
    pub(super) fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let config: Value = serde_saphyr::from_str(&text).unwrap();
        let named = |list: &str, name: &Value| {
            let all = config[list].as_array().unwrap_or_else(|| panic!("no {list} in the kubeconfig"));
            all.iter().find(|one| one["name"] == *name).cloned().unwrap_or_else(|| panic!("no {name}"))
        };
        let context = named("contexts", &config["current-context"])["context"].clone();
        let cluster = named("clusters", &context["cluster"])["cluster"].clone();
        let user = named("users", &context["user"])["user"].clone();
        assert!(user["exec"].is_null(), "credential plugins aren't run; use a token or a certificate");
        let files = tempfile::tempdir().unwrap();
        let base = path.parent().unwrap_or(Path::new("."));
        let file = |of: &Value, key: &str| file(of, key, base, files.path());
        let options = Options {
            ca_file: file(&cluster, "certificate-authority"),
            certificate_file: file(&user, "client-certificate"),
            key_file: file(&user, "client-key"),
            token_file: None,
        };
        let token_file = || Some(fs::read_to_string(base.join(user["tokenFile"].as_str()?)).unwrap());
        let token = user["token"].as_str().map(str::to_owned).or_else(token_file);
        Self {
            server: cluster["server"].as_str().expect("a server").trim_end_matches('/').to_owned(),
            token: token.map(|token| token.trim().to_owned()),
            options,
            _files: files,
        }
    }

    pub(super) fn client(&self) -> Client {
        http(&self.options).unwrap()
    }
}

/// File that a key names, or one with the content of its `-data` variant.
fn file(of: &Value, key: &str, base: &Path, files: &Path) -> Option<PathBuf> {
    let Some(data) = of[format!("{key}-data")].as_str() else {
        return Some(base.join(of[key].as_str()?));
    };
    let path = files.join(key);
    fs::write(&path, base64_decoded(data)).unwrap();
    Some(path)
}

fn base64_decoded(text: &str) -> Vec<u8> {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.decode(text).expect("base64 in the kubeconfig")
}

#[test]
fn a_kubeconfig_names_files_or_contains_them() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("config");
    fs::write(dir.path().join("ca.pem"), "unused").unwrap();
    let text = "
current-context: b
contexts:
- {name: a, context: {cluster: c, user: other}}
- {name: b, context: {cluster: c, user: u}}
clusters:
- {name: c, cluster: {server: 'https://10.0.0.1:6443/', certificate-authority: ca.pem}}
users:
- name: u
  user: {token: t1, client-certificate-data: Y2VydA==}
";
    fs::write(&path, text).unwrap();
    let config = Kubeconfig::read(&path);
    assert_eq!((config.server.as_str(), config.token.as_deref()), ("https://10.0.0.1:6443", Some("t1")));
    assert_eq!(config.options.ca_file.as_deref(), Some(dir.path().join("ca.pem").as_path()));
    assert_eq!(fs::read(config.options.certificate_file.unwrap()).unwrap(), b"cert");
}
