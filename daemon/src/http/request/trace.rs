//! The trace that a request is part of (W3C Trace Context), for the logs.

use axum::http::HeaderMap;
use ipam_api::brand::HEADER_TRACE_PARENT;

/// Length of version 00 in bytes: `00-<trace id>-<parent id>-<flags>`.
const BYTES: usize = 55;

/// Trace id of a valid `traceparent` header; an invalid header is ignored.
pub(super) fn trace_id(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(HEADER_TRACE_PARENT).iter();
    let (value, more) = (values.next()?.to_str().ok()?.trim(), values.next());
    let mut parts = value.split('-');
    let (version, trace, parent, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let hexadecimal = |part: &str, length: usize| {
        part.len() == length && part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    let is_zero = |part: &str| part.bytes().all(|byte| byte == b'0');
    let known =
        hexadecimal(version, 2) && hexadecimal(trace, 32) && hexadecimal(parent, 16) && hexadecimal(flags, 2);
    // A later version may have further fields; the first one may not.
    let length = if version == "00" { value.len() == BYTES } else { version != "ff" && value.len() >= BYTES };
    (more.is_none() && known && length && !is_zero(trace) && !is_zero(parent)).then_some(trace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_is_known_by_its_id_and_a_bad_one_is_none() {
        let id = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(HEADER_TRACE_PARENT, value.parse().unwrap());
            trace_id(&headers).map(str::to_owned)
        };
        let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
        let good = format!("00-{trace}-00f067aa0ba902b7-01");
        assert_eq!(id(&good).as_deref(), Some(trace));
        assert_eq!(id(&good.replacen("00", "01", 1)).as_deref(), Some(trace));
        assert_eq!(id(&format!("01{}-more", &good[2..])).as_deref(), Some(trace));
        let zeros = "0".repeat(32);
        for bad in [
            "",
            "00",
            &format!("{good}-more"),
            &good.replacen("00", "ff", 1),
            &good.to_uppercase(),
            &good.replace(trace, &zeros),
            &good.replace("00f067aa0ba902b7", "0000000000000000"),
            &good.replace('-', "_"),
        ] {
            assert_eq!(id(bad), None, "{bad}");
        }
        assert_eq!(trace_id(&HeaderMap::new()), None);
    }
}
