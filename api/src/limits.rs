//! All limits in one place. Relations between them are checked at compile time.

/// One limit, as data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// Name of the constant; it contains the unit.
    pub name: &'static str,
    /// Value, in the unit of the name.
    pub value: u64,
    /// Bounded quantity, in one sentence.
    pub meaning: &'static str,
}

/// Declares the limits and the list [`ALL`].
macro_rules! limits {
    ($($(#[doc = $line:literal])+ pub const $name:ident: $kind:ty = $value:expr;)+) => {
        $($(#[doc = $line])+ pub const $name: $kind = $value;)+

        /// All limits, in the order of this file.
        pub const ALL: &[Limit] = &[$(Limit {
            name: stringify!($name),
            value: $name as u64,
            meaning: concat!($($line),+).trim_ascii(),
        }),+];
    };
}

limits! {
/// Bytes of one HTTP request body.
pub const BODY_BYTES_MAX: usize = 1 << 20;
/// Bytes of one file of resources that the command line reads.
pub const FILE_BYTES_MAX: u64 = 16 << 20;
/// Bytes of a network configuration that the plugin reads from standard input. A pod has up to 256 KiB of
/// annotations, and JSON may need six bytes for each of theirs.
pub const CNI_STDIN_BYTES_MAX: usize = 2 << 20;
/// Characters of a resource's name (RFC 1123 label length).
pub const NAME_CHARS_MAX: usize = 63;
/// Characters of an endpoint's, container's or node's name (RFC 1123 subdomain length).
pub const OBJECT_NAME_CHARS_MAX: usize = 253;
/// Characters of an interface's name (Linux IFNAMSIZ without the closing zero).
pub const INTERFACE_NAME_CHARS_MAX: usize = 15;
/// Characters of a description or comment.
pub const TEXT_CHARS_MAX: usize = 1024;
/// Labels or annotations of one resource.
pub const LABELS_MAX: usize = 64;
/// Characters of a label's or annotation's key.
pub const LABEL_KEY_CHARS_MAX: usize = 253;
/// Characters of a label's value.
pub const LABEL_VALUE_CHARS_MAX: usize = 253;
/// Bytes of a label selector.
pub const SELECTOR_BYTES_MAX: usize = 1024;
/// Requirements of a label selector.
pub const SELECTOR_REQUIREMENTS_MAX: usize = 32;
/// Realms that one token may name.
pub const TOKEN_REALMS_MAX: usize = 64;
/// Tokens, join tokens among them.
pub const TOKENS_MAX: usize = 100_000;
/// Longest life of a token: ten years.
pub const TOKEN_TTL_MS_MAX: u64 = 10 * 366 * 24 * 3600 * 1000;
/// Longest life of a join token: thirty days.
pub const JOIN_TOKEN_TTL_MS_MAX: u64 = 30 * 24 * 3600 * 1000;
/// Validity of a node token obtained by joining, in log time, unless renewed: 90 days.
pub const NODE_TOKEN_TTL_MS: u64 = 90 * 24 * 3600 * 1000;
/// Log time after a renewal of a node token in which another renewal has no effect: one hour.
pub const NODE_TOKEN_DAMPING_MS: u64 = 3600 * 1000;
/// Tokens of one node.
pub const NODE_TOKENS_MAX: usize = 16;
/// Bytes of an idempotency key.
pub const IDEMPOTENCY_KEY_BYTES_MAX: usize = 128;
/// Retention of an idempotency key, in milliseconds of log time.
pub const IDEMPOTENCY_TTL_MS: u64 = 24 * 3600 * 1000;
/// Idempotency keys remembered for one principal; above it the oldest is dropped.
pub const IDEMPOTENCY_KEYS_PER_PRINCIPAL_MAX: usize = 10_000;
/// Idempotency keys remembered in total. The oldest of the principal with the most bytes is dropped first.
pub const IDEMPOTENCY_KEYS_MAX: usize = 200_000;
/// Bytes of one row of the state, as snapshots, backups and peers carry it.
pub const ROW_BYTES_MAX: usize = 8 << 20;
/// Bytes of one response; its row for replays also holds the principal and the key.
pub const RESPONSE_BYTES_MAX: usize = 7 << 20;
/// Bytes of the responses remembered for one principal; above it the oldest is dropped.
pub const REPLAY_BYTES_PER_PRINCIPAL_MAX: usize = 16 << 20;
/// Total bytes of the remembered responses. The oldest of the principal with the most bytes is dropped first.
pub const REPLAY_BYTES_MAX: usize = 128 << 20;
/// Ranges of one pool or reservation, and exclusions of one pool.
pub const RANGES_MAX: usize = 1024;
/// Smallest MTU of an IPv4 subnet, in bytes (RFC 791).
pub const MTU_MIN_V4: u32 = 68;
/// Smallest MTU of an IPv6 subnet, in bytes (RFC 8200).
pub const MTU_MIN_V6: u32 = 1280;
/// Largest MTU of a subnet, in bytes: the maximum length of an IP packet.
pub const MTU_MAX: u32 = 65_535;
/// Largest 802.1Q id (IEEE 802.1Q, 9.6).
pub const VLAN_ID_MAX: u16 = 4094;
/// Routes of one subnet, and of one request.
pub const ROUTES_MAX: usize = 64;
/// Name servers, search domains and resolver options of one subnet, each.
pub const DNS_ENTRIES_MAX: usize = 16;
/// Characters of a DNS domain (RFC 1035).
pub const DNS_DOMAIN_CHARS_MAX: usize = 253;
/// Characters of a resolver option.
pub const DNS_OPTION_CHARS_MAX: usize = 64;
/// Shortest prefix length of an IPv4 subnet.
pub const SUBNET_PREFIX_LENGTH_MIN_V4: u8 = 8;
/// Shortest prefix length of an IPv6 subnet.
pub const SUBNET_PREFIX_LENGTH_MIN_V6: u8 = 8;
/// Interfaces of one allocation request.
pub const INTERFACES_MAX: usize = 16;
/// Host policies of a cluster. Their list shows the nodes of each, and fits into one response.
pub const HOST_POLICIES_MAX: usize = 256;
/// Bytes of the desired state of one host policy, as JSON.
pub const HOST_POLICY_STATE_BYTES_MAX: usize = 16 << 10;
/// Levels of objects and lists in the desired state of a host policy.
pub const HOST_POLICY_DEPTH_MAX: usize = 32;
/// Captures of one host policy.
pub const HOST_POLICY_CAPTURES_MAX: usize = 64;
/// Hosts whose addresses one reset of a host policy releases.
pub const HOST_POLICY_RESETS_MAX: usize = 64;
/// Pools that one interface may name for one family.
pub const POOLS_NAMED_MAX: usize = 64;
/// Pools of one subnet that a request names as a whole.
pub const POOLS_OF_SUBNET_MAX: usize = 1024;
/// Pools with a reason in the text of a refusal.
pub const REASONS_MAX: usize = 16;
/// Candidates of one family that an explanation shows.
pub const CANDIDATES_EXPLAINED_MAX: usize = 256;
/// Index entries of default pools among which an explanation counts the skipped ones.
pub const SKIPPED_LOOKED_THROUGH_MAX: usize = 20_000;
/// Skipped default pools of one family that an explanation names, besides the first for each reason.
pub const SKIPPED_NAMED_MAX: usize = 4096;
/// Pools of a subnet between which an explanation looks for addresses that none has.
pub const GAPS_LOOKED_THROUGH_MAX: usize = 1024;
/// Realms, nodes, namespaces or network attachments that one pool may name.
pub const SELECTOR_NAMES_MAX: usize = 1024;
/// Addresses of the host's interface that one interface may name.
pub const LINK_ADDRESSES_MAX: usize = 64;
/// Addresses that one interface may request by value.
pub const REQUESTED_ADDRESSES_MAX: usize = 16;
/// Allocations of one endpoint.
pub const ALLOCATIONS_PER_ENDPOINT_MAX: usize = 256;
/// Allocations of a host up to which its own token adds more.
pub const ALLOCATIONS_PER_HOST_MAX: usize = 64;
/// Addresses of a reservation that records them for an endpoint.
pub const RECORDED_ADDRESSES_MAX: usize = 256;
/// Reservations that are shown with the endpoint whose addresses they record; others are found in their list.
pub const RECORDS_SHOWN_MAX: usize = 64;
/// Attachments that may hold one address at once. A migration has two; those being deleted count too.
pub const ATTACHMENTS_PER_ALLOCATION_MAX: usize = 8;
/// Attachments of one node that may hold one address at once; above it the oldest is detached.
pub const ATTACHMENTS_PER_ALLOCATION_AND_NODE_MAX: usize = 2;
/// Addresses or leases listed in one response; others are only counted.
pub const RESPONSE_ADDRESSES_MAX: usize = 65_536;
/// Steps and preconditions of one transaction.
pub const TRANSACTION_STEPS_MAX: usize = 1024;
/// Endpoints of one bulk allocation. Above the work of one command, fewer are possible.
pub const BULK_ENDPOINTS_MAX: usize = 4096;
/// Allocations of one bulk release.
pub const BULK_ALLOCATIONS_MAX: usize = 4096;
/// Networks, subnets, pools and reservations, each.
pub const RESOURCES_MAX: usize = 100_000;
/// Longest cooling of a pool: a week.
pub const COOLING_MS_MAX: u64 = 7 * 24 * 3600 * 1000;
/// Default cooling time of a pool.
pub const COOLING_MS_DEFAULT: u64 = 30_000;
/// Cooling addresses that a pool may keep when no other address is free.
pub const COOLING_RESERVE_MAX: usize = 65_536;
/// Log time for which the release of an attachment rejects an ADD that started before it.
pub const TOMBSTONE_TTL_MS: u64 = 15 * 60 * 1000;
/// Tombstones of one node; above it the oldest is dropped.
pub const TOMBSTONES_PER_NODE_MAX: usize = 4096;
/// Earlier boots retained for each node, to recognise their late requests.
pub const PAST_BOOTS_MAX: usize = 4;
/// Orphans in one report of an agent.
pub const ORPHANS_MAX: usize = 1024;
/// Characters of an agent's version.
pub const AGENT_VERSION_CHARS_MAX: usize = 64;
/// Time between two heartbeats of a node's agent, in milliseconds.
pub const HEARTBEAT_INTERVAL_MS: u64 = 10_000;
/// Time that a member gathers heartbeats for one log entry, in milliseconds.
pub const HEARTBEAT_TICK_MS: u64 = 1_000;
/// Levels of prefixes in one request, the requested one included.
pub const PREFIX_LEVELS_MAX: usize = 16;
/// Prefixes of one list (`PUT /v1/prefixes`).
pub const PREFIXES_LISTED_MAX: usize = 1024;
/// Prefixes and waiting requests that one list may end because it leaves them out.
pub const PREFIXES_UNLISTED_MAX: usize = 1024;
/// Shortest time that a prefix may live without being refreshed.
pub const PREFIX_TTL_MS_MIN: u64 = 1_000;
/// Longest time that a prefix may live without being refreshed: a year.
pub const PREFIX_TTL_MS_MAX: u64 = 366 * 24 * 3600 * 1000;
/// Least extension of a prefix that a renewal records; a quarter of its lifetime if that is less.
pub const PREFIX_DAMPING_MS_MAX: u64 = 60_000;
/// Shortest lease.
pub const LEASE_TTL_MS_MIN: u64 = 1_000;
/// Longest lease: a year.
pub const LEASE_TTL_MS_MAX: u64 = 366 * 24 * 3600 * 1000;
/// Default log time at the start of a leadership in which no lease or prefix ends.
pub const LEASE_GRACE_MS_DEFAULT: u64 = 30_000;
/// Longest lease grace: one hour.
pub const LEASE_GRACE_MS_MAX: u64 = 3_600_000;
/// Longest tick of log time: a longer pause of the leader's process does not count.
pub const LOG_TIME_TICK_MS_MAX: u64 = 1_000;
/// Applications with a quota of their own in one namespace.
pub const QUOTA_APPLICATIONS_MAX: usize = 256;
/// Units of work (pools or addresses examined) of one command. The waiting requests that it serves get as
/// many again. Part of the behaviour of `apply`: another value needs another feature level.
pub const WORK_PER_COMMAND_MAX: u64 = 6_500;
/// Claims that wait for addresses or prefixes.
pub const WAITING_MAX: usize = 4096;
/// Claims of one node that wait for addresses; a node's grant adds no more.
pub const WAITING_PER_NODE_MAX: usize = 256;
/// Allocations requested with one node's token; kept ones count until they are released.
pub const ALLOCATIONS_PER_NODE_MAX: usize = 16_384;
/// Attachments on one node; a node's grant adds no more.
pub const ATTACHMENTS_PER_NODE_MAX: usize = 16_384;
/// Events of requests with one node's token in a window of log time; deletions are always served.
pub const EVENTS_PER_NODE_MAX: u64 = 36_000;
/// Window of log time, in milliseconds, in which a node's events are counted: an hour.
pub const EVENTS_PER_NODE_WINDOW_MS: u64 = 3600 * 1000;
/// Pools that one claim waits for; of more the first ones in its order.
pub const WAITING_POOLS_MAX: usize = 64;
/// Waiting claims that one command tries to serve, before and after its own work; the next goes on.
pub const WAITING_TRIED_PER_COMMAND_MAX: usize = 64;
/// Expired coolings, leases, tombstones and prefixes that one command removes. All expired leases of the last
/// endpoint are removed together.
pub const EXPIRIES_PER_COMMAND_MAX: usize = 64;
/// Items of one page of a list.
pub const PAGE_ITEMS_MAX: usize = 1000;
/// Default number of items of a page.
pub const PAGE_ITEMS_DEFAULT: usize = 100;
/// Addresses and changes of state that one page of a map examines.
pub const MAP_STEPS_MAX: usize = 16_384;
/// Held or cooling addresses that one split moves into another pool.
pub const SPLIT_MOVED_MAX: usize = 65_536;
/// Addresses of one automatic pool.
pub const AUTOMATIC_POOL_ADDRESSES_MAX: u32 = 65_536;
/// Addresses of one automatic pool in a subnet without `max_size`.
pub const AUTOMATIC_MAX_SIZE_DEFAULT: u32 = 1024;
/// Automatic pools that were made by requests of one node and still exist.
pub const AUTOMATIC_POOLS_PER_NODE_MAX: usize = 256;
/// Addresses of a pool whose holders are counted.
pub const HOLDERS_COUNTED_MAX: usize = 65_536;
/// Parameters of one list.
pub const LIST_PARAMETERS_MAX: usize = 256;
/// List states of one member, retained for paged lists.
pub const LIST_STATES_MAX: usize = 32;
/// List states of one caller; the oldest is dropped first.
pub const LIST_STATES_PER_CALLER_MAX: usize = 8;
/// Retention of an unused list state, in milliseconds.
pub const LIST_STATE_IDLE_MS_MAX: u64 = 60_000;
/// Longest retention of a list state, in milliseconds.
pub const LIST_STATE_AGE_MS_MAX: u64 = 10 * 60_000;

/// Longest time a request may wait in a daemon.
pub const BUDGET_MS_MAX: u64 = 120_000;
/// Default time that a request may wait in a daemon.
pub const BUDGET_MS_DEFAULT: u64 = 10_000;
/// Deadline of one run of the plugin, below the four minutes of the kubelet and Docker's two.
pub const CNI_DEADLINE_MS: u64 = 55_000;
/// Deadline of the plugin's STATUS. Runtimes call it every few seconds.
pub const STATUS_MS_MAX: u64 = 1_000;
/// Time for which a DEL waits for its delivery before the agent answers it from its journal.
pub const DEL_WAIT_MS_MAX: u64 = 1_000;
/// Attachments in an agent's journal, undelivered DELs among them; further ones are refused.
pub const JOURNAL_ATTACHMENTS_MAX: usize = 2 * ATTACHMENTS_PER_NODE_MAX;
/// Bytes of a DEL that an agent's journal keeps.
pub const JOURNAL_DEL_BYTES_MAX: usize = 64 << 10;
/// DELs that an agent delivers at once.
pub const DELIVERIES_AT_ONCE_MAX: usize = 16;
/// Shortest configurable interval of an agent's tasks, in milliseconds.
pub const AGENT_INTERVAL_MS_MIN: u64 = 50;
/// Longest configurable interval of an agent's tasks: one hour.
pub const AGENT_INTERVAL_MS_MAX: u64 = 3_600_000;
/// Sections `[[interface]]` of an agent's configuration. One file serves hosts with different interfaces.
pub const HOST_SECTIONS_MAX: usize = 64;
/// Time within which a server must answer after a change of a host's configuration, in milliseconds, by
/// default.
pub const HOST_CONFIRM_MS: u64 = 30_000;
/// Time between two requests of an agent for its host's addresses, in milliseconds, by default.
pub const HOST_REFRESH_MS: u64 = 60_000;
/// Bytes of an agent's journal of its host's configuration.
pub const HOST_JOURNAL_BYTES_MAX: u64 = 1 << 20;
/// Bytes of a machine id, and of a file in which a network manager has the state of an interface.
pub const HOST_FILE_BYTES_MAX: u64 = 1 << 16;
/// Metric of the routes of a host's first interface; each further one has the next, and each VLAN of one 16
/// more. Routes of a host that have no metric precede them.
pub const HOST_ROUTE_METRIC: u32 = 512;
/// Pods of a node that its agent keeps; the default of Kubernetes is 110.
pub const PODS_PER_NODE_MAX: usize = 1024;
/// Bytes of one pod that an agent keeps: its names, labels, controllers and networks.
pub const POD_BYTES_MAX: usize = 16 << 10;
/// Bytes of all pods that an agent keeps.
pub const PODS_BYTES_MAX: usize = 4 << 20;
/// Bytes of one answer of a Kubernetes API server, and of one line of a watch.
pub const KUBERNETES_ANSWER_BYTES_MAX: usize = 4 << 20;
/// Bytes of one page of a list that the watcher reads; after a longer one it asks for smaller pages.
pub const KUBERNETES_PAGE_BYTES_MAX: usize = 16 << 20;
/// Objects in a page of a list that the watcher reads.
pub const KUBERNETES_PAGE_ITEMS: u32 = 500;
/// Labels of a node or a namespace that the watcher reads, and from which it chooses those to mirror.
pub const KUBERNETES_LABELS_READ_MAX: usize = 1024;
/// Bytes of an annotation with default pools that the watcher reads.
pub const KUBERNETES_ANNOTATION_BYTES_MAX: usize = 16 << 10;
/// Pods with facts for the servers that a watcher keeps; a scan finds the others.
pub const KUBERNETES_FACTS_MAX: usize = 200_000;
/// Objects that one scan of the watcher reads to confirm that they are gone; the next scan reads the others.
pub const KUBERNETES_CONFIRMS_PER_SCAN_MAX: usize = 2_048;
/// Pods of one report of a watcher.
pub const PODS_PER_REPORT_MAX: usize = 256;
/// Controllers of one reported pod.
pub const CONTROLLERS_OF_POD_MAX: usize = 3;
/// Uids of pods that are gone in one report of a watcher.
pub const PODS_GONE_PER_REPORT_MAX: usize = 1024;
/// Pods that watchers have reported, in all realms.
pub const PODS_REPORTED_MAX: usize = 500_000;
/// Log time for which the claims of a realm's nodes are verified after a report of its watcher.
pub const VERIFIED_MS: u64 = 60_000;
/// Log time between two reports of a watcher that has nothing to report.
pub const VERIFIED_RENEWAL_MS: u64 = 15_000;
/// Age of the newest sign of life of a watch on pods by which claims are verified. Bookmarks come each
/// minute.
pub const PODS_HEARD_MS_MAX: u64 = 150_000;
/// Log time after which the pods of a realm without a watcher are forgotten: one day.
pub const PODS_FORGOTTEN_MS: u64 = 24 * 3_600_000;
/// Requests of the watcher for single objects at once.
pub const KUBERNETES_READS_AT_ONCE: usize = 8;
/// Bytes of one request body that the watcher sends to an API server.
pub const KUBERNETES_REQUEST_BYTES_MAX: usize = 64 << 10;
/// Custom resources of one kind that a watcher applies; further ones are ignored, and reported.
pub const KUBERNETES_CUSTOM_OBJECTS_MAX: usize = 10_000;
/// Shortest time between two writes of the status of a custom resource.
pub const KUBERNETES_CUSTOM_STATUS_MS: u64 = 10_000;
/// Bytes of a status of a custom resource that a watcher compares; a longer one is written anew.
pub const KUBERNETES_CUSTOM_STATUS_BYTES_MAX: usize = 16 << 10;
/// Characters of the message of a condition of a custom resource.
pub const KUBERNETES_CUSTOM_MESSAGE_CHARS_MAX: usize = 1024;
/// Allocated offsets that the status of a `NodeIPPool` lists; of more it has the number only.
pub const NODE_POOL_OFFSETS_MAX: usize = 1_000;
/// Rounds in which a watcher compares `NodeIPPool` objects before it shows what is left.
pub const NODE_POOL_ROUNDS_MAX: usize = 8;
/// Shortest prefix length of an IPv4 `NodeIPPool`: a shorter one has more exclusions than a pool may have.
pub const NODE_POOL_PREFIX_V4_MIN: u8 = 15;
/// Characters of the name of a policy of kubernetes-nmstate, which is the value of a label, too.
pub const NMSTATE_NAME_CHARS_MAX: usize = 63;
/// Holders that the condition of a host policy names when a pool is exhausted.
pub const HOST_POLICY_HOLDERS_NAMED: usize = 5;
/// Nodes of one host policy that a watcher may fail to configure before it pauses.
pub const HOST_POLICY_FAILURES_MAX: usize = 16;
/// Time that a policy of kubernetes-nmstate that was written counts as such before the watch shows it.
pub const HOST_POLICY_WRITTEN_MS: u64 = 10_000;
/// Characters of the value of an annotation that asks for a reset.
pub const KUBERNETES_RESET_CHARS_MAX: usize = 128;
/// Claims, and addresses, of a management cluster that a provider serves; further ones are ignored, and
/// reported.
pub const CLUSTER_API_OBJECTS_MAX: usize = 100_000;
/// Claims of a management cluster whose next step is taken at once.
pub const CLUSTER_API_CLAIMS_AT_ONCE: usize = 16;
/// Time between two questions for the events of pools on which claims wait.
pub const CLUSTER_API_EVENTS_MS: u64 = 250;
/// Pools whose events are read at once; others have their turn afterwards.
pub const CLUSTER_API_EVENTS_AT_ONCE: usize = 16;
/// Shortest time between two reads of the counts of pools after a change of claims.
pub const CLUSTER_API_COUNTS_MS: u64 = 1_000;
/// Allocations of a pool that are read to count those outside of a new spec that is refused.
pub const CLUSTER_API_OUT_OF_RANGE_MAX: usize = 10_000;
/// Controllers of pods that an agent remembers for a few seconds.
pub const OWNERS_CACHED_MAX: usize = 256;
/// Shortest time between two events of one pod with one code, in milliseconds.
pub const POD_EVENT_INTERVAL_MS: u64 = 60_000;
/// Events of pods that wait for the API server; further ones are left out.
pub const POD_EVENTS_WAITING_MAX: usize = 64;
/// Pairs of pod and code whose last event an agent remembers.
pub const POD_EVENTS_REMEMBERED_MAX: usize = 1024;
/// Bytes of an agent's configuration file.
pub const AGENT_CONFIG_BYTES_MAX: u64 = 1 << 20;
/// Bytes of a network namespace's path (Linux PATH_MAX).
pub const NETNS_PATH_BYTES_MAX: usize = 4096;
/// Time for which a probe of an address waits for an answer, in milliseconds; then the address is silent.
pub const PROBE_ANSWER_MS: u64 = 100;
/// Repetitions of a probe that could not be sent.
pub const PROBE_SEND_RETRIES_MAX: u32 = 3;
/// Pause before such a repetition, in milliseconds.
pub const PROBE_SEND_PAUSE_MS: u64 = 10;
/// Addresses of one probe; their answers fit into the receive buffer of a socket.
pub const PROBE_ADDRESSES_MAX: usize = 256;
/// Bytes of a frame that a probe looks at: Ethernet's header and its standard payload.
pub const PROBE_FRAME_BYTES_MAX: usize = 14 + 1500;
/// Frames that a probe takes from its socket at once.
pub const PROBE_FRAMES_AT_ONCE_MAX: usize = 2 * PROBE_ADDRESSES_MAX;
/// Results of probes in one request, and jobs in its answer.
pub const PROBE_RESULTS_MAX: usize = PROBE_ADDRESSES_MAX;
/// MAC addresses of one result: two different ones show that two stations use the address.
pub const PROBE_MACS_MAX: usize = 2;
/// Links of one node.
pub const LINKS_PER_NODE_MAX: usize = 64;
/// Addresses of a pool that agents probe ahead of requests.
pub const PROBED_AHEAD_MAX: usize = 8;
/// Default validity of a probe ahead of a request, in milliseconds of log time.
pub const PROBE_VALID_MS_DEFAULT: u64 = 600_000;
/// Shortest configurable validity of a probe: ten seconds.
pub const PROBE_VALID_MS_MIN: u64 = 10_000;
/// Longest configurable validity of a probe: one day.
pub const PROBE_VALID_MS_MAX: u64 = 24 * 3600 * 1000;
/// Time after which another agent takes over the probes of a subnet, in milliseconds of log time.
pub const PROBER_TERM_MS: u64 = 600_000;
/// Time without a heartbeat after which a node gets no probes, in milliseconds of log time.
pub const PROBER_SILENCE_MS_MAX: u64 = 3 * HEARTBEAT_INTERVAL_MS;
/// Agents that probe one subnet at the same time.
pub const PROBERS_PER_SUBNET: usize = 2;
/// Interval of an agent that has probes to make, in milliseconds.
pub const PROBE_INTERVAL_MS: u64 = 1_000;
/// Time between two sweeps of an agent over allocated addresses, in milliseconds.
pub const SWEEP_INTERVAL_MS: u64 = 30_000;
/// Time without an answer of a second station after which a collision has ended, in milliseconds of log time.
pub const COLLISION_MS: u64 = 600_000;
/// Time between two probes of a quarantined address, in milliseconds of log time.
pub const QUARANTINE_RECHECK_MS: u64 = 60_000;
/// Quarantined addresses that one node has reported and no other node has confirmed.
pub const QUARANTINES_PER_NODE_MAX: usize = 16;
/// Conflicts of one ADD, after which it fails.
pub const CONFLICTS_PER_ADD_MAX: usize = 4;
/// Nodes that are remembered as having heard an allocated address.
pub const HEARD_BY_MAX: usize = 4;
/// Silent rounds of each prober after which an address of a silent node is free.
pub const SILENT_ROUNDS: u32 = 3;
/// Time for which the newest silent round proves something, in milliseconds of log time.
pub const SILENCE_VALID_MS: u64 = 120_000;
/// Shortest time between two silent rounds of one prober, in milliseconds of log time.
pub const SILENT_ROUND_MS_MIN: u64 = 10_000;
/// Shortest configurable time without a heartbeat after which a node is silent: 30 seconds.
pub const NODE_GRACE_MS_MIN: u64 = 30_000;
/// Default time without a heartbeat after which a node is silent: five minutes.
pub const NODE_GRACE_MS_DEFAULT: u64 = 300_000;
/// Longest configurable time without a heartbeat after which a node is silent: one day.
pub const NODE_GRACE_MS_MAX: u64 = 24 * 3600 * 1000;
/// Allocations in one report of garbage collection.
pub const RECLAIM_LINES_MAX: usize = 256;
/// Workloads in one report of an orchestrator.
pub const WORKLOADS_MAX: usize = 256;
/// Age of an observation by which addresses of a workload that may still exist are reclaimed, in milliseconds
/// of wall time; the clocks of the observer and of the member differ by less.
pub const WORKLOAD_OBSERVATION_MS_MAX: u64 = 60_000;
/// Kubernetes clusters that the leader watches, and management clusters of Cluster API that it serves.
pub const KUBERNETES_SECTIONS_MAX: usize = 16;
/// Interval of the scans of a Kubernetes cluster, as Spiderpool has it.
pub const KUBERNETES_SCAN_MS_DEFAULT: u64 = 600_000;
/// Shortest interval of these scans.
pub const KUBERNETES_SCAN_MS_MIN: u64 = 1_000;
/// Longest interval of these scans.
pub const KUBERNETES_SCAN_MS_MAX: u64 = 86_400_000;
/// Time that a node of Meridio, and an address of it, live without being refreshed: Meridio's threshold.
pub const MERIDIO_TTL_MS_DEFAULT: u64 = 40 * 60_000;
/// Interval of pings on an idle connection to Meridio's NSP service.
pub const MERIDIO_KEEPALIVE_MS_DEFAULT: u64 = 30_000;
/// Shortest interval of these pings; servers in Go close connections on which pings come more often.
pub const MERIDIO_KEEPALIVE_MS_MIN: u64 = 10_000;
/// Longest interval of these pings: one hour.
pub const MERIDIO_KEEPALIVE_MS_MAX: u64 = 3_600_000;
/// Longest pause between two attempts to reach Meridio's NSP service.
pub const MERIDIO_BACKOFF_MS_DEFAULT: u64 = 5_000;
/// Shortest configurable value of that pause: the pause of Meridio after an error.
pub const MERIDIO_BACKOFF_MS_MIN: u64 = 500;
/// Longest configurable value of that pause: ten minutes.
pub const MERIDIO_BACKOFF_MS_MAX: u64 = 600_000;
/// Patterns of SPIFFE ids that may call the front end of Meridio.
pub const MERIDIO_SPIFFE_IDS_MAX: usize = 64;
/// Characters of a pattern of SPIFFE ids.
pub const SPIFFE_PATTERN_CHARS_MAX: usize = 253;
/// Longest configurable additional grace of workloads: one hour.
pub const WORKLOAD_DELAY_MS_MAX: u64 = 3_600_000;
/// Timeout of the first server while others are left; doubles with each later server.
pub const ATTEMPT_MS_FIRST: u64 = 800;
/// Longest timeout of a server while others are left; a single server gets it each time.
pub const ATTEMPT_MS_MAX: u64 = 3_200;
/// Timeout of a client's connection to a server.
pub const CONNECT_MS_MAX: u64 = ATTEMPT_MS_MAX / 2;
/// Timeout of a request head, in milliseconds.
pub const HEAD_READ_MS_MAX: u64 = 10_000;

/// Bytes of a file with certificates or a key.
pub const PEM_BYTES_MAX: u64 = 1 << 20;
/// Bytes of `/etc/hosts` and of `/etc/resolv.conf` that are read.
pub const NAMES_FILE_BYTES_MAX: u64 = 16 << 20;
/// Bytes of a file with a token.
pub const TOKEN_BYTES_MAX: u64 = 16 << 10;

/// Bytes of the head of a request.
pub const HEAD_BYTES_MAX: usize = 64 << 10;
/// Headers of a request.
pub const HEADERS_MAX: usize = 64;
/// Bytes of a request's path and query.
pub const URI_BYTES_MAX: usize = 16 << 10;
/// Timeout of a request body, in milliseconds.
pub const BODY_READ_MS_MAX: u64 = 15_000;
/// Write timeout of a response to a client that does not read, in milliseconds.
pub const WRITE_STALL_MS_MAX: u64 = 15_000;
/// Bytes of an unread body that are discarded before the connection of a refused request closes.
pub const LINGER_BYTES_MAX: usize = BODY_BYTES_MAX;
/// Wait for a silent client of a rejected request before the connection is closed, in milliseconds.
pub const LINGER_MS_MAX: u64 = 2_000;
/// Idle timeout of client connections in the client library, shorter than that of members, in milliseconds.
pub const IDLE_MS_MAX: u64 = HEAD_READ_MS_MAX / 2;

/// Concurrent streams of one HTTP/2 connection. A page of the console has fewer, and one caller may have
/// more requests, so that no client library is refused for one connection.
pub const HTTP2_STREAMS_MAX: u32 = 256;
/// Concurrent streams of one HTTP/2 connection of a gRPC client. A proxy may have a call that waits for
/// each of its workloads.
pub const GRPC_STREAMS_MAX: u32 = 1000;
/// Bytes of the head of a gRPC request: the limit that gRPC recommends for metadata is 8 KiB.
pub const GRPC_HEAD_BYTES_MAX: usize = 16 << 10;
/// Bytes of one HTTP/2 frame, and of a piece of a response: the smallest limit of the protocol.
pub const HTTP2_FRAME_BYTES_MAX: usize = 16 << 10;
/// Bytes of the last piece of a response over HTTP/2, which may wait without a time limit.
pub const HTTP2_LAST_PIECE_BYTES_MAX: usize = 256;
/// Bytes of one HTTP/2 request body that a client may send before the member has read any.
pub const HTTP2_STREAM_WINDOW_BYTES: u32 = 64 << 10;
/// The same for all request bodies of one HTTP/2 connection.
pub const HTTP2_CONNECTION_WINDOW_BYTES: u32 = 1 << 20;
/// Bytes of one HTTP/2 response that wait for the client to read.
pub const HTTP2_SEND_BUFFER_BYTES_MAX: usize = 32 << 10;
/// HTTP/2 streams that a client has opened and reset before the member accepted them. Above it the
/// connection ends (rapid reset).
pub const HTTP2_RESETS_PENDING_MAX: usize = 20;
/// HTTP/2 streams of one connection that the member has reset for errors of the client. Above it the
/// connection ends.
pub const HTTP2_ERROR_RESETS_MAX: usize = 256;
/// Silence on an HTTP/2 connection after which the member sends a ping, in milliseconds.
pub const HTTP2_PING_MS: u64 = 30_000;
/// Timeout of the answer to that ping, after which the connection ends, in milliseconds.
pub const HTTP2_PONG_MS_MAX: u64 = 10_000;

/// Client connections of one member over the network.
pub const CONNECTIONS_MAX: usize = 4096;
/// Client connections of one address (IPv6: of one /64); many clients may share a NAT address.
pub const CONNECTIONS_PER_ADDRESS_MAX: usize = 1024;
/// Client connections of one member over its unix socket.
pub const SOCKET_CONNECTIONS_MAX: usize = 256;
/// Timeout of a TLS handshake with a client, in milliseconds.
pub const TLS_HANDSHAKE_MS_MAX: u64 = 5_000;
/// Concurrent TLS handshakes with clients; further connections are closed.
pub const TLS_HANDSHAKES_MAX: usize = 1024;
/// The same, of one address.
pub const TLS_HANDSHAKES_PER_ADDRESS_MAX: usize = 256;
/// Bytes of a SPIFFE id (SPIFFE, section 2.3).
pub const SPIFFE_ID_BYTES_MAX: usize = 2048;
/// File descriptors that are kept for everything but clients' connections.
pub const DESCRIPTORS_KEPT: usize = 512;

/// Bytes of one gRPC message of a Meridio client.
pub const GRPC_MESSAGE_BYTES_MAX: usize = 4 << 10;
/// Time limit of a gRPC call that has no deadline, in milliseconds.
pub const GRPC_DEADLINE_MS_DEFAULT: u64 = 10_000;
/// Longest time limit of a gRPC call, in milliseconds. Longer deadlines end with this one.
pub const GRPC_DEADLINE_MS_MAX: u64 = 600_000;
/// Requests that one member executes at a time for gRPC calls. Further calls wait in order of arrival.
pub const GRPC_REQUESTS_MAX: usize = 256;
/// The same of one caller.
pub const GRPC_REQUESTS_PER_CALLER_MAX: usize = 128;
/// gRPC calls of one member that wait for a conduit.
pub const GRPC_CONDUIT_WAITS_MAX: usize = 4_096;
/// The same of one caller.
pub const GRPC_CONDUIT_WAITS_PER_CALLER_MAX: usize = 1_024;
/// Concurrent requests of one caller at one member.
pub const REQUESTS_IN_FLIGHT_PER_CALLER_MAX: usize = 512;
/// Dry runs and explanations of one principal that wait at one member.
pub const TRIALS_PER_PRINCIPAL_MAX: usize = 4;
/// Proposals that wait on one member; large ones count more. Each requester gets a share of the places, and
/// more proposals are refused as `overloaded`.
pub const PROPOSALS_WAITING_MAX: usize = 16_384;
/// ADDs of one node that its agent sends to the members at once. Others wait for their turn.
pub const AGENT_ADDS_AT_ONCE_MAX: usize = 256;
/// ADDs of one node that wait for their turn; more are refused as `overloaded`.
pub const AGENT_ADDS_WAITING_MAX: usize = 4096;
/// Bytes of the proposals that wait on one member.
pub const PROPOSAL_BYTES_WAITING_MAX: usize = 128 << 20;
/// Longest expected wait in the leader's queue, in milliseconds; proposals that would wait for longer are
/// refused as `overloaded`.
pub const PROPOSAL_WAIT_MS_MAX: u64 = 2_000;
/// Shortest pause that an overloaded member asks for, in milliseconds.
pub const RETRY_AFTER_MS_MIN: u64 = 100;
/// Longest pause that an overloaded member asks for, in milliseconds.
pub const RETRY_AFTER_MS_MAX: u64 = 10_000;
/// Commands in one log entry.
pub const COMMANDS_PER_ENTRY_MAX: usize = 1024;
/// Bytes of one frame of a file of the store: of the log, a snapshot, a backup, the journal.
pub const STORE_FRAME_BYTES_MAX: usize = 64 << 20;
/// Bytes of one frame between peers.
pub const FRAME_BYTES_MAX: usize = 64 << 20;
/// Bytes of one piece of a snapshot between peers. The thread of raft sends and receives it.
pub const SNAPSHOT_PIECE_BYTES: usize = 64 << 10;
/// Bytes of one piece of a journal segment between peers; each piece costs a round trip.
pub const JOURNAL_PIECE_BYTES: usize = 256 << 10;
/// Bytes of the commands of one log entry; a single command may exceed it, and then travels alone.
pub const ENTRY_BYTES_MAX: usize = 2 << 20;
/// Bytes of log entries in one frame between peers; a single larger entry is sent alone.
pub const APPEND_BYTES_MAX: usize = 4 << 20;
/// Unanswered appends to one peer before the sender waits.
pub const APPENDS_UNANSWERED_MAX: usize = 32;
/// Longest election timeout of slow disks and failed elections, unless a longer one is configured.
pub const ELECTION_TIMEOUT_MS_MAX: u64 = 10_000;
/// Members of a cluster.
pub const MEMBERS_MAX: usize = 9;
/// Bytes of the first frame between peers, which is read before authentication.
pub const PREFACE_BYTES_MAX: usize = 4096;
/// Timeout of the first frame of a peer, in milliseconds.
pub const PREFACE_MS_MAX: u64 = 3_000;
/// Timeout of a TLS handshake with a peer, in milliseconds.
pub const PEER_HANDSHAKE_MS_MAX: u64 = 2_000;
/// Connections that may be waiting for their handshake or first frame at once; more are closed.
pub const PREFACES_WAITING_MAX: usize = 256;
/// The same, of one address: several members may be behind one.
pub const PREFACES_PER_ADDRESS_MAX: usize = 64;
/// Bytes of the path of a unix socket; the kernel takes no longer one.
pub const SOCKET_PATH_BYTES_MAX: usize = 107;
/// Characters of the URL at which a member answers clients.
pub const CLIENT_URL_CHARS_MAX: usize = 300;
/// Log lines about peers of one kind per interval; others are counted.
pub const PEER_LOG_LINES_MAX: usize = 64;
/// Length of that interval, within which the same line is not repeated either.
pub const PEER_LOG_INTERVAL_MS: u64 = 30_000;
/// Timeout of a connection attempt to a peer, in milliseconds.
pub const PEER_CONNECT_MS_MAX: u64 = 2_000;
/// Interval of pings to a peer, in milliseconds.
pub const PEER_PING_MS: u64 = 300;
/// Silence of a peer after which its connection is closed, in milliseconds.
pub const PEER_SILENCE_MS_MAX: u64 = 1_500;
/// Time in which a replaced leader may still answer a request without a replicated identity.
pub const PEER_LAST_WORD_MS: u64 = 100;
/// Log entries from one place at which members compare their states to the next.
pub const CHECKPOINT_EVERY_ENTRIES: u64 = 64;
/// Checkpoints that a member keeps; a member that lags further is compared once it has caught up.
pub const CHECKPOINTS_KEPT: usize = 128;
/// Interval of checkpoint comparisons between members, in milliseconds.
pub const CHECKPOINT_COMPARE_MS: u64 = 1_000;
/// Time for which two members with different states serve on without the answer of a third, in milliseconds.
pub const CHECKPOINT_UNDECIDED_MS_MAX: u64 = 3_000;
/// Time until the last applied entries are compared on an idle cluster, in milliseconds.
pub const CHECKPOINT_IDLE_MS: u64 = 10_000;
/// Rebuilds of its state by a member before it exits.
pub const STATE_REBUILDS_MAX: u32 = 3;
/// Calls to one peer that wait or run at once; more are refused.
pub const PEER_CALLS_MAX: usize = 4096;

/// Bytes of events after which a segment of the journal is sealed. Like the next two part of what `apply`
/// does: another value needs another level.
pub const JOURNAL_SEGMENT_BYTES_MAX: u64 = 4 << 20;
/// Log time for which a journal segment stays open: one day.
pub const JOURNAL_SEGMENT_AGE_MS_MAX: u64 = 24 * 3600 * 1000;
/// Events in one frame of the journal; a command with more has several.
pub const JOURNAL_FRAME_EVENTS_MAX: usize = 1024;
/// Bytes of one frame of the journal; a single event may exceed it, and then has a frame to itself.
pub const JOURNAL_FRAME_BYTES_MAX: usize = 1 << 20;
/// Streams of events of one member at once; more are refused as `overloaded`.
pub const EVENT_STREAMS_MAX: usize = 256;
/// Streams of events of one caller at once; more are refused as `too-many-requests`.
pub const EVENT_STREAMS_PER_CALLER_MAX: usize = 32;
/// Events that a stream reads and sends at once.
pub const EVENT_STREAM_PAGE: usize = 500;
/// Interval of progress events on an idle stream, in milliseconds.
pub const EVENT_PROGRESS_MS: u64 = 15_000;
/// Time after which a stream with a stalled reader is closed, in milliseconds.
pub const EVENT_READER_MS_MAX: u64 = 30_000;
/// Time without a leader after which a member closes its streams, so that clients reconnect to another
/// member.
pub const EVENT_STALE_MS_MAX: u64 = 3_000;
/// Bytes of frames in one block of a segment: what a look at one event reads at most.
pub const JOURNAL_BLOCK_BYTES: usize = 64 << 10;
/// Journal blocks read for one page of events; a shorter page has a cursor to continue.
pub const EVENT_PAGE_BLOCKS_MAX: usize = 128;
/// Journal segments searched for one page of events; a shorter page has a cursor to continue.
pub const EVENT_PAGE_SEGMENTS_MAX: usize = 1024;
/// Characters of an old or new value in an event.
pub const FIELD_CHANGE_CHARS_MAX: usize = 256;

/// Largest integer that JSON readers keep exact; counts saturate here.
pub const JSON_INTEGER_MAX: u64 = (1 << 53) - 1;
}

const _: () = assert!(BUDGET_MS_DEFAULT <= BUDGET_MS_MAX);
const _: () = assert!(GRPC_DEADLINE_MS_DEFAULT <= GRPC_DEADLINE_MS_MAX);
const _: () = assert!(GRPC_REQUESTS_PER_CALLER_MAX < GRPC_REQUESTS_MAX);
const _: () = assert!(GRPC_CONDUIT_WAITS_PER_CALLER_MAX < GRPC_CONDUIT_WAITS_MAX);
const _: () = assert!(GRPC_REQUESTS_MAX < REQUESTS_IN_FLIGHT_PER_CALLER_MAX, "each of them is admitted");
const _: () = assert!(CNI_DEADLINE_MS <= BUDGET_MS_MAX);
const _: () = assert!(ATTEMPT_MS_FIRST < ATTEMPT_MS_MAX && ATTEMPT_MS_MAX < BUDGET_MS_DEFAULT);
const _: () = assert!(BUDGET_MS_MAX < TOMBSTONE_TTL_MS, "a late ADD must still meet its tombstone");
const _: () = assert!(BUDGET_MS_MAX < IDEMPOTENCY_TTL_MS, "a retry must still meet its key");
const _: () = assert!(NODE_TOKEN_DAMPING_MS < NODE_TOKEN_TTL_MS && NODE_TOKEN_TTL_MS <= TOKEN_TTL_MS_MAX);
const _: () = assert!(HEARTBEAT_TICK_MS < HEARTBEAT_INTERVAL_MS);
const _: () = assert!(COOLING_MS_DEFAULT <= COOLING_MS_MAX);
const _: () = assert!(PREFIX_TTL_MS_MIN < PREFIX_TTL_MS_MAX);
const _: () = assert!(LEASE_TTL_MS_MIN < LEASE_TTL_MS_MAX);
const _: () =
    assert!(PREFIX_TTL_MS_MIN < MERIDIO_TTL_MS_DEFAULT && MERIDIO_TTL_MS_DEFAULT < PREFIX_TTL_MS_MAX);
const _: () = assert!(
    MERIDIO_KEEPALIVE_MS_MIN < MERIDIO_KEEPALIVE_MS_DEFAULT
        && MERIDIO_KEEPALIVE_MS_DEFAULT < MERIDIO_KEEPALIVE_MS_MAX
);
const _: () = assert!(
    MERIDIO_BACKOFF_MS_MIN < MERIDIO_BACKOFF_MS_DEFAULT
        && MERIDIO_BACKOFF_MS_DEFAULT < MERIDIO_BACKOFF_MS_MAX
);
const _: () = assert!(SNAPSHOT_PIECE_BYTES * 2 < FRAME_BYTES_MAX);
const _: () = assert!(JOURNAL_PIECE_BYTES * 2 < FRAME_BYTES_MAX);
const _: () = assert!(BODY_BYTES_MAX * 2 < FRAME_BYTES_MAX, "any request must fit between peers");
const _: () =
    assert!(BODY_BYTES_MAX + ENTRY_BYTES_MAX < FRAME_BYTES_MAX, "the largest entry must fit into a frame");
const _: () = assert!(BODY_BYTES_MAX + APPEND_BYTES_MAX < FRAME_BYTES_MAX);
/// Upper bound of a row's key, its length prefix, and the principal and idempotency key around it.
const AROUND_BYTES_MAX: usize = 2 * HEAD_BYTES_MAX + IDEMPOTENCY_KEY_BYTES_MAX;
const _: () = assert!(RESPONSE_BYTES_MAX + AROUND_BYTES_MAX < ROW_BYTES_MAX, "a response fits into a row");
const _: () = assert!(ROW_BYTES_MAX + AROUND_BYTES_MAX < STORE_FRAME_BYTES_MAX, "a row fits into a snapshot");
const _: () =
    assert!(RESPONSE_BYTES_MAX + AROUND_BYTES_MAX < FRAME_BYTES_MAX, "a response fits between peers");
const _: () = assert!(BODY_BYTES_MAX * 2 < ROW_BYTES_MAX, "what a request says fits into a row");
const _: () = assert!(RESOURCES_MAX * 10 < ROW_BYTES_MAX, "the ids of all pools fit into a row");
const _: () = assert!(RESPONSE_ADDRESSES_MAX * 64 < RESPONSE_BYTES_MAX, "a lease takes less than 64 bytes");
const _: () = assert!(ROW_BYTES_MAX <= REPLAY_BYTES_PER_PRINCIPAL_MAX, "any response can be remembered");
const _: () = assert!(REPLAY_BYTES_PER_PRINCIPAL_MAX <= REPLAY_BYTES_MAX);
const _: () = assert!(IDEMPOTENCY_KEYS_PER_PRINCIPAL_MAX <= IDEMPOTENCY_KEYS_MAX);
const _: () = assert!(
    JOURNAL_BLOCK_BYTES + JOURNAL_FRAME_BYTES_MAX + BODY_BYTES_MAX < STORE_FRAME_BYTES_MAX,
    "a block of the journal fits into a snapshot"
);
const _: () = assert!(
    AGENT_ADDS_AT_ONCE_MAX < REQUESTS_IN_FLIGHT_PER_CALLER_MAX,
    "the ADDs of an agent leave room for its reports"
);
const _: () = assert!(BODY_BYTES_MAX * 6 < PROPOSAL_BYTES_WAITING_MAX, "the largest command fits a share");
const _: () =
    assert!(PROPOSAL_WAIT_MS_MAX < BUDGET_MS_DEFAULT, "a refused request has time for another attempt");
const _: () = assert!(2 * RETRY_AFTER_MS_MIN < RETRY_AFTER_MS_MAX && RETRY_AFTER_MS_MAX <= BUDGET_MS_DEFAULT);
const _: () = assert!(PEER_PING_MS * 3 < PEER_SILENCE_MS_MAX);
const _: () =
    assert!(PEER_LAST_WORD_MS < PEER_PING_MS, "a stopped leader is waited for no longer than a ping");
const _: () = assert!(PREFACE_BYTES_MAX < FRAME_BYTES_MAX);
const _: () = assert!(PREFACES_PER_ADDRESS_MAX < PREFACES_WAITING_MAX);
const _: () = assert!(IDLE_MS_MAX < HEAD_READ_MS_MAX);
const _: () = assert!(URI_BYTES_MAX < HEAD_BYTES_MAX);
const _: () = assert!(GRPC_HEAD_BYTES_MAX < HEAD_BYTES_MAX);
const _: () = assert!(
    (HTTP2_STREAMS_MAX as usize) < REQUESTS_IN_FLIGHT_PER_CALLER_MAX,
    "one HTTP/2 connection does not take all places of its caller"
);
const _: () = assert!(HTTP2_FRAME_BYTES_MAX <= HTTP2_SEND_BUFFER_BYTES_MAX);
const _: () = assert!(HTTP2_STREAM_WINDOW_BYTES < HTTP2_CONNECTION_WINDOW_BYTES);
const _: () = assert!(HTTP2_PONG_MS_MAX < HTTP2_PING_MS);
const _: () = assert!(CONNECTIONS_PER_ADDRESS_MAX < CONNECTIONS_MAX);
const _: () = assert!(
    REQUESTS_IN_FLIGHT_PER_CALLER_MAX < CONNECTIONS_PER_ADDRESS_MAX,
    "who asks for too much at once is told so, and not only cut off"
);
const _: () = assert!(TLS_HANDSHAKES_PER_ADDRESS_MAX < TLS_HANDSHAKES_MAX);
const _: () = assert!(TLS_HANDSHAKES_MAX < CONNECTIONS_MAX, "handshakes leave room for other connections");
const _: () = assert!(LIST_STATES_PER_CALLER_MAX < LIST_STATES_MAX);
const _: () = assert!(EVENT_STREAMS_PER_CALLER_MAX < EVENT_STREAMS_MAX);
const _: () = assert!(LIST_STATE_IDLE_MS_MAX <= LIST_STATE_AGE_MS_MAX);
const _: () = assert!(PAGE_ITEMS_DEFAULT <= PAGE_ITEMS_MAX);
const _: () = assert!(EVENT_STREAMS_MAX * 2 < CONNECTIONS_MAX, "event streams leave room for requests");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_bounds_are_listed() {
        let source = include_str!("limits.rs");
        let constants = source.lines().filter(|line| line.starts_with("pub const ")).count();
        assert_eq!(ALL.len(), constants, "each bound once, and each inside the macro");
        let ttl = ALL.iter().find(|limit| limit.name == "TOMBSTONE_TTL_MS").expect("listed");
        assert_eq!(ttl.value, TOMBSTONE_TTL_MS);
        for limit in ALL {
            assert!(limit.value > 0, "{}", limit.name);
            let sentence = limit.meaning;
            assert!(sentence.ends_with('.') && !sentence.contains("  "), "{}: {sentence}", limit.name);
        }
    }
}
