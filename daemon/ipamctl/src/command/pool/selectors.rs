//! Selectors for the endpoints of a pool, as flags and as text.

use clap::Args;
use ipam_api::name::NetworkAttachment;
use ipam_api::resource::Pool;
use ipam_api::{Name, ObjectName, Selector};

use crate::command::arguments::replace_list;
use crate::output::text::{self, Fields};

/// Endpoints that may take from a pool; each flag narrows them.
#[derive(Debug, Default, Args)]
pub(crate) struct SelectorArguments {
    /// Restrict to endpoints on this node; may be repeated
    #[arg(long = "for-node", value_name = "NODE")]
    nodes: Vec<ObjectName>,
    /// Restrict to endpoints on nodes that match, as zone=a; conflicts with --for-node
    #[arg(long = "for-nodes", value_name = "SELECTOR", conflicts_with = "nodes")]
    node_selector: Option<Selector>,
    /// Restrict to endpoints of this namespace; may be repeated
    #[arg(long = "for-namespace", value_name = "NAMESPACE")]
    namespaces: Vec<ObjectName>,
    /// Restrict to endpoints of namespaces that match; conflicts with --for-namespace
    #[arg(long = "for-namespaces", value_name = "SELECTOR", conflicts_with = "namespaces")]
    namespace_selector: Option<Selector>,
    /// Restrict to endpoints that match, as app=web,!legacy
    #[arg(long = "for-endpoints", value_name = "SELECTOR")]
    endpoints: Option<Selector>,
    /// Restrict to endpoints of this realm; may be repeated
    #[arg(long = "for-realm", value_name = "REALM")]
    realms: Vec<Name>,
    /// Restrict to interfaces of this network attachment; may be repeated
    #[arg(long = "for-attachment", value_name = "ATTACHMENT")]
    attachments: Vec<NetworkAttachment>,
}

impl SelectorArguments {
    /// Writes the specified selectors into a pool. Other selectors stay.
    pub(super) fn apply(&self, pool: &mut Pool) {
        replace_list(&mut pool.node_names, &self.nodes);
        replace_list(&mut pool.namespaces, &self.namespaces);
        replace_list(&mut pool.realms, &self.realms);
        replace_list(&mut pool.network_attachments, &self.attachments);
        // Names take precedence over labels, so a label selector replaces the names.
        if let Some(selector) = &self.node_selector {
            pool.node_names.clear();
            pool.node_selector = selector.clone();
        }
        if let Some(selector) = &self.namespace_selector {
            pool.namespaces.clear();
            pool.namespace_selector = selector.clone();
        }
        if let Some(selector) = &self.endpoints {
            pool.endpoint_selector = selector.clone();
        }
    }
}

/// Names if there are any, otherwise the label selector.
fn either(names: String, selector: &Selector) -> String {
    if names == "-" { selector.to_string() } else { names }
}

/// Lines of `pool show`; none for a pool without selectors.
pub(super) fn lines(fields: &mut Fields, pool: &Pool) {
    let named = [
        ("nodes", either(text::joined(&pool.node_names), &pool.node_selector)),
        ("namespaces", either(text::joined(&pool.namespaces), &pool.namespace_selector)),
        ("endpoints", pool.endpoint_selector.to_string()),
        ("realms", text::joined(&pool.realms)),
        ("attachments", text::joined(&pool.network_attachments)),
    ];
    let said: Vec<String> = named
        .iter()
        .filter(|(_, who)| !who.is_empty() && who != "-")
        .map(|(kind, who)| format!("{kind} {who}"))
        .collect();
    if !said.is_empty() {
        fields.line("only for", said.join("   "));
    }
}
