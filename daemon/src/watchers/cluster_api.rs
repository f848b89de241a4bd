//! `ipamd cluster-api`: the provider of one management cluster, in a process of its own.

use std::process::ExitCode;

use clap::{ArgAction, Args};
use ipam_api::name::Name;
use ipam_kubernetes::{ProviderSettings, provide};

use super::process::{self, ApiServerFlags, ServerFlags};
use crate::config::check_label_value;

/// Flags of `ipamd cluster-api`.
#[derive(Debug, Args)]
#[command(after_help = "The token needs --allow-shared, for the pools and subnets that the provider creates.

Examples:
  ipamd cluster-api --kubeconfig ~/.kube/config --server http://127.0.0.1:7440
  ipamd cluster-api --realm eu --server https://ipamd.example:7440 --token-file ./token --ca-file ./ca.crt")]
pub struct Flags {
    #[command(flatten)]
    servers: ServerFlags,
    /// Realm of the claims; the same for all clusters between which claims move.
    #[arg(long, default_value = "default")]
    realm: Name,
    #[command(flatten)]
    api_server: ApiServerFlags,
    /// Give each namespace a network of its own, so that pools of two may have the same addresses.
    #[arg(
        long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true,
        default_value_t = false, default_missing_value = "true"
    )]
    network_per_namespace: bool,
    /// Serve only objects with this value of the label cluster.x-k8s.io/watch-filter [default: all objects].
    #[arg(long, value_name = "VALUE", value_parser = watch_filter)]
    watch_filter: Option<String>,
}

/// Parses the value of the watch-filter label.
fn watch_filter(text: &str) -> Result<String, &'static str> {
    check_label_value(text).map(|()| text.to_owned())
}

impl Flags {
    /// Flags for the servers, and settings of the provider.
    fn settings(self) -> (ServerFlags, ProviderSettings) {
        let Self { servers, realm, api_server, network_per_namespace, watch_filter } = self;
        let ApiServerFlags { kubeconfig, context } = api_server;
        let defaults = ProviderSettings::new(realm);
        (servers, ProviderSettings { kubeconfig, context, network_per_namespace, watch_filter, ..defaults })
    }
}

/// Runs the command until SIGTERM or Ctrl-C.
#[must_use]
pub fn main(flags: Flags) -> ExitCode {
    let (servers, settings) = flags.settings();
    process::main(servers, settings.realm.clone(), |remote, status| provide(settings, remote, status))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        flags: Flags,
    }

    fn settings(words: &[&str]) -> Result<ProviderSettings, String> {
        let words = ["cluster-api", "--server=http://127.0.0.1:7440"].iter().chain(words);
        let line = Line::try_parse_from(words).map_err(|error| error.to_string())?;
        Ok(line.flags.settings().1)
    }

    #[test]
    fn flags_are_the_settings_of_the_provider() {
        let defaults = ProviderSettings::new(Name::default_name());
        assert_eq!(settings(&[]).unwrap(), defaults);
        // The arguments of the Deployment, without values of their variables.
        let variables = ["--realm=default", "--network-per-namespace=false"];
        assert_eq!(settings(&variables).unwrap(), defaults);
        let all = [
            "--realm=site",
            "--kubeconfig=/k",
            "--context=c",
            "--network-per-namespace",
            "--watch-filter",
            "blue",
        ];
        let expected = ProviderSettings {
            kubeconfig: Some(PathBuf::from("/k")),
            context: Some("c".to_owned()),
            network_per_namespace: true,
            watch_filter: Some("blue".to_owned()),
            ..ProviderSettings::new(Name::new("site").unwrap())
        };
        assert_eq!(settings(&all).unwrap(), expected);
        assert!(settings(&["--network-per-namespace=true"]).unwrap().network_per_namespace);
    }

    #[test]
    fn wrong_flags_are_refused() {
        for (words, says) in [
            (&["--watch-filter=a b"][..], "1 to 63 letters"),
            (&["--context=c"], "--kubeconfig"),
            (&["--realm=X"], "--realm"),
            (&["--network-per-namespace=maybe"], "--network-per-namespace"),
        ] {
            let refused = settings(words).unwrap_err();
            assert!(refused.contains(says), "{words:?}: {refused}");
        }
        assert!(Line::try_parse_from(["cluster-api"]).unwrap_err().to_string().contains("--server"));
    }
}
