//! What can go wrong: one closed catalogue, and the shape in which HTTP carries it (RFC 9457).

mod context;

use std::fmt;

pub use context::{Context, FieldError, Holder, PoolVerdict, QuotaUse};
use serde::{Deserialize, Serialize};

use crate::brand::PROBLEM_TYPE_PREFIX;

/// Whether repeating a request helps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Retry {
    /// It never will.
    Never,
    /// Repeat it unchanged.
    Same,
    /// Repeat it later; `Retry-After` or the context says when.
    After,
    /// Change it first.
    Changed,
}

/// Whether the request had an effect.
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
    /// Done, also when there was nothing to do.
    pub const DONE: u8 = 0;
    /// Refused by a rule.
    pub const REFUSED: u8 = 1;
    /// Flags, file syntax, local validation.
    pub const USAGE: u8 = 2;
    /// Not found.
    pub const NOT_FOUND: u8 = 3;
    /// Somebody else was faster: revision mismatch, already exists.
    pub const RACED: u8 = 4;
    /// Unavailable, nothing was changed, repeating is safe.
    pub const UNAVAILABLE: u8 = 5;
    /// Outcome unknown.
    pub const UNKNOWN: u8 = 6;
    /// Ran fine and found something.
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
    /// Exit code of `ipamctl`.
    pub exit: u8,
    /// Whether repeating helps.
    pub retry: Retry,
    /// A few words that don't vary.
    pub title: &'static str,
    /// What to do, where nothing more exact is known.
    pub help: &'static str,
}

macro_rules! catalogue {
    ($($variant:ident $code:literal $http:literal / $cni:literal exit $exit:ident retry $retry:ident
       $title:literal, $help:literal;)*) => {
        /// The stable codes. New ones are only ever appended (they travel between members by position).
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub enum Code {
            $(#[doc = $title] #[serde(rename = $code)] $variant,)*
        }

        impl Code {
            /// All of them, in order.
            pub const ALL: &'static [Code] = &[$(Code::$variant),*];

            /// Its row of the catalogue.
            #[must_use]
            pub fn entry(self) -> Entry {
                match self {
                    $(Code::$variant => Entry {
                        code: $code, http: $http, cni: $cni, exit: exit::$exit,
                        retry: Retry::$retry, title: $title, help: $help,
                    },)*
                }
            }
        }
    };
}

catalogue! {
    MalformedBody "malformed-body" 400 / 6 exit USAGE retry Changed
        "The body can't be read", "Send one JSON object in UTF-8.";
    UnknownField "unknown-field" 400 / 2 exit USAGE retry Changed
        "A field is not known", "Correct or remove the field.";
    InvalidField "invalid-field" 422 / 7 exit USAGE retry Changed
        "A field is not valid", "Correct the field.";
    CidrHasHostBits "cidr-has-host-bits" 422 / 7 exit USAGE retry Changed
        "The CIDR has host bits", "Write the network's own address before the slash.";
    RangeReversed "range-reversed" 422 / 7 exit USAGE retry Changed
        "The range is reversed", "Write the lower address first.";
    FamilyMismatch "family-mismatch" 422 / 7 exit USAGE retry Changed
        "IPv4 and IPv6 are mixed", "Use one family; a pool has the family of its subnet.";
    OutsideSubnet "outside-subnet" 422 / 7 exit REFUSED retry Changed
        "Outside the subnet", "Stay inside the subnet's CIDR, or create a subnet for it.";
    GatewayInRange "gateway-in-range" 422 / 7 exit REFUSED retry Changed
        "The gateway is not usable", "Choose an address that hosts may have.";
    TooLarge "too-large" 413 / 7 exit USAGE retry Changed
        "The request is too large", "Send less at once.";
    LimitExceeded "limit-exceeded" 422 / 7 exit USAGE retry Changed
        "A limit is exceeded", "Stay within the limit, or divide the request.";
    UnsupportedMediaType "unsupported-media-type" 415 / 6 exit USAGE retry Changed
        "The media type is not supported", "Send application/json.";
    InvalidFilter "invalid-filter" 400 / 7 exit USAGE retry Changed
        "The query is not valid", "Correct the query parameter.";
    InvalidCursor "invalid-cursor" 400 / 7 exit USAGE retry Changed
        "The cursor is not valid", "Begin the list again without a cursor.";
    CursorExpired "cursor-expired" 410 / 7 exit USAGE retry Changed
        "The cursor has expired", "Begin the list again without a cursor.";
    MethodNotAllowed "method-not-allowed" 405 / 7 exit USAGE retry Changed
        "The method is not allowed here", "See the Allow header.";
    IdempotencyKeyReused "idempotency-key-reused" 422 / 7 exit USAGE retry Changed
        "The idempotency key was used for another request", "Use a new key for a new request.";
    Unauthenticated "unauthenticated" 401 / 11 exit REFUSED retry Changed
        "Who asks is not known", "Send a valid token.";
    Forbidden "forbidden" 403 / 120 exit REFUSED retry Changed
        "Not allowed", "Ask an administrator for the role.";
    TokenExpired "token-expired" 401 / 11 exit REFUSED retry Changed
        "The token has expired", "Get a new token.";
    ForeignNode "foreign-node" 403 / 121 exit REFUSED retry Never
        "It belongs to another node", "Ask from the node that it belongs to.";
    NotFound "not-found" 404 / 102 exit NOT_FOUND retry Changed
        "Not found", "Check the name; lists show what there is.";
    AlreadyExists "already-exists" 409 / 7 exit RACED retry Changed
        "It exists already", "Choose another name, or change the one that exists.";
    RevisionMismatch "revision-mismatch" 412 / 7 exit RACED retry Changed
        "Somebody else changed it", "Read it again, merge, and repeat with the new revision.";
    PreconditionRequired "precondition-required" 428 / 7 exit USAGE retry Changed
        "A precondition is required", "Send If-Match with the revision that you read.";
    RevisionCompacted "revision-compacted" 410 / 7 exit USAGE retry Changed
        "The revision is too old", "Begin again from a list.";
    RevisionNotReached "revision-not-reached" 503 / 11 exit UNAVAILABLE retry Same
        "The revision is not reached yet", "Repeat, or ask another member.";
    ImmutableField "immutable-field" 422 / 7 exit REFUSED retry Changed
        "The field can't be changed", "Delete and create it again, or leave the field as it was.";
    Overlap "overlap" 409 / 7 exit REFUSED retry Changed
        "It overlaps with another", "Choose addresses that nothing else has, or another network.";
    InUse "in-use" 409 / 7 exit REFUSED retry After
        "It is in use", "Release what uses it first, or drain it.";
    Terminating "terminating" 409 / 106 exit REFUSED retry Changed
        "It is going away", "Use another one.";
    ManagedElsewhere "managed-elsewhere" 409 / 7 exit REFUSED retry Changed
        "It is managed elsewhere", "Change it where it is managed.";
    PoolExhausted "pool-exhausted" 409 / 101 exit REFUSED retry After
        "No address can be given", "Add a range to the pool, or release what is no longer needed.";
    NoPoolSelected "no-pool-selected" 409 / 103 exit REFUSED retry Changed
        "No rule names a pool", "Name a pool in the request, or mark one as default.";
    NoPoolFits "no-pool-fits" 409 / 104 exit REFUSED retry Changed
        "No candidate pool fits", "See the reasons of each pool.";
    PoolDisabled "pool-disabled" 409 / 105 exit REFUSED retry Changed
        "The pool is disabled", "Enable it, or use another one.";
    AddressTaken "address-taken" 409 / 107 exit REFUSED retry Changed
        "The address is taken", "Ask for another address, or release it first.";
    AddressOutsidePools "address-outside-pools" 422 / 108 exit REFUSED retry Changed
        "The address is in no candidate pool", "Ask for an address of a pool that the request may use.";
    AddressReserved "address-reserved" 409 / 109 exit REFUSED retry Changed
        "The address is never given out", "Ask for another address.";
    AddressCooling "address-cooling" 409 / 110 exit REFUSED retry After
        "The address is cooling", "Wait until it has cooled, or ask for another address.";
    AddressQuarantined "address-quarantined" 409 / 111 exit REFUSED retry Changed
        "The address is quarantined", "Find the stranger that uses it.";
    AddressConflict "address-conflict" 409 / 112 exit REFUSED retry Same
        "The address is in use on the wire", "Repeat; another address will be tried.";
    GatewayUnreachable "gateway-unreachable" 409 / 113 exit REFUSED retry After
        "The gateway doesn't answer", "Check the wire between node and gateway.";
    QuotaExceeded "quota-exceeded" 409 / 114 exit REFUSED retry After
        "A quota is used up", "Release something, or have the quota raised.";
    AttachmentReleased "attachment-released" 409 / 115 exit REFUSED retry Never
        "The attachment was released after this request began", "Nothing to do: a newer request replaces this one.";
    AllocationChanged "allocation-changed" 409 / 116 exit REFUSED retry Never
        "The allocation is gone or another one", "Nothing to do: yours is already gone.";
    CheckFailed "check-failed" 409 / 117 exit REFUSED retry Never
        "The attachment is not as it should be", "Delete the container and let the runtime make it again.";
    NoLeader "no-leader" 503 / 11 exit UNAVAILABLE retry Same
        "No leader", "Repeat; any member will do. For operators: ipamctl status.";
    Overloaded "overloaded" 503 / 11 exit UNAVAILABLE retry After
        "Too much at once", "Repeat a little later.";
    DeadlineExceeded "deadline-exceeded" 504 / 11 exit UNKNOWN retry Same
        "It took too long", "Repeat the same request; what was done is not done twice.";
    StorageFull "storage-full" 507 / 11 exit UNAVAILABLE retry After
        "The disk is full", "Make room on the members' disks.";
    ShuttingDown "shutting-down" 503 / 11 exit UNAVAILABLE retry Same
        "This member is stopping", "Repeat; another member will do.";
    EpochUnconfirmed "epoch-unconfirmed" 503 / 118 exit UNAVAILABLE retry After
        "Restored, and not yet confirmed", "Look at ipamctl cluster epoch; ipamctl cluster epoch confirm lets pools give again.";
    FeatureLevel "feature-level" 409 / 119 exit REFUSED retry Changed
        "A member is too old for this", "Upgrade all members first.";
    WrongCluster "wrong-cluster" 421 / 7 exit REFUSED retry Changed
        "Another cluster answers there", "Check the addresses of the servers.";
    AgentUnreachable "agent-unreachable" 503 / 11 exit UNAVAILABLE retry Same
        "The node's agent doesn't answer", "Start the agent, or name servers in the configuration.";
    NotImplemented "not-implemented" 501 / 1 exit REFUSED retry Never
        "Not implemented", "Upgrade.";
    Internal "internal" 500 / 999 exit REFUSED retry Same
        "A defect of ours", "Report it with the request id.";
    Unreachable "unreachable" 503 / 11 exit UNAVAILABLE retry Same
        "No server answers", "Check that the daemons run and that the addresses are right.";
    TooManyRequests "too-many-requests" 429 / 11 exit UNAVAILABLE retry After
        "Too many requests at once", "Wait for some of your own requests to end.";
    TooSlow "too-slow" 408 / 11 exit UNAVAILABLE retry Same
        "The request came too slowly", "Repeat it; check the network in between.";
    TlsRequired "tls-required" 400 / 7 exit USAGE retry Changed
        "TLS is required here", "Write https:// in the address, and name the CA of the servers.";
    StateDiverged "state-diverged" 503 / 11 exit UNAVAILABLE retry Same
        "This member's state is quarantined", "Repeat; another member will do. For operators: ipamctl status.";
    MemberUnfit "member-unfit" 409 / 7 exit REFUSED retry After
        "The member can't do that now", "Look at the members: ipamctl cluster members.";
    QuorumAtRisk "quorum-at-risk" 409 / 7 exit REFUSED retry Changed
        "Too few members would be left", "Start the members that don't answer, or add others first.";
    NotLeased "not-leased" 409 / 7 exit REFUSED retry Never
        "It has no lease", "Nothing to renew: it lasts until somebody releases it.";
    BootUnconfirmed "boot-unconfirmed" 409 / 11 exit REFUSED retry After
        "The node's boot is not confirmed", "Repeat it with a new process, as a container runtime does by itself.";
    ConflictingFields "conflicting-fields" 422 / 7 exit USAGE retry Changed
        "Fields contradict each other", "Change one of the fields, or leave it out.";
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.entry().code)
    }
}

/// A refusal or failure, as every channel shows it (`application/problem+json`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Problem {
    /// Where the code is documented.
    #[serde(rename = "type", default)]
    pub kind: String,
    /// A few words that don't vary.
    #[serde(default)]
    pub title: String,
    /// HTTP status.
    pub status: u16,
    /// The stable code. One that this version doesn't know is read as `internal`: a newer server may have it.
    #[serde(deserialize_with = "known_code")]
    pub code: Code,
    /// One sentence with the names and numbers.
    pub detail: String,
    /// What to do next.
    pub help: String,
    /// Whether repeating helps.
    pub retry: Retry,
    /// Whether it had an effect.
    pub applied: Applied,
    /// The request that it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// The state that it was decided on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<u64>,
    /// Where in the body it is wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FieldError>,
    /// Names and numbers for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<Box<Context>>,
}

fn known_code<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Code, D::Error> {
    let text = String::deserialize(deserializer)?;
    let known = Code::ALL.iter().find(|code| code.entry().code == text);
    Ok(known.copied().unwrap_or(Code::Internal))
}

impl Problem {
    /// A problem with its catalogue row's status, help and advice.
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

    /// The same about one place of the body, named by a JSON pointer.
    #[must_use]
    pub fn at(mut self, pointer: impl Into<String>) -> Self {
        let error = FieldError { pointer: pointer.into(), code: self.code, detail: self.detail.clone() };
        self.errors.push(error);
        self
    }

    /// The same where the body is a part of a larger one, below `pointer`.
    #[must_use]
    pub fn below(mut self, pointer: &str) -> Self {
        for error in &mut self.errors {
            error.pointer.insert_str(0, pointer);
        }
        self
    }

    /// The same with more names and numbers.
    #[must_use]
    pub fn with(mut self, add: impl FnOnce(&mut Context)) -> Self {
        add(self.context.get_or_insert_default());
        self
    }

    /// The same with a more exact piece of advice.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = help.into();
        self
    }

    /// The same for a request that may have been applied.
    #[must_use]
    pub fn maybe_applied(mut self) -> Self {
        self.applied = Applied::Unknown;
        self
    }

    /// The exit code of `ipamctl` for it.
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
        for code in Code::ALL {
            let entry = code.entry();
            assert!((400..600).contains(&entry.http), "{code}");
            assert!(entry.cni == 999 || entry.cni < 200, "{code}");
            assert_eq!(serde_json::to_value(code).unwrap(), entry.code);
        }
    }

    #[test]
    fn a_newer_servers_code_is_still_a_problem() {
        let mut value = serde_json::to_value(Problem::new(Code::InUse, "x")).unwrap();
        assert_eq!(serde_json::from_value::<Problem>(value.clone()).unwrap().code, Code::InUse);
        value["code"] = "invented-later".into();
        assert_eq!(serde_json::from_value::<Problem>(value).unwrap().code, Code::Internal);
    }

    /// Scripts, dashboards and runtimes stand on these numbers; they never move.
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
            (Code::NoLeader, 11),
            (Code::BootUnconfirmed, 11),
            (Code::Internal, 999),
        ] {
            assert_eq!(code.entry().cni, cni);
        }
    }
}
