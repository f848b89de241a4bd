//! Objects of custom resources, and the facts that follow from them.

use ipam_api::limits::{BODY_BYTES_MAX, KUBERNETES_CUSTOM_STATUS_BYTES_MAX};
use ipam_api::name::{Name, ObjectName};
use ipam_api::{Code, Problem, strict};
use serde_json::{Map, Value};

use super::kind::CustomKind;
use crate::objects::Object;

/// Object of any custom resource. Any JSON is readable, so no object breaks a list or a watch.
pub(crate) type CustomObject = Object<Value, Value>;

/// Part of an object that the watcher keeps.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CustomFacts<S> {
    pub(crate) uid: String,
    pub(crate) generation: i64,
    /// Resource for the servers, or the problem with the spec.
    pub(crate) spec: Result<S, Problem>,
    /// Requested reset; none without the annotation.
    pub(crate) reset: Option<String>,
    /// Present status; null if there is none, or if it is too long.
    pub(crate) status: Value,
}

impl CustomObject {
    /// Name and facts of the object. The resource has the name of the object and the manager.
    pub(crate) fn custom<K: CustomKind>(
        self,
        realm: &Name,
        manager: &str,
    ) -> Option<(ObjectName, CustomFacts<K::Spec>)> {
        let Self { metadata, spec, status, .. } = self;
        let name = ObjectName::new(&metadata.name).ok()?;
        let reset = metadata.reset();
        let is_short = length(&status) <= KUBERNETES_CUSTOM_STATUS_BYTES_MAX;
        let facts = CustomFacts {
            uid: metadata.uid,
            generation: metadata.generation,
            spec: read::<K>(spec, &name, (realm, manager)),
            reset,
            status: if is_short { status } else { Value::Null },
        };
        Some((name, facts))
    }
}

fn read<K: CustomKind>(
    spec: Value,
    name: &ObjectName,
    (realm, manager): (&Name, &str),
) -> Result<K::Spec, Problem> {
    let bytes = length(&spec);
    if bytes > BODY_BYTES_MAX {
        let detail = format!("the spec has {bytes} bytes, and at most {BODY_BYTES_MAX} are read");
        return Err(Problem::new(Code::TooLarge, detail));
    }
    let fields = match spec {
        Value::Object(fields) => fields,
        Value::Null => Map::new(),
        _ => return Err(Problem::new(Code::MalformedBody, "the spec must be an object")),
    };
    let mut fields = K::fields(fields, realm)?;
    fields.insert("name".to_owned(), name.as_str().into());
    fields.insert("managed_by".to_owned(), manager.into());
    strict::from_object(fields)
}

/// Length of a value as JSON.
pub(crate) fn length(value: &Value) -> usize {
    serde_json::to_vec(value).map_or(usize::MAX, |text| text.len())
}

#[cfg(test)]
mod tests {
    use ipam_api::resource::Pool;
    use serde_json::json;

    use super::super::pool::Pools;
    use super::*;

    fn pool(name: &str, spec: Value) -> Result<Pool, Problem> {
        let object = json!({"metadata": {"name": name, "uid": "u", "generation": 2}, "spec": spec});
        let object: CustomObject = serde_json::from_value(object).unwrap();
        object.custom::<Pools>(&Name::default_name(), "kubernetes/prod").unwrap().1.spec
    }

    #[test]
    fn a_spec_is_the_resource_without_its_name_and_manager() {
        let read = pool("web", json!({"subnet": "lan", "ranges": ["10.0.0.1-10.0.0.9"]})).unwrap();
        assert_eq!((read.name.as_str(), read.managed_by.as_deref()), ("web", Some("kubernetes/prod")));
    }

    #[test]
    fn an_unreadable_spec_is_a_problem_of_its_object() {
        let long = "x".repeat(BODY_BYTES_MAX);
        let long_name = "a".repeat(64);
        for (name, spec, code, pointer) in [
            ("web", json!(null), Code::InvalidField, "/subnet"),
            ("web", json!([]), Code::MalformedBody, ""),
            ("web", json!({"subnet": 7}), Code::InvalidField, "/subnet"),
            ("web", json!({"subnet": "lan", "rangs": []}), Code::UnknownField, "/rangs"),
            ("web", json!({"subnet": "lan", "description": long}), Code::TooLarge, ""),
            (&long_name, json!({"subnet": "lan"}), Code::InvalidField, "/name"),
        ] {
            let problem = pool(name, spec).unwrap_err();
            let at = problem.errors.first().map_or("", |error| &error.pointer);
            assert_eq!((problem.code, at), (code, pointer), "{problem}");
        }
    }

    #[test]
    fn a_long_status_is_not_kept() {
        let object = json!({"metadata": {"name": "web"}, "status": {"x": "y".repeat(1 << 20)}});
        let object: CustomObject = serde_json::from_value(object).unwrap();
        assert_eq!(object.custom::<Pools>(&Name::default_name(), "m").unwrap().1.status, Value::Null);
    }
}
