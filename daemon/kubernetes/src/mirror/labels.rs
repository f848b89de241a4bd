//! Choice of the labels that fit into a resource.

use std::collections::BTreeSet;

use ipam_api::limits::LABELS_MAX;
use ipam_api::resource::Labels;

/// Labels for a resource. If there are too many, labels that pools select by take precedence, then the lowest
/// keys.
pub(super) fn chosen(labels: &Labels, selected: &BTreeSet<String>) -> Labels {
    if labels.len() <= LABELS_MAX {
        return labels.clone();
    }
    let of = |is_selected: bool| labels.iter().filter(move |(key, _)| selected.contains(*key) == is_selected);
    let kept = of(true).chain(of(false)).take(LABELS_MAX);
    kept.map(|(key, value)| (key.clone(), value.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_that_pools_select_by_come_first() {
        let mut labels: Labels = (0..100).map(|number| (format!("a{number:02}"), "x".to_owned())).collect();
        labels.insert("zone".to_owned(), "b".to_owned());
        assert!(!chosen(&labels, &BTreeSet::new()).contains_key("zone"));
        let kept = chosen(&labels, &["zone".to_owned()].into());
        assert_eq!((kept.len(), kept["zone"].as_str()), (LABELS_MAX, "b"));
        assert!(kept.contains_key("a62") && !kept.contains_key("a63"));
        labels.retain(|key, _| key.as_str() < "a10");
        assert_eq!(chosen(&labels, &BTreeSet::new()), labels);
    }
}
