//! `pool offset`: both conversions, excluded addresses, and offsets that a pool does not have.

use super::*;

/// The /16 example of the proposal, and an IPv6 pool. Their maps contain the excluded addresses.
fn pools(method: &str, path: &str, _: usize) -> Option<(u16, Value)> {
    if method != "GET" {
        return None;
    }
    if let Some((_, from)) = path.split_once("/map?from=") {
        let from = from.split('&').next().unwrap();
        let state =
            if ["10.10.11.5", "10.10.12.7", "10.10.12.0"].contains(&from) { "excluded" } else { "free" };
        let run =
            json!({"first": from, "last": from, "size": 1, "state": state, "reserved_while_held": false});
        return Some((200, json!({"items": [run], "revision": 7})));
    }
    let mut pool = world::world(method, path, 0)?.1;
    pool["ranges"] = json!(["10.10.11.4-10.10.12.10"]);
    pool["exclude"] = json!(["10.10.11.5", "10.10.12.7"]);
    if path.ends_with("six") {
        pool["ranges"] = json!([]);
        pool["status"]["family"] = json!(6);
        pool["status"]["cidr"] = json!("2001:db8::/64");
    }
    Some((200, pool))
}

#[tokio::test]
async fn n5_2_offsets_are_explained_both_ways() {
    let (server, _) = pretend(pools).await;
    for (place, offset, address, excluded) in [
        ("17", json!(17), "10.10.11.21", false),
        ("251", json!(251), "10.10.12.1", false),
        ("10.10.12.1", json!(251), "10.10.12.1", false),
        ("1", json!(1), "10.10.11.5", true),
        ("10.10.12.7", json!(257), "10.10.12.7", true),
        ("10.10.12.0", json!(null), "10.10.12.0", true),
    ] {
        let (result, text) = run(&server, &format!("pool offset traffic {place} -o json")).await;
        assert_eq!(code(&result), 0, "{result:?}");
        let shown: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((&shown["offset"], &shown["address"]), (&offset, &json!(address)), "{place}");
        assert_eq!(shown["excluded"], excluded, "{place}: {shown}");
    }
    let (_, text) = run(&server, "pool offset traffic 1").await;
    assert!(text.contains("10.10.11.5") && text.contains("excluded: it keeps its offset"), "{text}");
    let (_, text) = run(&server, "pool offset traffic 10.10.12.0").await;
    assert!(text.contains("none: the last octet is 0 or 255"), "{text}");
    let (_, text) = run(&server, "pool offset six 18446744073709551615 -o json").await;
    assert!(
        text.contains("\"18446744073709551615\"") && text.contains("2001:db8::ffff:ffff:ffff:ffff"),
        "{text}"
    );
}

#[tokio::test]
async fn n5_2_places_outside_the_pool_are_refused() {
    let (server, _) = pretend(pools).await;
    for (place, exit, said) in [
        ("261", 3, "behind the last address"),
        ("10.10.12.11", 3, "has no address"),
        ("::1", 3, "has no address"),
    ] {
        let (result, _) = run(&server, &format!("pool offset traffic {place}")).await;
        assert_eq!(code(&result), exit, "{place}: {result:?}");
        assert!(result.unwrap_err().text(false).unwrap().contains(said), "{place}");
    }
    for place in ["x", "-1", "1.5", "340282366920938463463374607431768211456"] {
        assert!(parse(&format!("ipamctl pool offset traffic {place}")).is_err(), "{place}");
    }
}
