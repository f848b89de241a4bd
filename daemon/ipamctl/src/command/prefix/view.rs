//! Prefixes as tables and text.

use ipam_api::resource::Prefix;
use ipam_api::time::Timestamp;

use crate::output::table::Table;
use crate::output::text::{self, Fields};

/// CIDR of a prefix, or the length that its request waits for.
pub(crate) fn block(prefix: &Prefix) -> String {
    match (prefix.cidr, prefix.length) {
        (Some(cidr), _) => cidr.to_string(),
        (None, Some(length)) => format!("/{length}"),
        (None, None) => "-".to_owned(),
    }
}

pub(super) fn ends(prefix: &Prefix) -> String {
    prefix.ends_in_ms.map_or_else(
        || "it lasts until released".to_owned(),
        |left| format!("it ends in {} unless renewed", text::roughly(left)),
    )
}

pub(super) fn table(prefixes: &[Prefix], wide: bool, now: Timestamp) -> Table {
    Table::of(prefixes)
        .number("ID", |prefix| prefix.id)
        .text("CIDR", block)
        .text("OWNER", |prefix| &prefix.path)
        .spare("POOL", 1, |prefix| &prefix.pool)
        .spare("STATE", 2, |prefix| match &prefix.waiting {
            Some(why) => format!("waits ({})", why.reason),
            None => "delegated".to_owned(),
        })
        .spare("BELOW", 3, |prefix| text::count(prefix.children))
        .spare("ENDS IN", 2, |prefix| text::or_dash(prefix.ends_in_ms.map(text::roughly).as_ref()))
        .spare("AGE", 4, |prefix| text::age(prefix.created_at, now))
        .only_if(wide)
        .spare("REALM", 5, |prefix| &prefix.realm)
        .spare("NETWORK", 6, |prefix| &prefix.network)
        .spare("SUBNET", 7, |prefix| &prefix.subnet)
        .spare("BY", 8, |prefix| text::dash(&prefix.created_by))
        .table()
}

pub(super) fn shown(prefix: &Prefix, now: Timestamp) -> String {
    let mut fields = Fields::default();
    fields.line("prefix", prefix.id);
    match &prefix.waiting {
        Some(why) => {
            let since = text::made(prefix.created_at, &prefix.created_by, now);
            fields.line(
                "waits",
                format!("for {}, since {since}: {} ({})", block(prefix), why.message, why.reason),
            );
        }
        None => fields.line("cidr", block(prefix)),
    }
    fields.line(
        "from",
        format!("pool {}   subnet {}   network {}", prefix.pool, prefix.subnet, prefix.network),
    );
    fields.some("cut from", prefix.parent.map(|parent| format!("prefix {parent}")));
    fields.line("owner", format!("{}   realm {}", prefix.path, prefix.realm));
    fields.line("below", text::plural(prefix.children, "prefix", "prefixes"));
    fields.line("edges", if prefix.keep_edges { "never given" } else { "given" });
    fields.line("ends", ends(prefix));
    fields.line("since", text::made(prefix.created_at, &prefix.created_by, now));
    fields.text()
}

#[cfg(test)]
pub(super) fn sample() -> Prefix {
    serde_json::from_value(serde_json::json!({
        "id": 7, "cidr": "172.0.0.0/24", "network": "default", "subnet": "lan", "pool": "trench", "parent": 4,
        "realm": "default", "owner": "node-1", "path": "conduit-a/node-1", "keep_edges": true,
        "ttl_ms": 2_400_000u64, "ends_in_ms": 2_390_000u64, "children": 2,
        "created_at": "2026-11-19T22:13:10Z", "created_by": "anna"
    }))
    .unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_shown_with_all_that_is_known_of_it() {
        let text = shown(&sample(), sample().created_at);
        for part in ["172.0.0.0/24", "prefix 4", "conduit-a/node-1", "2 prefixes", "never given", "by anna"] {
            assert!(text.contains(part), "{part} in {text}");
        }
        let rows = table(&[sample()], true, sample().created_at).render(true, None);
        assert!(rows.contains("172.0.0.0/24") && rows.contains("conduit-a/node-1"), "{rows}");
    }
}
