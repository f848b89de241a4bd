//! Server-side apply.

use serde_json::{Value, json};

use super::managers::{Manager, managed, managers, set_managers};
use super::paths::{Path, Paths, element_keys, paths_of, remove_at, shown, value_at};
use super::shape::{List, Shape, identity};
use crate::status::Refusal;

/// Manager that applies a configuration.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Applier<'a> {
    pub(crate) name: &'a str,
    pub(crate) subresource: &'a str,
    pub(crate) now: &'a str,
    /// True if the applier takes over fields of other managers.
    pub(crate) force: bool,
}

/// Object after an apply.
///
/// # Errors
/// 409 with the fields of other managers.
pub(crate) fn apply(
    present: Option<&Value>,
    config: &Value,
    applier: Applier<'_>,
    shape: Shape<'_>,
) -> Result<Value, Refusal> {
    let none = json!({"metadata": {}});
    let live = present.unwrap_or(&none);
    let mut all = managers(live);
    if let (Some(present), true) = (present, all.is_empty()) {
        all.push(before_first_apply(present, shape));
    }
    let mut mine = Manager {
        name: applier.name.to_owned(),
        is_apply: true,
        subresource: applier.subresource.to_owned(),
        api_version: config["apiVersion"].as_str().unwrap_or_default().to_owned(),
        time: applier.now.to_owned(),
        paths: paths_of(&managed(config), shape),
    };
    let before = all.iter().position(|one| one.is(&mine)).map(|index| all.remove(index));
    let mut object = live.clone();
    merge(&mut object, config, shape);
    let conflicts = conflicts(&all, &mine.paths, live, &object);
    if !conflicts.is_empty() && !applier.force {
        return Err(refusal(&conflicts));
    }
    for (index, path) in conflicts.iter().map(|conflict| (conflict.index, &conflict.path)) {
        all[index].paths.remove(path);
    }
    if let Some(before) = before {
        remove_lost(&mut object, &before.paths, &mine.paths, &all);
        if before.paths == mine.paths
            && before.api_version == mine.api_version
            && managed(&object) == managed(live)
        {
            mine.time = before.time;
        }
    }
    all.push(mine);
    set_managers(&mut object, all);
    Ok(object)
}

/// Manager of the fields of an object that was never applied.
fn before_first_apply(present: &Value, shape: Shape<'_>) -> Manager {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Manager {
        name: "before-first-apply".to_owned(),
        is_apply: false,
        subresource: String::new(),
        api_version: text(&present["apiVersion"]),
        time: text(&present["metadata"]["creationTimestamp"]),
        paths: paths_of(&managed(present), shape),
    }
}

fn merge(target: &mut Value, config: &Value, shape: Shape<'_>) {
    match (target, config, shape.list()) {
        (Value::Object(target), Value::Object(config), _) if !shape.is_atomic() => {
            for (name, value) in config {
                merge(target.entry(name.clone()).or_insert(Value::Null), value, shape.field(name));
            }
        }
        (Value::Array(target), Value::Array(config), List::Set) => {
            for item in config {
                if !target.contains(item) {
                    target.push(item.clone());
                }
            }
        }
        (Value::Array(target), Value::Array(config), List::Map(keys)) => {
            for item in config {
                let own = identity(item, &keys);
                match target.iter_mut().find(|one| identity(one, &keys) == own) {
                    Some(known) => merge(known, item, shape.items()),
                    None => target.push(item.clone()),
                }
            }
        }
        (target, config, _) => *target = config.clone(),
    }
}

/// Field that another manager has, and that an apply would change.
struct Conflict {
    index: usize,
    manager: String,
    path: Path,
}

fn conflicts(others: &[Manager], mine: &Paths, live: &Value, merged: &Value) -> Vec<Conflict> {
    // The items of lists are shared; their fields may conflict.
    let is_leaf = |path: &Path| !mine.iter().any(|one| one.len() > path.len() && one.starts_with(path));
    let is_changed = |path: &&Path| is_leaf(path) && value_at(live, path) != value_at(merged, path);
    let of_manager = |(index, other): (usize, &Manager)| {
        let paths: Vec<Path> = other.paths.intersection(mine).filter(is_changed).cloned().collect();
        let manager = match other.is_apply {
            true => format!("{:?}", other.name),
            false => format!("{:?} using {}", other.name, other.api_version),
        };
        paths.into_iter().map(move |path| Conflict { index, manager: manager.clone(), path })
    };
    others.iter().enumerate().flat_map(of_manager).collect()
}

fn refusal(conflicts: &[Conflict]) -> Refusal {
    let cause = |conflict: &Conflict| {
        json!({
            "reason": "FieldManagerConflict", "message": format!("conflict with {}", conflict.manager),
            "field": shown(&conflict.path),
        })
    };
    let text = |one: &Conflict| format!("conflict with {}: {}", one.manager, shown(&one.path));
    let texts = conflicts.iter().map(text).collect::<Vec<_>>().join("\n");
    let plural = if conflicts.len() == 1 { "" } else { "s" };
    let message = format!("Apply failed with {} conflict{plural}: {texts}", conflicts.len());
    let causes: Vec<Value> = conflicts.iter().map(cause).collect();
    Refusal::new(409, message).details(json!({"causes": causes}))
}

/// Removes the fields that a manager no longer applies, and that no other manager has.
fn remove_lost(object: &mut Value, before: &Paths, now: &Paths, others: &[Manager]) {
    let is_used = |path: &Path| {
        let is_below = |one: &Path| one.starts_with(path);
        now.iter().any(|one| is_below(one) || path.starts_with(one))
            || others.iter().any(|other| other.paths.iter().any(is_below))
    };
    // A set is sorted: an item precedes its fields.
    for path in before.difference(now).filter(|path| !is_used(path)) {
        let is_key = path.last_chunk::<2>().is_some_and(|[item, field]| {
            element_keys(item).is_some_and(|keys| keys.contains_key(field.trim_start_matches("f:")))
        });
        if !is_key {
            remove_at(object, path);
        }
    }
}
