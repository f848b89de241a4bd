//! Access of service accounts: their tokens, and the roles that are bound to them.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::path::{Place, parameter};
use crate::server::State;
use crate::status::Refusal;
use crate::store::Key;

const ACCESS: &str = "rbac.authorization.k8s.io";

/// Service account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

/// Accounts by their tokens; none for an administrator. An empty map accepts requests without a token.
pub(crate) type Tokens = BTreeMap<String, Option<Account>>;

/// Account of a request; none for an administrator.
///
/// # Errors
/// 401.
pub(crate) fn authenticate(tokens: &Tokens, authorization: &str) -> Result<Option<Account>, Refusal> {
    let token = authorization.strip_prefix("Bearer ").unwrap_or_default();
    match tokens.get(token) {
        Some(account) => Ok(account.clone()),
        None if tokens.is_empty() => Ok(None),
        None => Err(Refusal::new(401, "Unauthorized")),
    }
}

impl Account {
    /// Checks that a role permits a verb.
    ///
    /// # Errors
    /// 403.
    pub(crate) fn check(&self, state: &State, verb: &str, place: &Place, query: &str) -> Result<(), Refusal> {
        let rules = self.rules(state, place.namespace.as_deref());
        if rules.iter().any(|rule| permits(rule, verb, place, query)) {
            return Ok(());
        }
        let Self { namespace, name: account } = self;
        let (plural, group) = (resource(place), &place.resource.group);
        let object = place.name.as_ref().map(|name| format!(" {name:?}")).unwrap_or_default();
        let scope = match &place.namespace {
            Some(namespace) => format!("in the namespace {namespace:?}"),
            None => "at the cluster scope".to_owned(),
        };
        Err(Refusal::new(
            403,
            format!(
                "{}{object} is forbidden: User \"system:serviceaccount:{namespace}:{account}\" cannot {verb} \
                 resource {plural:?} in API group {group:?} {scope}",
                place.qualified(),
            ),
        ))
    }

    /// Rules of the roles that are bound to the account in the whole cluster, or in a namespace.
    fn rules<'a>(&self, state: &'a State, namespace: Option<&str>) -> Vec<&'a Value> {
        let is_self = |subject: &Value| {
            subject["kind"] == "ServiceAccount"
                && subject["name"] == self.name.as_str()
                && subject["namespace"] == self.namespace.as_str()
        };
        let objects = || state.store.objects.iter().filter(|(key, _)| key.group == ACCESS);
        let is_here = |key: &Key| key.namespace.is_empty() || Some(key.namespace.as_str()) == namespace;
        let bindings =
            objects().filter(|(key, binding)| is_here(key) && list(&binding["subjects"]).any(is_self));
        let roles = bindings.flat_map(|(key, binding)| {
            let of = &binding["roleRef"];
            let is_of = move |role: &Value, at: &Key| {
                role["kind"] == of["kind"]
                    && role["metadata"]["name"] == of["name"]
                    && (at.namespace.is_empty() || at.namespace == key.namespace)
            };
            objects().filter(move |(at, role)| is_of(role, at))
        });
        roles.flat_map(|(_, role)| list(&role["rules"])).collect()
    }
}

fn permits(rule: &Value, verb: &str, place: &Place, query: &str) -> bool {
    let has = |key: &str, word: &str| list(&rule[key]).any(|one| one == word || one == "*");
    let selected = || Some(parameter(query, "fieldSelector")?.strip_prefix("metadata.name=")?.to_owned());
    let is_named = rule["resourceNames"].is_null()
        || place.name.clone().or_else(selected).is_some_and(|name| has("resourceNames", &name));
    has("apiGroups", &place.resource.group)
        && has("resources", &resource(place))
        && has("verbs", verb)
        && is_named
}

/// Resource as rules name it, with the subresource after a slash.
pub(crate) fn resource(place: &Place) -> String {
    match &place.subresource {
        Some(subresource) => format!("{}/{subresource}", place.resource.plural),
        None => place.resource.plural.clone(),
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}
