//! Annotations of the pod: from the container's request, and from containerd or CRI-O.

use ipam_api::annotations::is_read;
use ipam_api::resource::Labels;
use serde::Deserialize;
use serde_json::Value;

use crate::config::Network;
use crate::fail::Failure;
use crate::json::Section;

/// Key of the request's annotations in `args.cni`.
const ANNOTATIONS: &str = "annotations";
/// Capability by which a runtime passes all annotations of a pod, and the key of the annotations in
/// `runtimeConfig`.
pub const POD_ANNOTATIONS: &str = "io.kubernetes.cri.pod-annotations";

/// Annotations that the servers read: those of `args.cni.annotations`, then those that the runtime passes.
/// Other annotations of the pod are dropped, since they can be many times larger than a request.
///
/// # Errors
/// Code 7, if one of the sources is not an object with text values.
pub fn annotations(network: &Network) -> Result<Labels, Failure> {
    let mut annotations = texts(&network.whole().section("runtimeConfig")?, POD_ANNOTATIONS)?;
    annotations.append(&mut texts(&network.arguments()?, ANNOTATIONS)?);
    annotations.retain(|name, _| is_read(name));
    Ok(annotations)
}

/// Reads an object with text values. It is empty if missing or `null`, as for a pod without annotations.
fn texts(section: &Section<'_>, key: &str) -> Result<Labels, Failure> {
    let read = |value: &Value| {
        Labels::deserialize(value).map_err(|_| section.wrong(key, "must be an object of texts"))
    };
    section.get(key).map(read).transpose().map(Option::unwrap_or_default)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::CniVersion;

    fn read(more: &str) -> Result<Labels, Failure> {
        let document = crate::json::parse(format!(r#"{{"name":"n"{more}}}"#).as_bytes()).unwrap();
        annotations(&Network::new(document, CniVersion::LATEST).unwrap())
    }

    fn runtime_config(annotations: &str) -> String {
        format!(r#","runtimeConfig":{{"{POD_ANNOTATIONS}":{annotations}}}"#)
    }

    #[test]
    fn only_annotations_that_a_request_needs_are_sent() {
        let pod = r#"{"ipam.spidernet.io/ippool":"{}","k8s.v1.cni.cncf.io/networks":"a","kubernetes.io/x":"1",
            "v1.multus-cni.io/default-network":"b","ipam.spidernet.io.example/x":"2"}"#;
        let names: Vec<String> = read(&runtime_config(pod)).unwrap().into_keys().collect();
        assert_eq!(
            names,
            ["ipam.spidernet.io/ippool", "k8s.v1.cni.cncf.io/networks", "v1.multus-cni.io/default-network"]
        );
        for none in ["", r#","runtimeConfig":null"#, &runtime_config("null"), &runtime_config("{}")] {
            assert!(read(none).unwrap().is_empty(), "{none}");
        }
    }

    #[test]
    fn the_request_precedes_the_runtime() {
        let pod = runtime_config(r#"{"ipam.spidernet.io/ippool":"pod","ipam.spidernet.io/routes":"pod"}"#);
        let own = r#","args":{"cni":{"annotations":{"ipam.spidernet.io/ippool":"own","x":"y"}}}"#;
        let read = read(&format!("{pod}{own}")).unwrap();
        let shown: Vec<String> = read.into_iter().map(|(name, text)| format!("{name} {text}")).collect();
        assert_eq!(shown, ["ipam.spidernet.io/ippool own", "ipam.spidernet.io/routes pod"]);
    }

    #[test]
    fn annotations_are_texts() {
        for bad in ["7", "[]", r#"{"a":1}"#] {
            let failure = read(&runtime_config(bad)).unwrap_err();
            assert_eq!(failure.code, crate::fail::CONFIGURATION, "{bad}");
            let says = "runtimeConfig.io.kubernetes.cri.pod-annotations must be an object of texts";
            assert!(failure.details.starts_with(says), "{}", failure.details);
        }
    }
}
