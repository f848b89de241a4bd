//! Rules of the specs in CEL, each with its message. The rules replace webhooks.
//!
//! Kubernetes supports the functions of these rules since 1.29. Rules that calculate with addresses need
//! 1.31, so the provider checks them instead, and shows a refusal as a condition.

/// Rules of pools of addresses.
pub(super) const IP: &[(&str, &str)] = &[
    (
        "has(self.poolRef) || (has(self.addresses) && size(self.addresses) > 0)",
        "addresses is required, unless there is a poolRef",
    ),
    ("has(self.poolRef) || has(self.prefix)", "a valid prefix is required, unless there is a poolRef"),
    (
        "!has(self.poolRef) || !((has(self.addresses) && size(self.addresses) > 0) || has(self.prefix) || \
         has(self.gateway) || (has(self.excludedAddresses) && size(self.excludedAddresses) > 0) || \
         (has(self.allocateReservedIPAddresses) && self.allocateReservedIPAddresses) || \
         has(self.addressReuseGracePeriodSeconds) || has(self.network))",
        "poolRef takes the place of all other fields",
    ),
    (
        "!has(self.addresses) || self.addresses.all(one, one.contains(':')) || \
         !self.addresses.exists(one, one.contains(':'))",
        "provided addresses are of mixed IP families",
    ),
    (
        "!has(self.addresses) || !has(self.prefix) || self.prefix <= 32 || \
         self.addresses.all(one, one.contains(':'))",
        "provided prefix is not valid: that of IPv4 is at most 32",
    ),
    (
        "!has(self.addresses) || !has(self.gateway) || \
         self.addresses.all(one, one.contains(':') == self.gateway.contains(':'))",
        "provided gateway and addresses are of mixed IP families",
    ),
    (
        "!has(self.addresses) || size(self.addresses) == 0 || !has(self.excludedAddresses) || \
         self.excludedAddresses.all(one, one.contains(':') == self.addresses[0].contains(':'))",
        "addresses and excluded addresses are of mixed IP families",
    ),
    CONSTANT_NETWORK,
    CONSTANT_POOL,
];

/// Rules of pools of prefixes.
pub(super) const PREFIX: &[(&str, &str)] = &[
    (
        "has(self.poolRef) || (has(self.prefixes) && size(self.prefixes) > 0)",
        "prefixes is required, unless there is a poolRef",
    ),
    (
        "!has(self.poolRef) || !((has(self.prefixes) && size(self.prefixes) > 0) || \
         (has(self.excludedPrefixes) && size(self.excludedPrefixes) > 0) || has(self.network))",
        "poolRef takes the place of prefixes, excludedPrefixes and network",
    ),
    (
        "!has(self.prefixes) || self.prefixes.all(one, one.contains(':')) || \
         !self.prefixes.exists(one, one.contains(':'))",
        "provided prefixes are of mixed IP families",
    ),
    (
        "!has(self.prefixes) || has(self.allocationPrefixLength) || \
         self.prefixes.all(one, one.contains(':'))",
        "allocationPrefixLength is required for IPv4",
    ),
    (
        "!has(self.prefixes) || !has(self.allocationPrefixLength) || self.allocationPrefixLength <= 32 || \
         self.prefixes.all(one, one.contains(':'))",
        "allocationPrefixLength of IPv4 is at most 32",
    ),
    (
        "!has(self.prefixes) || !has(self.gateway) || \
         self.prefixes.all(one, one.contains(':') == self.gateway.contains(':'))",
        "provided gateway and prefixes are of mixed IP families",
    ),
    (
        "!has(self.prefixes) || size(self.prefixes) == 0 || !has(self.excludedPrefixes) || \
         self.excludedPrefixes.all(one, one.contains(':') == self.prefixes[0].contains(':'))",
        "prefixes and excluded prefixes are of mixed IP families",
    ),
    (
        "(has(self.allocationPrefixLength) ? self.allocationPrefixLength : 64) == \
         (has(oldSelf.allocationPrefixLength) ? oldSelf.allocationPrefixLength : 64)",
        "allocationPrefixLength is immutable: create another pool",
    ),
    CONSTANT_NETWORK,
    CONSTANT_POOL,
];

const CONSTANT_NETWORK: (&str, &str) = (
    "has(self.network) == has(oldSelf.network) && (!has(self.network) || self.network == oldSelf.network)",
    "network is immutable: create another pool",
);

const CONSTANT_POOL: (&str, &str) = (
    "has(self.poolRef) == has(oldSelf.poolRef) && \
     (!has(self.poolRef) || self.poolRef.name == oldSelf.poolRef.name)",
    "poolRef is immutable: create another pool",
);

#[cfg(test)]
mod tests {
    use ipam_api::cluster_api::ALLOCATION_PREFIX_LENGTH_DEFAULT;

    use super::*;

    #[test]
    fn the_rule_of_the_block_length_has_the_default_of_the_type() {
        let rule = PREFIX.iter().find(|(_, message)| message.contains("immutable")).unwrap().0;
        assert_eq!(rule.matches(&format!(": {ALLOCATION_PREFIX_LENGTH_DEFAULT})")).count(), 2, "{rule}");
    }
}
