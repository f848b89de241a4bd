//! Next step for one custom resource.

use ipam_api::client::Expect;
use ipam_api::name::ObjectName;
use ipam_api::{Code, Problem};

use super::facts::CustomFacts;
use super::kind::CustomKind;
use crate::mirror::{Row, Wanted};

/// Resource of this manager as the servers have it.
pub(crate) struct Stored<K: CustomKind> {
    pub(crate) row: Row<K::Spec>,
    pub(crate) status: K::Status,
}

/// Next step for a resource.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Step<S> {
    /// There is nothing to do, or the state of the object is unknown.
    Nothing,
    /// The resource matches the object.
    Applied,
    /// Write the resource.
    Put(S, Expect),
    /// Delete the resource of this revision.
    Delete(u64),
    /// The object can't be applied.
    Refuse(Problem),
}

/// Next step for a resource. `row` is the present resource of this manager.
pub(crate) fn step<K: CustomKind>(
    name: &ObjectName,
    row: Option<&Row<K::Spec>>,
    wanted: Wanted<CustomFacts<K::Spec>>,
) -> Step<K::Spec> {
    let mut spec = match (wanted, row) {
        (Wanted::Unknown, _) | (Wanted::Gone, None) => return Step::Nothing,
        (Wanted::Gone, Some(row)) if K::is_terminating(&row.spec) => return Step::Nothing,
        (Wanted::Gone, Some(row)) => return Step::Delete(row.revision),
        (Wanted::Present(CustomFacts { spec: Err(problem), .. }), _) => return Step::Refuse(problem),
        (Wanted::Present(CustomFacts { spec: Ok(spec), .. }), _) => spec,
    };
    let Some(row) = row else { return Step::Put(spec, Expect::Absent) };
    K::complete(&mut spec, &row.spec);
    if K::is_terminating(&row.spec) && !K::is_terminating(&spec) {
        return Step::Refuse(terminating(K::KIND, name));
    }
    if spec == row.spec { Step::Applied } else { Step::Put(spec, Expect::Revision(row.revision)) }
}

/// Refusal for an object whose name the terminating resource of a deleted object still has.
fn terminating(kind: &str, name: &ObjectName) -> Problem {
    let kind = kind.to_lowercase();
    let detail = format!("{kind} {name} is being deleted, and ends when its last address is released");
    Problem::new(Code::Terminating, detail).help("Wait: afterwards it is created again from this object.")
}

/// Refusal for an object whose name a resource of another manager, or of none, has.
pub(crate) fn foreign(kind: &str, name: &ObjectName, manager: Option<&str>) -> Problem {
    let kind = kind.to_lowercase();
    let detail = match manager {
        Some(manager) => format!("{kind} {name} is managed by {manager}"),
        None => format!("{kind} {name} exists and has no manager"),
    };
    Problem::new(Code::ManagedElsewhere, detail)
        .help("Rename the object, or delete the resource with the tool that created it.")
}

#[cfg(test)]
mod tests {
    use ipam_api::resource::Pool;
    use serde_json::json;

    use super::super::pool::Pools;
    use super::*;

    fn pool(fields: serde_json::Value) -> Pool {
        let mut pool = json!({"name": "web", "subnet": "lan", "managed_by": "m"});
        pool.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        serde_json::from_value(pool).unwrap()
    }

    fn next(row: Option<serde_json::Value>, wanted: Wanted<serde_json::Value>) -> Step<Pool> {
        let row = row.map(|fields| Row { spec: pool(fields), revision: 7 });
        let facts = |fields| CustomFacts {
            uid: "u".to_owned(),
            generation: 1,
            spec: Ok(pool(fields)),
            reset: None,
            status: json!(null),
        };
        let wanted = match wanted {
            Wanted::Present(fields) => Wanted::Present(facts(fields)),
            Wanted::Gone => Wanted::Gone,
            Wanted::Unknown => Wanted::Unknown,
        };
        step::<Pools>(&ObjectName::new("web").unwrap(), row.as_ref(), wanted)
    }

    #[test]
    fn a_resource_follows_its_object() {
        let (plain, stored) = (json!({}), json!({"network": "default"}));
        let changed = json!({"network": "default", "default": true});
        let present = || Wanted::Present(plain.clone());
        assert_eq!(next(None, present()), Step::Put(pool(plain.clone()), Expect::Absent));
        assert_eq!(next(Some(stored.clone()), present()), Step::Applied);
        let put = Step::Put(pool(stored.clone()), Expect::Revision(7));
        assert_eq!(next(Some(changed), present()), put);
        assert_eq!(next(Some(stored.clone()), Wanted::Gone), Step::Delete(7));
        assert_eq!(next(Some(stored), Wanted::Unknown), Step::Nothing);
        assert_eq!(next(None, Wanted::Gone), Step::Nothing);
    }

    #[test]
    fn a_terminating_pool_ends_before_its_object_counts_again() {
        let ending = json!({"network": "default", "terminating": true});
        assert_eq!(next(Some(ending.clone()), Wanted::Gone), Step::Nothing);
        let refused = next(Some(ending.clone()), Wanted::Present(json!({})));
        assert!(matches!(refused, Step::Refuse(problem) if problem.code == Code::Terminating));
        let wanted = next(Some(ending), Wanted::Present(json!({"terminating": true})));
        assert_eq!(wanted, Step::Applied, "an object may end its pool");
    }
}
