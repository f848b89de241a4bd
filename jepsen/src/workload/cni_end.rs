//! End of a run of the plugin, as an operation of a history.

use std::net::IpAddr;

use anyhow::Result;

use super::PluginEnd;
use crate::history::Type;

/// Codes of CNI with which a run ends before it sends a request, or after a request that can't take effect.
const WITHOUT_EFFECT: [u64; 6] = [1, 2, 4, 6, 7, 8];

/// End of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Ended {
    /// Success, with the addresses of an ADD.
    Done(Vec<IpAddr>),
    /// Error with the code of ipamd if the plugin reports one, else with the CNI error number.
    Refused(String),
    /// A signal ended the plugin.
    Killed,
    /// The host has no power.
    Lost,
}

impl Ended {
    /// Returns true for a success.
    pub(super) fn is_done(&self) -> bool {
        matches!(self, Self::Done(_))
    }
}

/// Returns the kind of the operation's end.
///
/// An ADD that is refused may still take effect: an earlier attempt of the same run may have reached a server
/// that didn't answer. CHECK changes nothing.
pub(super) fn interpret(verb: &str, end: &Result<PluginEnd>) -> (Type, Ended) {
    let uncertain = if verb == "CHECK" { Type::Fail } else { Type::Info };
    let Ok(end) = end else { return (uncertain, Ended::Lost) };
    match end.code {
        None => (uncertain, Ended::Killed),
        Some(0) if verb == "ADD" => match addresses(end) {
            Some(addresses) => (Type::Ok, Ended::Done(addresses)),
            None => (uncertain, Ended::Refused("no-result".to_owned())),
        },
        Some(0) => (Type::Ok, Ended::Done(Vec::new())),
        Some(_) => {
            let number = end.output.get("code").and_then(serde_json::Value::as_u64);
            let is_without_effect = number.is_some_and(|number| WITHOUT_EFFECT.contains(&number));
            let kind = if is_without_effect { Type::Fail } else { uncertain };
            (kind, Ended::Refused(code(end, number)))
        }
    }
}

/// Code of ipamd at the begin of the details, or the CNI error number.
fn code(end: &PluginEnd, number: Option<u64>) -> String {
    let details = end.output.get("details").and_then(serde_json::Value::as_str).unwrap_or_default();
    let is_code =
        |text: &&str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-');
    match (details.split(':').next().filter(is_code), number) {
        (Some(code), _) => code.to_owned(),
        (None, Some(number)) => format!("cni-{number}"),
        (None, None) => "no-output".to_owned(),
    }
}

fn addresses(end: &PluginEnd) -> Option<Vec<IpAddr>> {
    let ips = end.output.get("ips")?.as_array()?;
    ips.iter().map(|ip| ip.get("address")?.as_str()?.split('/').next()?.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn end(code: Option<i32>, output: Value) -> Result<PluginEnd> {
        Ok(PluginEnd { code, output, stderr: String::new() })
    }

    #[test]
    fn only_certain_ends_are_certain() {
        let added = json!({"ips": [{"address": "10.77.192.1/19"}, {"address": "fd77::c001/67"}]});
        let refused = |number: u64, details: &str| json!({"code": number, "msg": "m", "details": details});
        let text = |code: &str| Ended::Refused(code.to_owned());
        let given = vec!["10.77.192.1".parse().unwrap(), "fd77::c001".parse().unwrap()];
        for (verb, end, expected) in [
            ("ADD", end(Some(0), added), (Type::Ok, Ended::Done(given))),
            ("ADD", end(Some(0), Value::Null), (Type::Info, text("no-result"))),
            ("DEL", end(Some(0), Value::Null), (Type::Ok, Ended::Done(Vec::new()))),
            ("ADD", end(None, Value::Null), (Type::Info, Ended::Killed)),
            ("CHECK", end(None, Value::Null), (Type::Fail, Ended::Killed)),
            ("ADD", end(Some(1), refused(7, "the section ipam is missing")), (Type::Fail, text("cni-7"))),
            ("ADD", end(Some(1), refused(11, "no-leader: none. Retry.")), (Type::Info, text("no-leader"))),
            (
                "ADD",
                end(Some(1), refused(115, "attachment-released: late. No.")),
                (Type::Info, text("attachment-released")),
            ),
            ("DEL", end(Some(1), refused(11, "unreachable: x")), (Type::Info, text("unreachable"))),
            ("ADD", end(Some(101), Value::Null), (Type::Info, text("no-output"))),
            ("DEL", Err(anyhow::anyhow!("no power")), (Type::Info, Ended::Lost)),
        ] {
            assert_eq!(interpret(verb, &end), expected, "{verb} {end:?}");
        }
    }
}
