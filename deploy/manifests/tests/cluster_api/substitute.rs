//! Variables as clusterctl replaces them, by the rules of drone/envsubst.

/// Replaces `${NAME}` and `${NAME:=default}`. An empty default is none.
///
/// # Errors
/// The name of a variable that has neither a value nor a default.
pub(super) fn variables(text: &str, values: &[(&str, &str)]) -> Result<String, String> {
    let mut replaced = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let (word, after) = after.split_once('}').ok_or("a variable has no end")?;
        let (name, default) =
            word.split_once(":=").map_or((word, None), |(name, default)| (name, Some(default)));
        let default = default.filter(|default| !default.is_empty());
        let value = values.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
        replaced.push_str(before);
        replaced.push_str(value.or(default).ok_or_else(|| name.to_owned())?);
        rest = after;
    }
    Ok(replaced + rest)
}

/// Names of the variables of a text, with their defaults.
pub(super) fn names(text: &str) -> Vec<(&str, Option<&str>)> {
    let words = text.split("${").skip(1).map(|rest| rest.split('}').next().unwrap());
    words
        .map(|word| word.split_once(":=").map_or((word, None), |(name, default)| (name, Some(default))))
        .collect()
}
