//! JSON schemas of types with a serialization of their own.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::address::{AddressRange, Family};
use crate::host_policy::MaxUnavailable;
use crate::limits::{
    AUTOMATIC_POOL_ADDRESSES_MAX, INTERFACE_NAME_CHARS_MAX, NAME_CHARS_MAX, OBJECT_NAME_CHARS_MAX,
    SELECTOR_BYTES_MAX, SELECTOR_REQUIREMENTS_MAX,
};
use crate::mac::MacAddress;
use crate::name::{InterfaceName, Name, NamePattern, NetworkAttachment, ObjectName};
use crate::resource::PoolSize;
use crate::selector::Selector;
use crate::time::Timestamp;

/// A network's address and prefix length.
pub struct Cidr;

/// IPv4 or IPv6 address, in any of its forms.
pub struct IpAddress;

/// CIDR of a subnet: addresses that hosts can have, and no more than a subnet may have.
pub struct SubnetCidr;

/// Hexadecimal digits of one group of an IPv6 address.
const GROUP: &str = "[0-9a-fA-F]{1,4}";
/// One number of an IPv4 address.
const OCTET: &str = "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";
/// A number of addresses that an automatic pool may have.
const POOL_ADDRESSES: &str =
    "([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-6])";

const _: () = assert!(AUTOMATIC_POOL_ADDRESSES_MAX == 65_536, "the pattern names it");

/// Pattern of IPv4 addresses.
#[must_use]
pub fn ipv4() -> String {
    format!("({OCTET}\\.){{3}}{OCTET}")
}

/// Patterns of IPv6 addresses whose first group is `first`; RFC 4291 §2.2.
fn ipv6_from(first: &str) -> Vec<String> {
    let ipv4 = ipv4();
    let mut forms = vec![
        format!("{first}:({GROUP}:){{6}}{GROUP}"),
        format!("{first}:({GROUP}:){{0,6}}:"),
        format!("{first}:({GROUP}:){{5}}{ipv4}"),
        format!("{first}:({GROUP}:){{0,3}}:{ipv4}"),
    ];
    let shortened = (1..=6).map(|last| format!("{first}:({GROUP}:){{0,{}}}(:{GROUP}){{1,{last}}}", 6 - last));
    forms.extend(shortened);
    forms
}

/// Pattern of IPv6 addresses (RFC 4291 §2.2).
#[must_use]
pub fn ipv6() -> String {
    let mut forms = ipv6_from(GROUP);
    forms.push(format!(":((:{GROUP}){{1,7}}|:)"));
    forms.push(format!("::([fF]{{4}}:(0{{1,4}}:)?)?{}", ipv4()));
    format!("({})", forms.join("|"))
}

/// Pattern of CIDRs of either family.
#[must_use]
pub fn cidr() -> String {
    format!("({}/(3[0-2]|[12]?[0-9])|{}/(12[0-8]|1[01][0-9]|[1-9]?[0-9]))", ipv4(), ipv6())
}

/// Pattern of CIDRs of subnets: an IPv4 /8 to /32, or an IPv6 /8 to /128.
///
/// Outside 0.0.0.0/8, 127.0.0.0/8, 224.0.0.0/4, 0::/16 and ff00::/8.
fn subnet_cidr() -> String {
    let octet = "(25[0-5]|24[0-9]|2[01][0-9]|22[0-3]|1[013-9][0-9]|12[0-689]|[1-9][0-9]?)";
    let group = "([1-9a-fA-F][0-9a-fA-F]{0,2}|[1-9a-eA-E][0-9a-fA-F]{3}|[fF][0-9a-eA-E][0-9a-fA-F]{2})";
    let ipv6 = ipv6_from(group).join("|");
    format!(
        "({octet}(\\.{OCTET}){{3}}/(3[0-2]|[12][0-9]|[89])|({ipv6})/(12[0-8]|1[01][0-9]|[1-9][0-9]|[89]))"
    )
}

/// Pattern of [`NamePattern`]: a name, or text with at least one wildcard.
fn name_pattern() -> String {
    let digits = ('0'..='9').map(|from| format!("{from}-[{from}-9a-z]|"));
    let spans: String = digits.chain(('a'..='z').map(|from| format!("{from}-[{from}-z]|"))).collect();
    let wildcard = format!("(\\*|\\?|\\[\\^?({spans}\\.-[a-z0-9.]|[a-z0-9.])+\\])");
    format!("([a-z0-9]([-a-z0-9.]{{0,61}}[a-z0-9])?|[-a-z0-9.]*{wildcard}([-a-z0-9.]|{wildcard})*)")
}

/// Pattern of label selectors: up to [`SELECTOR_REQUIREMENTS_MAX`] requirements with commas between them.
fn selector() -> String {
    let (key, value) = ("[A-Za-z0-9._/:-]{1,253}", "[A-Za-z0-9._/:-]{0,253}");
    let requirement = format!(
        " *(!?{key}|{key} *(=|==|!=) *{value}|{key} +(in|notin) *\\( *{value} *(, *{value} *)*\\)) *"
    );
    format!("( *|{requirement}(,{requirement}){{0,{}}})", SELECTOR_REQUIREMENTS_MAX - 1)
}

macro_rules! schemas {
    ($($type:ident $name:literal => { $($schema:tt)* })*) => {
        $(impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                Cow::Borrowed($name)
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ $($schema)* })
            }
        })*
    };
}

schemas! {
    MacAddress "MacAddress" => {
        "type": "string",
        "description": "An Ethernet address.",
        "examples": ["02:00:00:00:00:01"],
        "pattern": "^[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}$"
    }
    MaxUnavailable "MaxUnavailable" => {
        "description": "A number of nodes, or a percentage of a policy's nodes.",
        "examples": ["50%"],
        "oneOf": [
            { "type": "integer", "minimum": 1, "maximum": u32::MAX },
            { "type": "string", "pattern": "^(100|[1-9][0-9]?)%$" }
        ]
    }
    IpAddress "IpAddress" => {
        "type": "string",
        "description": "An IPv4 or IPv6 address.",
        "examples": ["10.1.2.3", "2001:db8::7"],
        "pattern": format!("^({}|{})$", ipv4(), ipv6())
    }
    Cidr "Cidr" => {
        "type": "string",
        "description": "An address with a prefix length: `10.0.0.0/24`, `2001:db8::/64`.",
        "pattern": format!("^{}$", cidr())
    }
    SubnetCidr "SubnetCidr" => {
        "type": "string",
        "description": "An IPv4 CIDR of /8 to /32 or an IPv6 CIDR of /8 to /128, without host bits and outside the ranges for loopback, multicast and other special purposes (RFC 6890).",
        "examples": ["10.1.2.0/24", "2001:db8::/64"],
        "pattern": format!("^{}$", subnet_cidr())
    }
    Name "Name" => {
        "type": "string",
        "description": "A name of ours.",
        "pattern": "^[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?$",
        "maxLength": NAME_CHARS_MAX
    }
    ObjectName "ObjectName" => {
        "type": "string",
        "description": "A name that another system gave.",
        "pattern": "^[A-Za-z0-9][A-Za-z0-9_.:-]*$",
        "maxLength": OBJECT_NAME_CHARS_MAX
    }
    NamePattern "NamePattern" => {
        "type": "string",
        "description": "A name of ours, in which `*`, `?` and classes as `[a-z]` may stand for characters.",
        "pattern": format!("^{}$", name_pattern()),
        "maxLength": NAME_CHARS_MAX
    }
    NetworkAttachment "NetworkAttachment" => {
        "type": "string",
        "description": "What Multus calls a network attachment, or the name of a CNI configuration.",
        "pattern": "^[A-Za-z0-9][A-Za-z0-9_.:-]{0,252}(/[A-Za-z0-9][A-Za-z0-9_.:-]{0,252})?$",
        "maxLength": 2 * OBJECT_NAME_CHARS_MAX + 1
    }
    InterfaceName "InterfaceName" => {
        "type": "string",
        "description": "The name of a network interface, of at most 15 bytes in UTF-8.",
        "pattern": "^(\\.{3,}|\\.*[^./:\\s\\x00-\\x1f\\x7f-\\x9f][^/:\\s\\x00-\\x1f\\x7f-\\x9f]*)$",
        "minLength": 1,
        "maxLength": INTERFACE_NAME_CHARS_MAX
    }
    AddressRange "AddressRange" => {
        "type": "string",
        "description": "One address, a CIDR without host bits, or two addresses of one family: `10.0.0.9-10.0.0.20`.",
        "examples": ["10.1.2.9-10.1.2.20", "2001:db8::7", "10.1.2.128/25"],
        "pattern": format!("^({v4}(-{v4})?|{v6}(-{v6})?|{})$", cidr(), v4 = ipv4(), v6 = ipv6())
    }
    Family "Family" => {
        "type": "integer",
        "description": "IPv4 or IPv6.",
        "enum": [4, 6]
    }
    PoolSize "PoolSize" => {
        "type": "string",
        "description": "How many addresses: `5`, or `+2` for two more than there are replicas.",
        "pattern": format!("^(\\+0|\\+?{POOL_ADDRESSES})$")
    }
    Timestamp "Timestamp" => {
        "type": "string",
        "description": "A moment, in UTC.",
        "format": "date-time"
    }
    Selector "Selector" => {
        "type": "string",
        "description": "A label selector, as Kubernetes writes it: `team=web,tier!=db,zone in (a,b)`.",
        "pattern": format!("^{}$", selector()),
        "maxLength": SELECTOR_BYTES_MAX
    }
}
