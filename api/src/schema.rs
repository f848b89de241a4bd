//! JSON schemas of the values that have their own way of being written.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::address::{AddressRange, Family};
use crate::limits::{INTERFACE_NAME_CHARS_MAX, NAME_CHARS_MAX, OBJECT_NAME_CHARS_MAX, SELECTOR_BYTES_MAX};
use crate::name::{InterfaceName, Name, NamePattern, NetworkAttachment, ObjectName};
use crate::resource::PoolSize;
use crate::selector::Selector;
use crate::time::Timestamp;

/// A network's address and prefix length.
pub struct Cidr;

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
    Cidr "Cidr" => {
        "type": "string",
        "description": "An address with a prefix length: `10.0.0.0/24`, `2001:db8::/64`.",
        "pattern": "^[0-9a-fA-F:.]{2,45}/[0-9]{1,3}$"
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
        "pattern": "^[-a-z0-9.*?\\[\\]^]+$",
        "maxLength": NAME_CHARS_MAX
    }
    NetworkAttachment "NetworkAttachment" => {
        "type": "string",
        "description": "What Multus calls a network attachment, or the name of a CNI configuration.",
        "pattern": "^[A-Za-z0-9][A-Za-z0-9_.:-]*(/[A-Za-z0-9][A-Za-z0-9_.:-]*)?$",
        "maxLength": 2 * OBJECT_NAME_CHARS_MAX + 1
    }
    InterfaceName "InterfaceName" => {
        "type": "string",
        "description": "The name of a network interface.",
        "pattern": "^[^/:\\s]+$",
        "minLength": 1,
        "maxLength": INTERFACE_NAME_CHARS_MAX
    }
    AddressRange "AddressRange" => {
        "type": "string",
        "description": "One address, a CIDR without host bits, or two addresses of one family: `10.0.0.9-10.0.0.20`.",
        "pattern": "^[0-9a-fA-F:.]{2,45}(/[0-9]{1,3}|-[0-9a-fA-F:.]{2,45})?$"
    }
    Family "Family" => {
        "type": "integer",
        "description": "IPv4 or IPv6.",
        "enum": [4, 6]
    }
    PoolSize "PoolSize" => {
        "type": "string",
        "description": "How many addresses: `5`, or `+2` for two more than there are replicas.",
        "pattern": "^\\+?[0-9]{1,5}$"
    }
    Timestamp "Timestamp" => {
        "type": "string",
        "description": "A moment, in UTC.",
        "format": "date-time"
    }
    Selector "Selector" => {
        "type": "string",
        "description": "A label selector, as Kubernetes writes it: `team=web,tier!=db,zone in (a,b)`.",
        "maxLength": SELECTOR_BYTES_MAX
    }
}
