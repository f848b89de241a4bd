//! Problems: one closed catalogue, and their form in HTTP (RFC 9457).

mod context;

use std::fmt;

pub use context::{Context, FieldError, Holder, PoolVerdict, QuotaUse};
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::brand::PROBLEM_TYPE_PREFIX;

/// Advice on repeating a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Retry {
    /// It never will.
    Never,
    /// Repeat it unchanged.
    Same,
    /// Repeat it later; `Retry-After` or the context has the time.
    After,
    /// Change it first.
    Changed,
}

/// Applied status of the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Applied {
    /// Nothing was changed.
    No,
    /// It may have been applied; repeating it with the same identity is safe and tells.
    Unknown,
}

/// The exit codes of `ipamctl`, part of its contract.
pub mod exit {
    /// Done, including nothing to do.
    pub const DONE: u8 = 0;
    /// Refused by a rule.
    pub const REFUSED: u8 = 1;
    /// Flags, file syntax, local validation.
    pub const USAGE: u8 = 2;
    /// Not found.
    pub const NOT_FOUND: u8 = 3;
    /// Conflict: revision mismatch or already exists.
    pub const RACED: u8 = 4;
    /// Unavailable; nothing was changed, and repeating is safe.
    pub const UNAVAILABLE: u8 = 5;
    /// Outcome unknown.
    pub const UNKNOWN: u8 = 6;
    /// Completed; differences or problems found.
    pub const FOUND: u8 = 7;
}

/// One row of the catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// The stable code, in kebab case.
    pub code: &'static str,
    /// HTTP status.
    pub http: u16,
    /// CNI error code.
    pub cni: u16,
    /// Status code of gRPC.
    pub grpc: u8,
    /// Exit code of `ipamctl`.
    pub exit: u8,
    /// Advice on repeating the request.
    pub retry: Retry,
    /// Constant title.
    pub title: &'static str,
    /// Default remedy.
    pub help: &'static str,
}

macro_rules! catalogue {
    ($($variant:ident $code:literal $http:literal / $cni:literal grpc $grpc:literal exit $exit:ident
       retry $retry:ident $title:literal, $help:literal;)*) => {
        /// The stable codes. New ones are only ever appended (they travel between members by position).
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub enum Code {
            $(#[doc = $title] #[serde(rename = $code)] $variant,)*
        }

        impl Code {
            /// All codes, in order.
            pub const ALL: &'static [Code] = &[$(Code::$variant),*];

            /// Row of the code in the catalogue.
            #[must_use]
            pub fn entry(self) -> Entry {
                match self {
                    $(Code::$variant => Entry {
                        code: $code, http: $http, cni: $cni, grpc: $grpc, exit: exit::$exit,
                        retry: Retry::$retry, title: $title, help: $help,
                    },)*
                }
            }
        }
    };
}

catalogue! {
    MalformedBody "malformed-body" 400 / 6 grpc 3 exit USAGE retry Changed
        "Malformed request body", "Send one JSON object in UTF-8.";
    UnknownField "unknown-field" 400 / 2 grpc 3 exit USAGE retry Changed
        "Unknown field", "Correct or remove the field.";
    InvalidField "invalid-field" 422 / 7 grpc 3 exit USAGE retry Changed
        "Invalid field", "Correct the field.";
    CidrHasHostBits "cidr-has-host-bits" 422 / 7 grpc 3 exit USAGE retry Changed
        "CIDR with host bits set", "Use the network address before the slash.";
    RangeReversed "range-reversed" 422 / 7 grpc 3 exit USAGE retry Changed
        "Reversed range", "Write the lower address first.";
    FamilyMismatch "family-mismatch" 422 / 7 grpc 3 exit USAGE retry Changed
        "Mixed IPv4 and IPv6", "Use one family; a pool has the family of its subnet.";
    OutsideSubnet "outside-subnet" 422 / 7 grpc 3 exit REFUSED retry Changed
        "Outside the subnet", "Use addresses within the CIDR of the subnet, or create another subnet.";
    GatewayInRange "gateway-in-range" 422 / 7 grpc 3 exit REFUSED retry Changed
        "Gateway address not usable", "Use a host address of the subnet.";
    TooLarge "too-large" 413 / 7 grpc 8 exit USAGE retry Changed
        "Request too large", "Split the request.";
    LimitExceeded "limit-exceeded" 422 / 7 grpc 8 exit USAGE retry Changed
        "Limit exceeded", "Stay within the limit, or split the request.";
    UnsupportedMediaType "unsupported-media-type" 415 / 6 grpc 3 exit USAGE retry Changed
        "Unsupported media type", "Send Content-Type: application/json.";
    InvalidFilter "invalid-filter" 400 / 7 grpc 3 exit USAGE retry Changed
        "Invalid query parameter", "Correct the query parameter.";
    InvalidCursor "invalid-cursor" 400 / 7 grpc 3 exit USAGE retry Changed
        "Invalid cursor", "Restart the list without a cursor.";
    CursorExpired "cursor-expired" 410 / 7 grpc 9 exit USAGE retry Changed
        "Cursor expired", "Restart the list without a cursor.";
    MethodNotAllowed "method-not-allowed" 405 / 7 grpc 12 exit USAGE retry Changed
        "Method not allowed", "Use a method of the Allow header.";
    IdempotencyKeyReused "idempotency-key-reused" 422 / 7 grpc 3 exit USAGE retry Changed
        "Idempotency key reused for another request", "Use a new key for each new request.";
    Unauthenticated "unauthenticated" 401 / 11 grpc 16 exit REFUSED retry Changed
        "Authentication required", "Send a valid token.";
    Forbidden "forbidden" 403 / 120 grpc 7 exit REFUSED retry Changed
        "Permission denied", "Ask an administrator for a role with this permission.";
    TokenExpired "token-expired" 401 / 11 grpc 16 exit REFUSED retry Changed
        "Token expired", "Get a new token.";
    ForeignNode "foreign-node" 403 / 121 grpc 7 exit REFUSED retry Never
        "Resource of another node", "Send the request from the node that owns the resource.";
    NotFound "not-found" 404 / 102 grpc 5 exit NOT_FOUND retry Changed
        "Not found", "Check the name against the list of existing resources.";
    AlreadyExists "already-exists" 409 / 7 grpc 6 exit RACED retry Changed
        "Already exists", "Choose another name, or change the existing resource.";
    RevisionMismatch "revision-mismatch" 412 / 7 grpc 10 exit RACED retry Changed
        "Revision mismatch", "Read the resource again, merge, and retry with the new revision.";
    PreconditionRequired "precondition-required" 428 / 7 grpc 9 exit USAGE retry Changed
        "Precondition required", "Send If-Match with the revision that was read.";
    RevisionCompacted "revision-compacted" 410 / 7 grpc 11 exit USAGE retry Changed
        "Revision compacted", "Restart from a list.";
    RevisionNotReached "revision-not-reached" 503 / 11 grpc 14 exit UNAVAILABLE retry Same
        "Revision not reached yet", "Retry, or use another member.";
    ImmutableField "immutable-field" 422 / 7 grpc 9 exit REFUSED retry Changed
        "Immutable field", "Recreate the resource, or leave the field unchanged.";
    Overlap "overlap" 409 / 7 grpc 9 exit REFUSED retry Changed
        "Overlapping addresses", "Choose unused addresses, or another network.";
    InUse "in-use" 409 / 7 grpc 9 exit REFUSED retry After
        "Resource in use", "Release its addresses or delete its dependents first; a pool can also be drained.";
    Terminating "terminating" 409 / 106 grpc 9 exit REFUSED retry Changed
        "Resource is being deleted", "Use another pool or subnet.";
    ManagedElsewhere "managed-elsewhere" 409 / 7 grpc 9 exit REFUSED retry Changed
        "Resource of another manager", "Change the resource through its manager, or take it over.";
    PoolExhausted "pool-exhausted" 409 / 101 grpc 8 exit REFUSED retry After
        "No address available", "Add a range to the pool, or release unused addresses.";
    NoPoolSelected "no-pool-selected" 409 / 103 grpc 9 exit REFUSED retry Changed
        "No pool selected", "Name a pool in the request, or mark one as default.";
    NoPoolFits "no-pool-fits" 409 / 104 grpc 9 exit REFUSED retry Changed
        "No eligible pool", "See the reason for each pool in the detail.";
    PoolDisabled "pool-disabled" 409 / 105 grpc 9 exit REFUSED retry Changed
        "Pool disabled", "Enable the pool, or use another one.";
    AddressTaken "address-taken" 409 / 107 grpc 6 exit REFUSED retry Changed
        "Address in use", "Request another address, or release this one first.";
    AddressOutsidePools "address-outside-pools" 422 / 108 grpc 3 exit REFUSED retry Changed
        "Address outside the candidate pools", "Request an address of a pool that the request may use.";
    AddressReserved "address-reserved" 409 / 109 grpc 9 exit REFUSED retry Changed
        "Address not allocatable", "Request another address.";
    AddressCooling "address-cooling" 409 / 110 grpc 9 exit REFUSED retry After
        "Address cooling", "Wait until the cooling period ends, or request another address.";
    AddressQuarantined "address-quarantined" 409 / 111 grpc 9 exit REFUSED retry Changed
        "Address quarantined", "Find the unknown host that uses the address.";
    AddressConflict "address-conflict" 409 / 112 grpc 10 exit REFUSED retry Same
        "Address conflict on the link", "Retry; the next attempt uses another address.";
    GatewayUnreachable "gateway-unreachable" 409 / 113 grpc 9 exit REFUSED retry After
        "Gateway unreachable", "Check the link between node and gateway.";
    QuotaExceeded "quota-exceeded" 409 / 114 grpc 8 exit REFUSED retry After
        "Quota exceeded", "Release addresses, or ask for a higher quota.";
    AttachmentReleased "attachment-released" 409 / 115 grpc 9 exit REFUSED retry Never
        "Attachment released after the start of this request", "No action needed: a newer request replaces this one.";
    AllocationChanged "allocation-changed" 409 / 116 grpc 9 exit REFUSED retry Never
        "Allocation gone or replaced", "No action needed: the old allocation no longer exists.";
    CheckFailed "check-failed" 409 / 117 grpc 9 exit REFUSED retry Never
        "Attachment differs from its recorded state", "Delete the container; the runtime creates it again.";
    NoLeader "no-leader" 503 / 11 grpc 14 exit UNAVAILABLE retry Same
        "No leader", "Retry with any member. Operators: ipamctl status.";
    Overloaded "overloaded" 503 / 11 grpc 14 exit UNAVAILABLE retry After
        "Server overloaded", "Retry later.";
    DeadlineExceeded "deadline-exceeded" 504 / 11 grpc 4 exit UNKNOWN retry Same
        "Deadline exceeded", "Retry the same request; it is applied at most once.";
    StorageFull "storage-full" 507 / 11 grpc 8 exit UNAVAILABLE retry After
        "Disk full", "Free disk space on the members.";
    ShuttingDown "shutting-down" 503 / 11 grpc 14 exit UNAVAILABLE retry Same
        "Member shutting down", "Retry with another member.";
    EpochUnconfirmed "epoch-unconfirmed" 503 / 118 grpc 14 exit UNAVAILABLE retry After
        "Restored pools not confirmed", "Run ipamctl cluster epoch to review the pools, and ipamctl cluster epoch confirm to enable them.";
    FeatureLevel "feature-level" 409 / 119 grpc 9 exit REFUSED retry Changed
        "Feature level too low", "Upgrade all members first.";
    WrongCluster "wrong-cluster" 421 / 7 grpc 9 exit REFUSED retry Changed
        "Wrong cluster", "Check the server addresses.";
    AgentUnreachable "agent-unreachable" 503 / 11 grpc 14 exit UNAVAILABLE retry Same
        "Node agent unreachable", "Start the agent, or configure servers.";
    NotImplemented "not-implemented" 501 / 1 grpc 12 exit REFUSED retry Never
        "Not implemented", "Upgrade the servers.";
    Internal "internal" 500 / 999 grpc 13 exit REFUSED retry Same
        "Internal error", "Report it with the request ID.";
    Unreachable "unreachable" 503 / 11 grpc 14 exit UNAVAILABLE retry Same
        "No server reachable", "Check that ipamd runs and that the server addresses are correct.";
    TooManyRequests "too-many-requests" 429 / 11 grpc 8 exit UNAVAILABLE retry After
        "Too many concurrent requests", "Wait until other requests of this client have finished.";
    TooSlow "too-slow" 408 / 11 grpc 4 exit UNAVAILABLE retry Same
        "Request timeout", "Retry; check the network between client and server.";
    TlsRequired "tls-required" 400 / 7 grpc 9 exit USAGE retry Changed
        "TLS required", "Use an https:// address, and configure the CA of the servers.";
    StateDiverged "state-diverged" 503 / 11 grpc 14 exit UNAVAILABLE retry Same
        "State of this member diverged", "Retry with another member. Operators: ipamctl status.";
    MemberUnfit "member-unfit" 409 / 7 grpc 9 exit REFUSED retry After
        "Member not ready for the change", "Check the members: ipamctl cluster members.";
    QuorumAtRisk "quorum-at-risk" 409 / 7 grpc 9 exit REFUSED retry Changed
        "Quorum at risk", "Start the unavailable members, or add members first.";
    NotLeased "not-leased" 409 / 7 grpc 9 exit REFUSED retry Never
        "No lease", "No renewal needed: the allocation lasts until it is released.";
    BootUnconfirmed "boot-unconfirmed" 409 / 11 grpc 14 exit REFUSED retry After
        "Boot of the node not confirmed", "Retry with a new process; container runtimes do so automatically.";
    ConflictingFields "conflicting-fields" 422 / 7 grpc 3 exit USAGE retry Changed
        "Conflicting fields", "Change one of the fields, or omit it.";
    JournalUnwritable "journal-unwritable" 507 / 11 grpc 8 exit UNAVAILABLE retry After
        "Journal of the node's agent not writable", "Free disk space on the node; see ipam-agent doctor.";
    PodUnknown "pod-unknown" 503 / 11 grpc 14 exit UNAVAILABLE retry After
        "Pod unknown to the node's agent", "Check the API server: ipam-agent doctor. The runtime retries.";
    PodUnreported "pod-unreported" 503 / 11 grpc 14 exit UNAVAILABLE retry Same
        "Pod not reported by its watcher", "Retry; if it persists, check the watcher: ipamctl task list.";
    ClaimMismatch "claim-mismatch" 403 / 122 grpc 7 exit REFUSED retry After
        "Claim of a node not confirmed", "Retry; if it persists, check whether the node's token is stolen.";
    NotRenderable "not-renderable" 409 / 7 grpc 9 exit REFUSED retry Changed
        "Configuration not renderable", "Correct the named value, or use another format.";
    HostReinstalled "host-reinstalled" 409 / 123 grpc 9 exit REFUSED retry Changed
        "Host reinstalled", "Repeat it with take_over: ipamctl allocate or ipam-agent serve, --take-over.";
}

impl Code {
    /// The code in CamelCase, as reasons of conditions in Kubernetes are: `not-found` is `NotFound`.
    #[must_use]
    pub fn reason(self) -> String {
        let mut reason = String::new();
        for word in self.entry().code.split('-') {
            let mut characters = word.chars();
            reason.extend(characters.next().map(|first| first.to_ascii_uppercase()));
            reason.push_str(characters.as_str());
        }
        reason
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.entry().code)
    }
}

/// A refusal or failure, as every channel shows it (`application/problem+json`).
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Problem {
    /// URI of the code's documentation.
    #[serde(rename = "type", default)]
    pub kind: String,
    /// Constant title of the code.
    #[serde(default)]
    pub title: String,
    /// HTTP status.
    pub status: u16,
    /// The stable code. One that this version doesn't know is read as `internal`: a newer server may have it.
    #[serde(deserialize_with = "known_code")]
    pub code: Code,
    /// One sentence with the names and numbers.
    pub detail: String,
    /// Remedy.
    pub help: String,
    /// Advice on repeating the request.
    pub retry: Retry,
    /// Applied status of the request.
    pub applied: Applied,
    /// The request that it answers.
    pub request_id: Option<String>,
    /// The state that it was decided on.
    pub revision: Option<u64>,
    /// Invalid fields of the body.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FieldError>,
    /// Names and numbers for programs.
    pub context: Option<Box<Context>>,
}

fn known_code<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Code, D::Error> {
    let text = String::deserialize(deserializer)?;
    let known = Code::ALL.iter().find(|code| code.entry().code == text);
    Ok(known.copied().unwrap_or(Code::Internal))
}

impl Problem {
    /// Creates a problem with the status, help and retry advice of its catalogue row.
    #[must_use]
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        let entry = code.entry();
        Self {
            kind: format!("{PROBLEM_TYPE_PREFIX}{}", entry.code),
            title: entry.title.to_owned(),
            status: entry.http,
            code,
            detail: detail.into(),
            help: entry.help.to_owned(),
            retry: entry.retry,
            applied: Applied::No,
            request_id: None,
            revision: None,
            errors: Vec::new(),
            context: None,
        }
    }

    /// Sets the place of the problem in the body, a JSON pointer.
    #[must_use]
    pub fn at(mut self, pointer: impl Into<String>) -> Self {
        let error = FieldError { pointer: pointer.into(), code: self.code, detail: self.detail.clone() };
        self.errors.push(error);
        self
    }

    /// Moves the place below `pointer`, for a body that is part of a larger one.
    #[must_use]
    pub fn below(mut self, pointer: &str) -> Self {
        for error in &mut self.errors {
            error.pointer.insert_str(0, pointer);
        }
        self
    }

    /// Adds names and numbers to the context.
    #[must_use]
    pub fn with(mut self, add: impl FnOnce(&mut Context)) -> Self {
        add(self.context.get_or_insert_default());
        self
    }

    /// Replaces the remedy by a more specific one.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = help.into();
        self
    }

    /// Sets the pause before a repetition can succeed, in milliseconds.
    #[must_use]
    pub fn retry_after(self, retry_after_ms: u64) -> Self {
        let seconds = retry_after_ms.div_ceil(1_000);
        let help = format!(
            "Retry in {seconds} s; container runtimes do so by themselves. If it persists: ipamctl status."
        );
        self.help(help).with(|context| context.retry_after_ms = Some(retry_after_ms))
    }

    /// Marks the request as possibly applied.
    #[must_use]
    pub fn maybe_applied(mut self) -> Self {
        self.applied = Applied::Unknown;
        self
    }

    /// Exit code of `ipamctl` for the problem.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self.applied {
            Applied::Unknown => exit::UNKNOWN,
            Applied::No if self.code.entry().exit == exit::UNKNOWN => exit::UNAVAILABLE,
            Applied::No => self.code.entry().exit,
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.detail)
    }
}

impl std::error::Error for Problem {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_its_own_text_and_a_real_status() {
        let mut codes: Vec<&str> = Code::ALL.iter().map(|code| code.entry().code).collect();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), Code::ALL.len());
        let own: Vec<u16> =
            Code::ALL.iter().map(|code| code.entry().cni).filter(|cni| (100..200).contains(cni)).collect();
        assert_eq!(own.iter().collect::<std::collections::BTreeSet<_>>().len(), own.len(), "{own:?}");
        for code in Code::ALL {
            let entry = code.entry();
            assert!((400..600).contains(&entry.http), "{code}");
            assert!(entry.cni == 999 || entry.cni < 200, "{code}");
            assert!((3..=16).contains(&entry.grpc), "{code}");
            assert_eq!(serde_json::to_value(code).unwrap(), entry.code);
        }
    }

    #[test]
    fn every_code_has_its_own_reason_in_camel_case() {
        let reasons: std::collections::BTreeSet<String> =
            Code::ALL.iter().map(|code| code.reason()).collect();
        assert_eq!(reasons.len(), Code::ALL.len());
        assert!(reasons.iter().flat_map(|reason| reason.chars()).all(|c| c.is_ascii_alphanumeric()));
        assert_eq!(Code::ManagedElsewhere.reason(), "ManagedElsewhere");
    }

    #[test]
    fn a_newer_servers_code_is_still_a_problem() {
        let mut value = serde_json::to_value(Problem::new(Code::InUse, "x")).unwrap();
        assert_eq!(serde_json::from_value::<Problem>(value.clone()).unwrap().code, Code::InUse);
        value["code"] = "invented-later".into();
        assert_eq!(serde_json::from_value::<Problem>(value).unwrap().code, Code::Internal);
    }

    /// Scripts, dashboards and runtimes depend on these numbers, so they never change.
    #[test]
    fn the_cni_numbers_are_fixed() {
        for (code, cni) in [
            (Code::PoolExhausted, 101),
            (Code::NotFound, 102),
            (Code::NoPoolSelected, 103),
            (Code::AddressTaken, 107),
            (Code::AddressReserved, 109),
            (Code::AttachmentReleased, 115),
            (Code::CheckFailed, 117),
            (Code::ClaimMismatch, 122),
            (Code::HostReinstalled, 123),
            (Code::NoLeader, 11),
            (Code::BootUnconfirmed, 11),
            (Code::Internal, 999),
        ] {
            assert_eq!(code.entry().cni, cni);
        }
    }
}
