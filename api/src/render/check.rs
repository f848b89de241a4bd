//! Checks of text that enters configuration files.
//!
//! Every format has its own quoting, and some have none. Text with a special meaning in one format is refused
//! for all formats.

use super::file::RenderError;
use crate::mac::MacAddress;
use crate::name::shown;

/// Keys of netplan beside the names of devices.
const RESERVED: [&str; 2] = ["renderer", "all"];

/// Checks the name of an interface.
pub(super) fn checked_name(name: &str) -> Result<&str, RenderError> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let begins = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
    if begins && name.bytes().all(is_plain) && !RESERVED.contains(&name) {
        return Ok(name);
    }
    Err(RenderError(format!(
        "the interface name {} can't be rendered; names of letters, digits, \".\", \"_\" and \"-\" can",
        shown(name)
    )))
}

/// Checks a domain of the search list.
pub(super) fn checked_search(domain: &str) -> Result<String, RenderError> {
    plain(domain, b"._-", "search domain")
}

/// Checks an option of the resolver.
pub(super) fn checked_option(option: &str) -> Result<String, RenderError> {
    plain(option, b"._-:", "resolver option")
}

/// Parses a MAC address of one station.
pub(super) fn checked_mac(mac: &str) -> Result<MacAddress, RenderError> {
    let parsed = crate::address::canonical_mac(mac).parse::<MacAddress>();
    let parsed = parsed.map_err(|problem| RenderError(problem.detail))?;
    if parsed.is_unicast() {
        Ok(parsed)
    } else {
        Err(RenderError(format!("{parsed} is no address of a station")))
    }
}

fn plain(text: &str, others: &[u8], what: &str) -> Result<String, RenderError> {
    let begins = text.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if begins && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || others.contains(&byte)) {
        return Ok(text.to_owned());
    }
    Err(RenderError(format!("the {what} {} can't be rendered; correct it in the subnet", shown(text))))
}
