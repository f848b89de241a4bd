//! How tokens look.

use ipam_api::resource::Meta;
use ipam_api::time::Timestamp;
use serde::Deserialize;

use crate::output::table::Table;
use crate::output::text::{self, Fields};

/// A token as it is read; never its secret.
#[derive(Debug, Deserialize)]
pub(super) struct Token {
    pub(super) name: String,
    #[serde(default)]
    role: String,
    #[serde(default)]
    node: Option<Node>,
    #[serde(default)]
    realms: Vec<String>,
    #[serde(default)]
    labels: Option<String>,
    #[serde(default)]
    description: String,
    meta: Meta,
    #[serde(default)]
    status: Status,
}

/// The node that a token is for.
#[derive(Debug, Deserialize)]
struct Node {
    realm: String,
    name: String,
}

/// What is the case.
#[derive(Debug, Default, Deserialize)]
struct Status {
    #[serde(default)]
    expires_at: Option<Timestamp>,
}

impl Token {
    /// What it is limited to.
    fn limits(&self) -> String {
        let mut limits = Vec::new();
        limits.extend(self.node.as_ref().map(|node| format!("node {}/{}", node.realm, node.name)));
        limits.extend(self.realms.iter().map(|realm| format!("realm {realm}")));
        limits.extend(
            self.labels.iter().filter(|labels| !labels.is_empty()).map(|labels| format!("labels {labels}")),
        );
        text::dash(&limits.join(", "))
    }

    fn expires(&self, now: Timestamp) -> String {
        match self.status.expires_at {
            None => "never".to_owned(),
            Some(at) if at.0 <= now.0 => "expired".to_owned(),
            Some(at) => format!("in {}", text::roughly(at.0 - now.0)),
        }
    }
}

/// The table of `token list`.
pub(super) fn table(tokens: &[Token], wide: bool, now: Timestamp) -> Table {
    let mut table = Table::new()
        .text("NAME")
        .text("ROLE")
        .text("LIMITED TO")
        .text("EXPIRES")
        .spare("CREATED", 1)
        .spare("BY", 2);
    if wide {
        table = table.spare("DESCRIPTION", 3);
    }
    for token in tokens {
        table.row([
            token.name.clone(),
            text::dash(&token.role),
            token.limits(),
            token.expires(now),
            format!("{} ago", text::age(token.meta.created_at, now)),
            text::dash(&token.meta.created_by),
            text::dash(&token.description),
        ]);
    }
    table
}

/// The text of `token show`.
pub(super) fn shown(token: &Token, now: Timestamp) -> String {
    let mut fields = Fields::default();
    fields.raw(&text::heading("token", &token.name, &token.meta, None));
    fields.line("role", text::dash(&token.role));
    fields.line("limited to", token.limits());
    match token.status.expires_at {
        Some(at) => fields.line("expires", format!("{} ({})", text::moment(at), token.expires(now))),
        None => fields.line("expires", "never"),
    }
    fields.line_if("description", &token.description);
    fields.line("created", format!("{} by {}", text::moment(token.meta.created_at), token.meta.created_by));
    fields.text()
}
