//! The model's own count of the default pools that are for others.

use std::collections::BTreeSet;

use ipam_api::Code;
use ipam_api::name::Name;
use ipam_machine::command::OnLinks;
use ipam_machine::explain::Explanation;
use ipam_machine::{Action, Command, Rule};

use crate::model::naive::Model;

/// Compares the default pools that are skipped with those that the model finds to be for others.
pub(crate) fn counts(explanation: &Explanation, model: &Model, command: &Command) {
    let (Action::Allocate(request) | Action::AllocateOnLinks(OnLinks(request))) = &command.action else {
        return;
    };
    for choice in &explanation.choices {
        let interface =
            request.interfaces.iter().find(|one| one.name == choice.interface).expect("it is asked for");
        let is_default = choice.rule == Rule::Default && interface.asked(choice.family).is_none();
        let pools = model.default_pools(choice.family).into_iter().filter_map(|pool| {
            let name = &pool.spec.name;
            let code = model.reject_reason(pool, request, interface)?;
            let is_listed = choice.candidates.iter().any(|one| one.pool == *name);
            (is_default && !is_listed).then(|| (name.clone(), code))
        });
        let expected: BTreeSet<(Name, Code)> = pools.collect();
        let skipped = choice.skipped.iter();
        let skipped = skipped.flat_map(|one| one.pools.iter().map(|pool| (pool.clone(), one.why.code())));
        assert_eq!(skipped.collect::<BTreeSet<_>>(), expected, "skipped: {command:?}");
        for one in &choice.skipped {
            assert_eq!(one.count, one.pools.len() as u64, "{one:?}");
        }
    }
}
