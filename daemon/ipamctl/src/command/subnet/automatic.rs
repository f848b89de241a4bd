//! Rules of a subnet for automatic pools, as flags and as text.

use clap::Args;
use ipam_api::AddressRange;
use ipam_api::limits::AUTOMATIC_MAX_SIZE_DEFAULT;
use ipam_api::resource::AutomaticRules;

use crate::command::metadata::check_apart;
use crate::command::ranges;
use crate::output::error::Failure;
use crate::output::text;

/// Automatic pools that a subnet allows.
#[derive(Debug, Default, Args)]
pub(super) struct AutomaticArguments {
    /// Allow automatic pools, which requests create for their applications; in the whole subnet by default
    #[arg(long)]
    automatic: bool,
    /// Range for automatic pools; may be repeated
    #[arg(long = "automatic-range", value_name = "RANGE")]
    ranges: Vec<AddressRange>,
    /// Range excluded from automatic pools; may be repeated
    #[arg(long = "automatic-exclude", value_name = "RANGE")]
    exclude: Vec<AddressRange>,
    /// Maximum size of one automatic pool, in addresses [default: 1024]
    #[arg(long = "automatic-max-size", value_name = "COUNT")]
    max_size: Option<u32>,
}

/// The same for what exists already.
#[derive(Debug, Args)]
pub(super) struct AutomaticChanges {
    #[command(flatten)]
    more: AutomaticArguments,
    /// Disallow automatic pools; existing ones remain and may shrink
    #[arg(long, conflicts_with_all = ["automatic", "ranges", "exclude", "max_size", "less_ranges", "less_exclude"])]
    no_automatic: bool,
    /// Automatic range to remove; may be repeated
    #[arg(long = "remove-automatic-range", id = "less_ranges", value_name = "RANGE")]
    remove_ranges: Vec<AddressRange>,
    /// Automatic exclusion to remove; may be repeated
    #[arg(long = "remove-automatic-exclude", id = "less_exclude", value_name = "RANGE")]
    remove_exclude: Vec<AddressRange>,
}

impl AutomaticArguments {
    fn says_something(&self) -> bool {
        self.automatic || !self.ranges.is_empty() || !self.exclude.is_empty() || self.max_size.is_some()
    }

    fn add_to(&self, rules: &mut AutomaticRules) {
        rules.ranges = ranges::with(std::mem::take(&mut rules.ranges), &self.ranges);
        rules.exclude = ranges::with(std::mem::take(&mut rules.exclude), &self.exclude);
        rules.max_size = self.max_size.or(rules.max_size);
    }

    /// Rules of a new subnet.
    pub(super) fn rules(&self) -> Option<AutomaticRules> {
        let mut rules = AutomaticRules::default();
        self.add_to(&mut rules);
        self.says_something().then_some(rules)
    }
}

impl AutomaticChanges {
    /// Changes the rules of a subnet.
    pub(super) fn apply(&self, rules: &mut Option<AutomaticRules>) -> Result<(), Failure> {
        let Self { more, no_automatic, remove_ranges, remove_exclude } = self;
        check_apart(
            ("--automatic-range", &more.ranges),
            ("--remove-automatic-range", remove_ranges),
            ranges::meet,
        )?;
        check_apart(
            ("--automatic-exclude", &more.exclude),
            ("--remove-automatic-exclude", remove_exclude),
            ranges::meet,
        )?;
        if *no_automatic {
            *rules = None;
            return Ok(());
        }
        if rules.is_none() && !more.says_something() {
            return Ok(());
        }
        let changed = rules.get_or_insert_default();
        let had = !changed.ranges.is_empty();
        changed.ranges = ranges::without(&changed.ranges, remove_ranges);
        changed.exclude = ranges::without(&changed.exclude, remove_exclude);
        more.add_to(changed);
        if had && changed.ranges.is_empty() {
            // Without ranges, automatic pools could use the whole subnet.
            return Err(Failure::usage(
                "no automatic range would remain, and without one automatic pools may use the whole subnet",
                "Add another --automatic-range, or use --no-automatic.",
            ));
        }
        Ok(())
    }
}

/// Describes the rules on one line.
pub(super) fn shown(rules: Option<&AutomaticRules>) -> String {
    let Some(rules) = rules else { return "not allowed".to_owned() };
    let mut said = vec![match rules.ranges.is_empty() {
        true => "anywhere in it".to_owned(),
        false => text::joined(&rules.ranges),
    }];
    if !rules.exclude.is_empty() {
        said.push(format!("without {}", text::joined(&rules.exclude)));
    }
    let max_size = rules.max_size.unwrap_or(AUTOMATIC_MAX_SIZE_DEFAULT);
    said.push(format!("{} each at most", text::plural(max_size.into(), "address", "addresses")));
    said.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(text: &str) -> Vec<AddressRange> {
        vec![text.parse().unwrap()]
    }

    fn changes(more: AutomaticArguments) -> AutomaticChanges {
        AutomaticChanges { more, no_automatic: false, remove_ranges: Vec::new(), remove_exclude: Vec::new() }
    }

    #[test]
    fn rules_change_by_what_is_said_and_never_widen_by_a_removal() {
        let mut rules = None;
        changes(AutomaticArguments::default()).apply(&mut rules).unwrap();
        assert_eq!((&rules, &*shown(rules.as_ref())), (&None, "not allowed"));
        changes(AutomaticArguments { automatic: true, ..Default::default() }).apply(&mut rules).unwrap();
        assert_eq!(rules, Some(AutomaticRules::default()));
        assert_eq!(shown(rules.as_ref()), "anywhere in it, 1024 addresses each at most");
        let some = AutomaticArguments {
            ranges: range("10.0.0.8-10.0.0.15"),
            exclude: range("10.0.0.9"),
            max_size: Some(1),
            ..Default::default()
        };
        changes(some).apply(&mut rules).unwrap();
        assert_eq!(shown(rules.as_ref()), "10.0.0.8-10.0.0.15, without 10.0.0.9, 1 address each at most");
        let last = AutomaticChanges {
            remove_ranges: range("10.0.0.0-10.0.0.20"),
            ..changes(AutomaticArguments::default())
        };
        assert!(last.apply(&mut rules.clone()).is_err());
        AutomaticChanges { no_automatic: true, ..changes(AutomaticArguments::default()) }
            .apply(&mut rules)
            .unwrap();
        assert_eq!(rules, None);
    }
}
