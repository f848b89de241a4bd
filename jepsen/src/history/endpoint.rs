//! Names of endpoints in a history.

use ipam_api::resource::EndpointKey;

/// Name of an endpoint in a history: `kind/realm/namespace/name`.
#[must_use]
pub fn endpoint_name(key: &EndpointKey) -> String {
    format!("{}/{}/{}/{}", key.kind, key.realm, key.namespace, key.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_endpoints_are_complete() {
        let key: EndpointKey = "host/db-07".parse().unwrap();
        assert_eq!(endpoint_name(&key), "host/default/default/db-07");
    }
}
