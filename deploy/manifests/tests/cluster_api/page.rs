//! Objects, fields and variables of the page about Cluster API. A test of the daemon runs its commands.

use std::collections::BTreeSet;

use ipam_manifests::documents;
use reqwest::Method;
use serde_json::Value;

use super::kinds::Server;
use super::{components, file, substitute};

fn page() -> String {
    crate::file("deploy/docs/cluster-api.md")
}

/// First cells of the table below a line.
fn cells(below: &str) -> BTreeSet<String> {
    let page = page();
    let (_, table) = page.split_once(below).unwrap_or_else(|| panic!("no {below}"));
    let rows = table.lines().skip_while(|line| !line.starts_with("|---"));
    let rows = rows.skip(1).take_while(|line| line.starts_with('|'));
    rows.map(|row| row.split('`').nth(1).unwrap().to_owned()).collect()
}

/// Objects of the page.
fn objects() -> Vec<Value> {
    let page = page();
    let blocks = page.split("```yaml\n").skip(1).map(|block| block.split("```").next().unwrap());
    let texts: Vec<&str> = blocks.filter(|block| block.starts_with("apiVersion:")).collect();
    documents(&texts.join("---\n")).unwrap()
}

#[tokio::test]
async fn the_pools_of_the_page_are_accepted() {
    let server = Server::start().await;
    let objects = objects();
    let pools: Vec<&Value> =
        objects.iter().filter(|one| one["apiVersion"] == "ipam.ipamd.internal/v1").collect();
    let kinds: BTreeSet<&str> = pools.iter().map(|pool| pool["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, BTreeSet::from(["GlobalIPPool", "GlobalPrefixPool", "IPPool", "PrefixPool"]));
    for pool in pools {
        let plural = format!("{}s", pool["kind"].as_str().unwrap().to_lowercase());
        let created = server.send(Method::POST, &super::kinds::collection(&plural), pool).await.unwrap();
        assert_eq!(created["spec"], pool["spec"], "a field is unknown");
    }
}

#[test]
fn the_claims_of_the_page_name_pools_of_the_page() {
    let objects = objects();
    let claims: Vec<&Value> = objects.iter().filter(|one| one["kind"] == "IPAddressClaim").collect();
    assert_eq!(claims.len(), 2);
    for claim in claims {
        let reference = &claim["spec"]["poolRef"];
        assert_eq!(reference["apiGroup"], "ipam.ipamd.internal");
        let is_it = |pool: &&Value| {
            let namespace = &pool["metadata"]["namespace"];
            pool["kind"] == reference["kind"]
                && pool["metadata"]["name"] == reference["name"]
                && (namespace.is_null() || *namespace == claim["metadata"]["namespace"])
        };
        assert!(objects.iter().any(|pool| is_it(&pool)), "{claim}");
    }
}

#[test]
fn the_tables_of_the_page_are_complete() {
    let objects = components();
    for (heading, kind) in [("`IPPool` and", "IPPool"), ("`PrefixPool` and", "PrefixPool")] {
        let definition = objects.iter().find(|one| one["spec"]["names"]["kind"] == kind).unwrap();
        let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        let fields = schema["properties"]["spec"]["properties"].as_object().unwrap();
        assert_eq!(cells(&format!("\n{heading}")), fields.keys().cloned().collect(), "{kind}");
    }
    let text = file("ipam-components.yaml");
    let variables = substitute::names(&text).into_iter().map(|(name, _)| name.to_owned());
    assert_eq!(cells("clusterctl init --ipam ipamd\n"), variables.collect());
    let page = page();
    for (name, default) in substitute::names(&text) {
        let default = match default {
            Some("") => "all objects".to_owned(),
            Some(default) => format!("`{default}`"),
            None => "required".to_owned(),
        };
        let row = page.lines().find(|line| line.starts_with(&format!("| `{name}`"))).unwrap();
        assert!(row.ends_with(&format!("| {default} |")), "{row}");
    }
}
