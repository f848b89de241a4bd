//! Lists of names on the command line: `all`, `none`, or names with commas between them.

use anyhow::{Result, bail};

/// Names that a list chooses from all, in their order.
///
/// # Errors
/// For a name that isn't among them.
pub(super) fn chosen(list: &str, all: &[&'static str]) -> Result<Vec<String>> {
    let names: Vec<&str> = list.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    match names.as_slice() {
        ["all"] => return Ok(all.iter().map(|name| (*name).to_owned()).collect()),
        [] | ["none"] => return Ok(Vec::new()),
        _ => {}
    }
    if let Some(unknown) = names.iter().find(|name| !all.contains(name)) {
        bail!("{unknown} is unknown; known are {}", all.join(", "));
    }
    Ok(all.iter().filter(|name| names.contains(name)).map(|name| (*name).to_owned()).collect())
}

/// Names of all workloads.
pub(super) fn workloads() -> Vec<&'static str> {
    crate::workload::all().iter().map(|workload| workload.name()).collect()
}

/// Names of all nemeses.
pub(super) fn nemeses() -> Vec<&'static str> {
    crate::nemesis::all().iter().map(|nemesis| nemesis.name()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_chooses_in_the_order_of_all() {
        let all = ["kill", "pause", "power"];
        assert_eq!(chosen("all", &all).unwrap(), all);
        assert_eq!(chosen("power, kill", &all).unwrap(), ["kill", "power"]);
        assert!(chosen("none", &all).unwrap().is_empty());
        assert!(chosen("kill,pwoer", &all).unwrap_err().to_string().contains("pwoer"));
    }
}
