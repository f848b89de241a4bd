//! Digest of a JSON value, for comparison with what was written before.

use serde_json::Value;

const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0100_0000_01b3;

/// Digest of a value (FNV-1a of its text, whose keys are sorted). It detects changes and no attacks.
pub(super) fn digest(value: &Value) -> String {
    format!("{:016x}", of_bytes(value.to_string().as_bytes()))
}

/// Short digest of a text.
pub(super) fn short_digest(text: &str) -> String {
    let digest = of_bytes(text.as_bytes());
    format!("{:08x}", (digest ^ (digest >> 32)) & 0xffff_ffff)
}

fn of_bytes(bytes: &[u8]) -> u64 {
    bytes.iter().fold(BASIS, |digest, byte| (digest ^ u64::from(*byte)).wrapping_mul(PRIME))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_digest_depends_on_the_values_and_not_on_their_order() {
        let one: Value = serde_json::from_str(r#"{"a": 1, "b": [2]}"#).unwrap();
        let two: Value = serde_json::from_str(r#"{"b": [2], "a": 1}"#).unwrap();
        assert_eq!(digest(&one), digest(&two));
        assert_ne!(digest(&one), digest(&json!({"a": 1, "b": [3]})));
        assert_eq!(digest(&json!("a")), "d4272417d7c77eea", "it stays as it is: objects carry it");
        assert_eq!(short_digest("a").len(), 8);
    }
}
