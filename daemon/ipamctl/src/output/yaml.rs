//! `-o yaml`: the API's JSON, in its order.

use super::data::Data;

/// Formats data as YAML.
pub(crate) fn text(data: &Data) -> Result<String, String> {
    serde_saphyr::to_string(data).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ambiguous_scalar_is_quoted() {
        let json = br#"{"name":"web","description":"yes: \"no\"\nand # more","labels":{"a":"1204","b":"true","c":"","d":"null","e":"0x1f","f":"1e3","g":"2001:db8::","h":"12:30:45","i":"010"},"ranges":["10.0.0.1-10.0.0.9"],"exclude":[],"cooling_ms":30000,"default":false,"gateway":null}"#;
        let data = Data::of(json).unwrap();
        let yaml = text(&data).unwrap();
        assert!(yaml.starts_with("name: web\n"), "{yaml}");
        let again: Data = serde_saphyr::from_str(&yaml).unwrap();
        assert_eq!(again, data, "{yaml}");
    }
}
