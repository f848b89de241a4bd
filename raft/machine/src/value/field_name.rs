//! Names of the fields of specs.

use std::fmt::{self, Display};

use serde::{Deserialize, Serialize};

use crate::value::words::words;

words! {
    /// Field of a spec, by its name in the API. Variants are appended only: events store their index.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    pub enum FieldName {
        Gateway = "gateway",
        Vlan = "vlan",
        Mtu = "mtu",
        Routes = "routes",
        DnsNameservers = "dns.nameservers",
        DnsDomain = "dns.domain",
        DnsSearch = "dns.search",
        DnsOptions = "dns.options",
        Description = "description",
        Labels = "labels",
        Annotations = "annotations",
        ManagedBy = "managed_by",
        Ranges = "ranges",
        Exclude = "exclude",
        Strategy = "strategy",
        CoolingMs = "cooling_ms",
        StrictCooling = "strict_cooling",
        AllowEdges = "allow_edges",
        Default = "default",
        Realms = "realms",
        NodeNames = "node_names",
        NodeSelector = "node_selector",
        Namespaces = "namespaces",
        NamespaceSelector = "namespace_selector",
        EndpointSelector = "endpoint_selector",
        NetworkAttachments = "network_attachments",
        ScaleDown = "scale_down",
        Disabled = "disabled",
        Terminating = "terminating",
        DrainsTo = "drains_to",
        Reclaim = "reclaim",
        Quota = "quota",
        QuotaPerApplication = "quota.per_application",
        QuotaApplications = "quota.applications",
        DefaultIpv4Pools = "default_ipv4_pools",
        DefaultIpv6Pools = "default_ipv6_pools",
        Addresses = "addresses",
        ExpiresAt = "expires_at",
        Automatic = "automatic",
        ProbingConflicts = "probing.conflicts",
        ProbingGateway = "probing.gateway",
        ProbingValidMs = "probing.valid_ms",
        CoolingReserve = "cooling_reserve",
        Uid = "uid",
        Interfaces = "interfaces",
        Capture = "capture",
        DesiredState = "desired_state",
        MaxUnavailable = "max_unavailable",
        Endpoint = "endpoint",
    }
}

impl Display for FieldName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
