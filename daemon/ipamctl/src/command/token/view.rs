//! Tokens as text.

use ipam_api::time::Timestamp;
use ipam_api::token::{Purpose, Token};

use crate::output::table::Table;
use crate::output::text::{self, Fields};

/// Limits of a token.
fn limits(token: &Token) -> String {
    let mut limits = Vec::new();
    let joining = match token.purpose {
        Purpose::Bearer => None,
        Purpose::Join => Some("joining"),
        Purpose::JoinMember => Some("joining as a member"),
    };
    let used = if token.status.used { " (used)" } else { "" };
    limits.extend(joining.map(|joining| format!("{joining}{used}")));
    limits.extend(token.node.as_ref().map(|node| format!("node {node}")));
    limits.extend(token.replace.then(|| "replacing its tokens".to_owned()));
    limits.extend(token.realms.iter().map(|realm| format!("realm {realm}")));
    if !token.labels.is_empty() {
        limits.push(format!("labels {}", token.labels));
    }
    limits.extend(token.allow_shared.then(|| "shared resources allowed".to_owned()));
    text::dash(&limits.join(", "))
}

pub(super) fn expires(token: &Token, now: Timestamp) -> String {
    match token.status.expires_at {
        None => "never".to_owned(),
        Some(at) if at.0 <= now.0 => "expired".to_owned(),
        Some(at) => format!("in {}", text::roughly(at.0 - now.0)),
    }
}

/// The table of `token list`.
pub(super) fn table(tokens: &[Token], wide: bool, now: Timestamp) -> Table {
    Table::of(tokens)
        .text("NAME", |token| &token.name)
        .text("ROLE", |token| token.role.as_str())
        .text("LIMITED TO", limits)
        .text("EXPIRES", |token| expires(token, now))
        .spare("CREATED", 1, |token| format!("{} ago", text::age(token.meta.created_at, now)))
        .spare("BY", 2, |token| text::dash(&token.meta.created_by))
        .only_if(wide)
        .spare("DESCRIPTION", 3, |token| text::dash(&token.description))
        .table()
}

/// The text of `token show`.
pub(super) fn shown(token: &Token, now: Timestamp) -> String {
    let mut fields = Fields::default();
    fields.raw(&text::heading("token", token.name.as_str(), &token.meta, None));
    fields.line("role", token.role.as_str().to_owned());
    fields.line("limited to", limits(token));
    match token.status.expires_at {
        Some(at) => fields.line("expires", format!("{} ({})", text::moment(at), expires(token, now))),
        None => fields.line("expires", "never"),
    }
    fields.line_if("description", &token.description);
    fields.line("created", format!("{} by {}", text::moment(token.meta.created_at), token.meta.created_by));
    fields.text()
}
