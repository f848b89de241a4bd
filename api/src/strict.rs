//! Strict parsing of request bodies, with the nearest known name for an unknown one.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use serde_path_to_error::Segment;

use crate::name::shown;
use crate::problem::{Code, Problem};

/// Parses a request body as `T`. `meta` and `status` at the top are accepted and ignored, so that a response
/// can be sent back unchanged; any other unknown field is refused.
///
/// # Errors
/// `malformed-body` when it isn't JSON or not an object; `unknown-field` with the nearest known name;
/// `invalid-field` with the reason and the pointer.
pub fn from_slice<T: DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    let is_object = body.trim_ascii_start().first() == Some(&b'{');
    // Only a body that doesn't parse directly is parsed via `Value`: to drop `meta` and `status`, and to
    // locate the error.
    match is_object.then(|| serde_json::from_slice(body)) {
        Some(Ok(read)) => Ok(read),
        _ => from_object(object(body)?),
    }
}

/// Parses a body that must be a JSON object.
///
/// # Errors
/// `malformed-body`.
pub fn object(body: &[u8]) -> Result<Map<String, Value>, Problem> {
    let value: Value = serde_json::from_slice(body)
        .map_err(|error| Problem::new(Code::MalformedBody, format!("the body is not JSON: {error}")))?;
    match value {
        Value::Object(object) => Ok(object),
        _ => Err(Problem::new(Code::MalformedBody, "the body must be a JSON object")),
    }
}

/// Converts an object that is already parsed, as [`from_slice`] does.
///
/// # Errors
/// As [`from_slice`].
pub fn from_object<T: DeserializeOwned>(mut object: Map<String, Value>) -> Result<T, Problem> {
    for island in ["meta", "status"] {
        match object.remove(island) {
            None | Some(Value::Object(_)) => {}
            Some(_) => {
                let detail = format!("{island} is an object, as it was shown, or isn't there");
                return Err(Problem::new(Code::InvalidField, detail).at(format!("/{island}")));
            }
        }
    }
    serde_path_to_error::deserialize(Value::Object(object)).map_err(|error| {
        let pointer = pointer(error.path());
        refused(&error.into_inner().to_string(), pointer)
    })
}

/// Converts a path to a JSON pointer.
fn pointer(path: &serde_path_to_error::Path) -> String {
    let mut pointer = String::new();
    for segment in path {
        match segment {
            Segment::Seq { index } => push(&mut pointer, &index.to_string()),
            Segment::Map { key } => push(&mut pointer, key),
            Segment::Enum { variant } => push(&mut pointer, variant),
            Segment::Unknown => {}
        }
    }
    pointer
}

fn push(pointer: &mut String, segment: &str) {
    pointer.push('/');
    pointer.push_str(&segment.replace('~', "~0").replace('/', "~1"));
}

/// Converts serde's message into a problem.
fn refused(text: &str, mut pointer: String) -> Problem {
    if let Some((unknown, problem)) = unknown_word(text, Code::UnknownField, "field") {
        if pointer.rsplit('/').next() != Some(unknown) {
            push(&mut pointer, unknown);
        }
        return problem.at(pointer);
    }
    if let Some(missing) = text.strip_prefix("missing field `").and_then(|rest| rest.split('`').next()) {
        push(&mut pointer, missing);
    }
    of_a_value(text).at(pointer)
}

/// Problem for serde's message about an unknown field, with the nearest known name.
pub fn unknown_word<'a>(text: &'a str, code: Code, what: &str) -> Option<(&'a str, Problem)> {
    let mut quoted = text.strip_prefix("unknown field `")?.split('`');
    let unknown = quoted.next().unwrap_or_default();
    let known = quoted.skip(1).step_by(2).filter(|name| !name.is_empty());
    let detail = match nearest(unknown, known) {
        Some(name) => format!("unknown {what} {}; did you mean \"{name}\"?", shown(unknown)),
        None => format!("unknown {what} {}", shown(unknown)),
    };
    Some((unknown, Problem::new(code, detail)))
}

/// Problem for a value that its own type refused, with the code at the start of the text, if any.
fn of_a_value(text: &str) -> Problem {
    let coded = text.split_once(": ").and_then(|(word, detail)| {
        let code = Code::ALL.iter().find(|code| code.entry().code == word)?;
        Some(Problem::new(*code, detail))
    });
    coded.unwrap_or_else(|| Problem::new(Code::InvalidField, json_types(text)))
}

/// Replaces types of Rust in a type error of serde by types of JSON.
fn json_types(text: &str) -> String {
    let Some((found, expected)) = text.rsplit_once(", expected ") else { return text.to_owned() };
    let found = found.replacen("invalid type: map", "invalid type: object", 1);
    let found = found.replacen("invalid type: sequence", "invalid type: array", 1);
    let word = expected.trim_start_matches("a ").split(' ').next().unwrap_or_default();
    let expected = match word {
        "struct" | "map" => "an object",
        "enum" => "a string",
        "sequence" | "tuple" => "an array",
        "u8" | "u16" | "u32" | "u64" | "u128" | "usize" => "a non-negative integer",
        "i8" | "i16" | "i32" | "i64" | "i128" | "isize" => "an integer",
        _ => expected,
    };
    format!("{found}, expected {expected}")
}

/// Candidate with the smallest edit distance from `word`, if it is near enough.
pub fn nearest<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    const WORD_CHARS_MAX: usize = 64;
    if word.chars().count() > WORD_CHARS_MAX {
        return None;
    }
    let allowed = 1 + word.chars().count() / 3;
    candidates
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(edits, _)| *edits <= allowed)
        .min()
        .map(|(_, candidate)| candidate)
}

/// Edit distance (insert, delete, replace; a swap of neighbours counts as two) of two short words.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut left = i + 1;
        let mut next = vec![left];
        for ((y, above_left), above) in b.iter().zip(&row).zip(row.iter().skip(1)) {
            left = (above_left + usize::from(x != *y)).min(left + 1).min(above + 1);
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resource::Network;

    #[test]
    fn an_unknown_field_names_the_nearest() {
        let problem = from_slice::<Network>(br#"{"name":"a","descripton":"x"}"#).unwrap_err();
        assert_eq!(problem.code, Code::UnknownField);
        assert!(problem.detail.contains("did you mean \"description\""), "{}", problem.detail);
    }

    #[test]
    fn a_mistake_is_pointed_at() {
        use crate::request::AllocateRequest;
        use crate::resource::Pool;
        let pointer = |problem: Problem| problem.errors[0].pointer.clone();
        let pool = |body: &str| pointer(from_slice::<Pool>(body.as_bytes()).unwrap_err());
        assert_eq!(pool(r#"{"name":"a","subnet":"b","ranges":["10.0.0.1","x"]}"#), "/ranges/1");
        assert_eq!(pool(r#"{"name":"a","subnet":"b","rangs":[]}"#), "/rangs");
        assert_eq!(pool(r#"{"name":"a"}"#), "/subnet");
        assert_eq!(pool(r#"{"name":"a","subnet":"b","labels":{"a/b":1}}"#), "/labels/a~1b");
        let body = br#"{"endpoint":{"kind":"host","name":"h"},"interfaces":[{"name":"e","mca":"x"}]}"#;
        assert_eq!(pointer(from_slice::<AllocateRequest>(body).unwrap_err()), "/interfaces/0/mca");
    }

    #[test]
    fn types_are_those_of_json() {
        use crate::request::AllocateRequest;
        use crate::resource::Pool;
        let detail = |problem: Problem| problem.detail;
        let allocate = |body: &str| detail(from_slice::<AllocateRequest>(body.as_bytes()).unwrap_err());
        let wrong = allocate(r#"{"endpoint":"host/a, expected struct","interfaces":[]}"#);
        assert_eq!(wrong, r#"invalid type: string "host/a, expected struct", expected an object"#);
        let wrong = allocate(r#"{"endpoint":{"kind":"host","name":"a"},"interfaces":{}}"#);
        assert_eq!(wrong, "invalid type: object, expected an array");
        let pool = r#"{"name":"a","subnet":"b","cooling_ms":"1s"}"#;
        let wrong = detail(from_slice::<Pool>(pool.as_bytes()).unwrap_err());
        assert_eq!(wrong, r#"invalid type: string "1s", expected a non-negative integer"#);
    }

    #[test]
    fn a_shown_spec_can_be_sent_back() {
        let body = br#"{"name":"a","meta":{"revision":7},"status":{"subnets":1}}"#;
        assert_eq!(from_slice::<Network>(body).unwrap().name.as_str(), "a");
        for odd in ["7", "null", "[]", "\"x\""] {
            let body = format!(r#"{{"name":"a","meta":{odd}}}"#);
            let problem = from_slice::<Network>(body.as_bytes()).unwrap_err();
            assert_eq!((problem.code, &*problem.errors[0].pointer), (Code::InvalidField, "/meta"), "{odd}");
        }
    }

    #[test]
    fn a_value_keeps_the_code_of_its_refusal() {
        for (range, code) in [
            ("10.0.0.9-10.0.0.2", Code::RangeReversed),
            ("10.0.0.1-2001:db8::1", Code::FamilyMismatch),
            ("10.0.0.1/24", Code::CidrHasHostBits),
            ("10.0.0.256", Code::InvalidField),
        ] {
            let body = format!(r#"{{"name":"a","addresses":["{range}"]}}"#);
            let problem = from_slice::<crate::resource::Reservation>(body.as_bytes()).unwrap_err();
            assert_eq!(problem.code, code, "{problem}");
            assert!(!problem.detail.contains(": "), "{problem}");
        }
    }

    #[test]
    fn garbage_is_malformed() {
        for body in [&b""[..], b"{", b"[]", b"\xff", b"null"] {
            assert_eq!(from_slice::<Network>(body).unwrap_err().code, Code::MalformedBody);
        }
        let deep = "[".repeat(100_000);
        assert_eq!(from_slice::<Network>(deep.as_bytes()).unwrap_err().code, Code::MalformedBody);
    }

    #[test]
    fn the_nearest_word_is_near() {
        let words = ["web", "web6", "build"];
        assert_eq!(nearest("wbe", words.into_iter()), Some("web"));
        assert_eq!(nearest("storage", words.into_iter()), None);
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
