//! Every outward name in one place: ports, paths, prefixes, headers.

/// Display name of the product.
pub const PRODUCT: &str = "ipamd";
/// Port on which members answer clients over HTTP.
pub const CLIENT_PORT: u16 = 7440;
/// Port on which members talk to each other.
pub const PEER_PORT: u16 = 7441;
/// Path of the daemon's configuration file.
pub const CONFIG_FILE: &str = "/etc/ipamd/ipamd.toml";
/// Path of the daemon's data directory.
pub const DATA_DIR: &str = "/var/lib/ipamd";
/// Prefix of the daemon's environment names.
pub const DAEMON_ENV_PREFIX: &str = "IPAMD_";
/// Prefix of the environment names of Meridio's server, which enable its front end.
pub const MERIDIO_ENV_PREFIX: &str = "IPAM_";
/// Port on which the front end answers Meridio's clients.
pub const MERIDIO_PORT: u16 = 7777;
/// Path of Meridio's unix socket for health checks.
pub const MERIDIO_SOCKET: &str = "/tmp/health.sock";
/// Folder of the data directory beside the database of Meridio's server.
pub const MERIDIO_DATA_FOLDER: &str = "ipamd";
/// Environment variable with the servers of `ipamctl` and the plugin.
pub const SERVERS_ENV: &str = "IPAM_SERVERS";
/// Environment variable with the context of `ipamctl`, which names the servers.
pub const CONTEXT_ENV: &str = "IPAM_CONTEXT";
/// Environment variable with the path of the token file.
pub const TOKEN_FILE_ENV: &str = "IPAM_TOKEN_FILE";
/// Environment variable with the path of the trusted CA certificates.
pub const CA_FILE_ENV: &str = "IPAM_CA_FILE";
/// Environment variable with the path of the client certificate.
pub const CERT_FILE_ENV: &str = "IPAM_CERT_FILE";
/// Environment variable with the path of the client certificate's key.
pub const KEY_FILE_ENV: &str = "IPAM_KEY_FILE";
/// Path of `ipamctl`'s configuration file, relative to the user's configuration directory.
pub const CTL_CONFIG_FILE: &str = "ipamctl/config.toml";
/// Environment variable with the time limit of a plugin run, in milliseconds.
pub const CNI_DEADLINE_ENV: &str = "IPAM_CNI_DEADLINE_MS";
/// Environment variable with the filter of the agent's log.
pub const AGENT_LOG_ENV: &str = "IPAM_AGENT_LOG";
/// Path of the agent's configuration file.
pub const AGENT_CONFIG_FILE: &str = "/etc/ipamd/agent.toml";
/// Path of the agent's state directory.
pub const AGENT_STATE_DIR: &str = "/var/lib/ipam-agent";
/// Path of the unix socket on which the agent serves the plugin.
pub const AGENT_SOCKET: &str = "/run/ipamd/agent.sock";
/// Protocol number of the addresses (`IFA_PROTO`) and routes (`rtm_protocol`) that the agent adds to its
/// host.
pub const NETLINK_PROTOCOL: u8 = 180;
/// `ipam.type` in a CNI network configuration, and the plugin's file name.
pub const CNI_TYPE: &str = "ipam-cni";
/// Default name of a network, realm and namespace.
pub const DEFAULT: &str = "default";
/// Annotation with a resource's name in the system that it was imported from, where that differs.
pub const FOREIGN_NAME: &str = "ipamd.internal/foreign-name";
/// API group of the custom resources in Kubernetes.
pub const KUBERNETES_GROUP: &str = "ipamd.internal";
/// Annotation that requests a reset of a `NodeIPPool`, a `HostPolicy` or a policy for one node. Each value is
/// handled once.
pub const KUBERNETES_RESET: &str = "ipamd.internal/reset";
/// Name of the same annotation in the proposal for kubernetes-nmstate.
pub const NMSTATE_RESET: &str = "nmstate.io/reset-ippool";
/// API group of kubernetes-nmstate.
pub const NMSTATE_GROUP: &str = "nmstate.io";
/// Label of Kubernetes with the program that manages an object.
pub const KUBERNETES_MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// Label of Kubernetes with the host name of a node.
pub const HOSTNAME_LABEL: &str = "kubernetes.io/hostname";
/// Label of a policy of kubernetes-nmstate: the host policy that it is rendered from.
pub const HOST_POLICY_LABEL: &str = "ipamd.internal/host-policy";
/// Label of a policy of kubernetes-nmstate: the realm of its node.
pub const REALM_LABEL: &str = "ipamd.internal/realm";
/// Annotation of a policy of kubernetes-nmstate: its node.
pub const HOST_POLICY_NODE: &str = "ipamd.internal/node";
/// Annotation of a policy of kubernetes-nmstate: digest of the template.
pub const HOST_POLICY_TEMPLATE: &str = "ipamd.internal/template";
/// Annotation of a policy of kubernetes-nmstate: digest of its spec when it was written.
pub const HOST_POLICY_RENDERED: &str = "ipamd.internal/rendered";
/// Annotation of a policy of kubernetes-nmstate: the last reset of the host policy that its addresses
/// reflect.
pub const HOST_POLICY_RESET: &str = "ipamd.internal/observed-reset";
/// API group of the pool kinds for Cluster API.
pub const CLUSTER_API_GROUP: &str = "ipam.ipamd.internal";
/// Finalizer of claims, addresses and pools of Cluster API that a provider of ipamd serves.
pub const CLUSTER_API_FINALIZER: &str = "ipam.ipamd.internal/release";
/// Annotation of a claim of Cluster API with the address that it requests.
pub const CLUSTER_API_ADDRESS: &str = "ipam.ipamd.internal/address";
/// Annotation of a mirrored node: the state of the node in Kubernetes.
pub const NODE_STATE: &str = "ipamd.internal/kubernetes-state";
/// Suffix of the DNS name that identifies a member in a certificate, after the member's name.
pub const CERTIFICATE_MEMBER_SUFFIX: &str = ".member.ipamd.internal";
/// Suffix of the DNS name that identifies a client in a certificate, after the client's name.
pub const CERTIFICATE_CLIENT_SUFFIX: &str = ".client.ipamd.internal";
/// Suffix of the DNS name that identifies a node in a certificate, after `NODE.REALM`.
pub const CERTIFICATE_NODE_SUFFIX: &str = ".node.ipamd.internal";
/// Principal of a caller without credentials.
pub const ANONYMOUS: &str = "anonymous";
/// Prefix of a token's secret, so that a secret in the wrong place is recognised.
pub const SECRET_PREFIX: &str = "ipamd_";
/// Prefix of the URIs of problem types; the code is appended.
pub const PROBLEM_TYPE_PREFIX: &str = "/docs/problems#";

/// Response header: revision of the state that the answer shows.
pub const HEADER_REVISION: &str = "revision";
/// Response and request header: names the request in logs and events.
pub const HEADER_REQUEST_ID: &str = "request-id";
/// Response header: the client URL of the member that leads, where known.
pub const HEADER_LEADER: &str = "leader";
/// Response header of a stale read: milliseconds since this member last heard from a leader.
pub const HEADER_STALE_MS: &str = "stale-ms";
/// Request header: remaining time that the caller waits, in milliseconds.
pub const HEADER_BUDGET_MS: &str = "budget-ms";
/// Request header: key by which the servers recognise a repeated write.
pub const HEADER_IDEMPOTENCY_KEY: &str = "idempotency-key";
/// Request header: reason for a change, recorded in its events.
pub const HEADER_CHANGE_COMMENT: &str = "change-comment";
/// Response header of a dry run, which changed nothing.
pub const HEADER_DRY_RUN: &str = "dry-run";
/// Response header: durations of the phases of a request.
pub const HEADER_SERVER_TIMING: &str = "server-timing";
/// Response header: the answer is the stored answer to an earlier request with the same key.
pub const HEADER_IDEMPOTENCY_REPLAYED: &str = "idempotency-replayed";
/// Request header: the trace that a request belongs to (W3C Trace Context).
pub const HEADER_TRACE_PARENT: &str = "traceparent";
/// Request header of the plugin to the agent: device, inode and path of the container's network namespace.
pub const HEADER_NETNS: &str = "cni-netns";
/// Request header of the plugin to the agent: name of the runtime that runs the container.
pub const HEADER_RUNTIME: &str = "cni-runtime";
/// Request header of the plugin to the agent: host interface to which the main plugin connects containers.
/// Their addresses belong to its link.
pub const HEADER_LINK: &str = "cni-link";
/// Request header of the plugin to the agent: `node` if the main plugin assigns the gateway's address to the
/// node.
pub const HEADER_GATEWAY: &str = "cni-gateway";
/// Request header of the plugin to the agent: MAC address of the container's interface, whose IPv4 addresses
/// the agent announces on the link.
pub const HEADER_ANNOUNCE: &str = "cni-announce";
/// Value of [`HEADER_GATEWAY`].
pub const GATEWAY_OF_NODE: &str = "node";
