//! `[[cluster_api]]`: the management clusters of Cluster API whose claims the leader serves.

use std::path::PathBuf;

use ipam_api::name::Name;
use serde::{Deserialize, Serialize};

use super::api_server::Sections;
use super::error::{ConfigError, wrong};

const SECTIONS: Sections = Sections("cluster_api");

/// Maximum length of a Kubernetes label value, in characters.
const LABEL_VALUE_CHARS_MAX: usize = 63;

/// One section of the file.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileClusterApi {
    /// Realm of the claims. Management clusters that move clusters between each other share one realm.
    pub(super) realm: Option<String>,
    /// File with the address of the API server and credentials; absent: those of the pod's service account.
    pub(super) kubeconfig: Option<PathBuf>,
    /// Context of that file; absent: its current one.
    pub(super) context: Option<String>,
    /// True if each namespace has a network of its own; by default pools are in the network `default`.
    pub(super) network_per_namespace: Option<bool>,
    /// Value of the label `cluster.x-k8s.io/watch-filter` of the objects to serve; absent: all objects.
    pub(super) watch_filter: Option<String>,
}

/// Provider of one management cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterApiSettings {
    /// Realm of the claims.
    pub realm: Name,
    /// File with the API server; none for the service account of the pod.
    pub kubeconfig: Option<PathBuf>,
    /// Context of that file; none for its current one.
    pub context: Option<String>,
    /// True if each namespace has a network of its own.
    pub network_per_namespace: bool,
    /// Value of the label of the objects to serve; none for all objects.
    pub watch_filter: Option<String>,
}

/// Completes and checks all sections. Two sections may not serve the same objects.
pub(super) fn complete(sections: Vec<FileClusterApi>) -> Result<Vec<ClusterApiSettings>, ConfigError> {
    SECTIONS.check_count(sections.len())?;
    let mut all: Vec<ClusterApiSettings> = Vec::new();
    for section in sections {
        let one = section.complete()?;
        if all.iter().any(|other| other.served() == one.served()) {
            let why = "two sections name the same objects; each claim needs one provider";
            return Err(wrong("cluster_api.kubeconfig", why));
        }
        all.push(one);
    }
    Ok(all)
}

impl FileClusterApi {
    fn complete(self) -> Result<ClusterApiSettings, ConfigError> {
        let Self { realm, kubeconfig, context, network_per_namespace, watch_filter } = self;
        let realm = SECTIONS.realm(realm)?;
        SECTIONS.check_context(context.as_deref(), kubeconfig.as_deref())?;
        if let Some(Err(why)) = watch_filter.as_deref().map(check_label_value) {
            return Err(wrong("cluster_api.watch_filter", why));
        }
        let network_per_namespace = network_per_namespace.unwrap_or_default();
        Ok(ClusterApiSettings { realm, kubeconfig, context, network_per_namespace, watch_filter })
    }
}

impl ClusterApiSettings {
    /// Returns the settings that together identify the objects that the provider serves.
    fn served(&self) -> (&Option<PathBuf>, &Option<String>, &Option<String>) {
        (&self.kubeconfig, &self.context, &self.watch_filter)
    }

    /// Refuses a file that can't be opened.
    pub(super) fn open(&self) -> Result<(), ConfigError> {
        SECTIONS.open(self.kubeconfig.as_deref())
    }
}

/// Refuses a text that is not a valid Kubernetes label value.
///
/// # Errors
/// The form of such values.
pub fn check_label_value(text: &str) -> Result<(), &'static str> {
    let is_end = |at: Option<char>| at.is_some_and(|c| c.is_ascii_alphanumeric());
    let is_inner = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let ends = is_end(text.chars().next()) && is_end(text.chars().next_back());
    if ends && text.chars().all(is_inner) && text.len() <= LABEL_VALUE_CHARS_MAX {
        return Ok(());
    }
    Err("1 to 63 letters, digits, '-', '_' and '.' are allowed, with a letter or digit at both ends")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::flags::Flags;
    use crate::config::settings::tests::load;

    fn settings(sections: &str) -> Result<Vec<ClusterApiSettings>, String> {
        let file = format!("name = \"a\"\n{sections}");
        load(&file, &Flags::default(), &[])
            .map(|config| config.cluster_api)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_section_without_keys_serves_all_objects_for_the_default_realm() {
        let expected = ClusterApiSettings {
            realm: Name::default_name(),
            kubeconfig: None,
            context: None,
            network_per_namespace: false,
            watch_filter: None,
        };
        assert_eq!(settings("[[cluster_api]]").unwrap(), [expected]);
        assert_eq!(settings("").unwrap(), []);
    }

    #[test]
    fn sections_may_have_the_same_realm() {
        let two = "[[cluster_api]]\nrealm = \"r\"\nkubeconfig = \"a\"\ncontext = \"c\"\n\
                   [[cluster_api]]\nrealm = \"r\"\nkubeconfig = \"b\"\nnetwork_per_namespace = true\n\
                   [[cluster_api]]\nrealm = \"r\"\nkubeconfig = \"b\"\nwatch_filter = \"blue\"\n";
        let all = settings(two).unwrap();
        assert!(all.iter().all(|one| one.realm.as_str() == "r"));
        assert_eq!(
            (&all[0].context, all[1].network_per_namespace, &all[2].watch_filter),
            (&Some("c".to_owned()), true, &Some("blue".to_owned()))
        );
    }

    #[test]
    fn mistakes_are_named() {
        let many = "[[cluster_api]]\n".repeat(17);
        for (sections, says) in [
            ("[[cluster_api]]\nrealm = \"X\"", "cluster_api.realm"),
            ("[[cluster_api]]\ncontext = \"x\"", "cluster_api.context: name the kubeconfig"),
            ("[[cluster_api]]\nwatch_filter = \"\"", "cluster_api.watch_filter: 1 to 63"),
            ("[[cluster_api]]\nwatch_filter = \"a=b\"", "cluster_api.watch_filter: 1 to 63"),
            ("[[cluster_api]]\nverify = true", "unknown field"),
            ("[[cluster_api]]\n[[cluster_api]]\nrealm = \"r\"", "two sections name the same objects"),
            (&many, "cluster_api: 17 sections; at most 16 fit"),
        ] {
            let refused = settings(sections).unwrap_err();
            assert!(refused.contains(says), "{sections}: {refused}");
        }
    }

    #[test]
    fn values_of_labels_have_their_form() {
        for value in ["a", "A.b-c_9", &"x".repeat(63)] {
            check_label_value(value).unwrap();
        }
        for value in ["", "-a", "a-", ".", "a b", "ä", &"x".repeat(64)] {
            check_label_value(value).unwrap_err();
        }
    }
}
