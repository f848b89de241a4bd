//! The grammar: help, examples and synonyms.

use clap::CommandFactory as _;

use super::*;

pub(crate) fn walk(command: &clap::Command, visit: &mut impl FnMut(&clap::Command)) {
    visit(command);
    for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
        walk(sub, visit);
    }
}

#[test]
fn the_grammar_is_sound() {
    Arguments::command().debug_assert();
}

#[test]
fn every_command_has_examples_that_parse() {
    let mut examples = 0;
    walk(&Arguments::command(), &mut |command| {
        let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let (_, block) = after
            .split_once("Examples:\n")
            .unwrap_or_else(|| panic!("{} has no examples", command.get_name()));
        for line in block.lines() {
            let line = line.trim();
            assert!(line.starts_with("ipamctl "), "{line}");
            if let Err(error) = parse(line) {
                panic!("{line}\n{error}");
            }
            examples += 1;
        }
    });
    assert!(examples > 40, "{examples}");
}

#[test]
fn each_command_and_each_flag_has_a_description() {
    walk(&Arguments::command(), &mut |command| {
        assert!(command.get_about().is_some(), "{}", command.get_name());
        for argument in command.get_arguments().filter(|a| !a.is_hide_set()) {
            assert!(argument.get_help().is_some(), "{} {}", command.get_name(), argument.get_id());
        }
    });
}

#[test]
fn help_parses_for_every_noun_and_verb() {
    let mut command = Arguments::command();
    command.build();
    let mut paths = Vec::new();
    fn collect(command: &clap::Command, path: &str, paths: &mut Vec<String>) {
        paths.push(path.to_owned());
        for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
            collect(sub, &format!("{path} {}", sub.get_name()), paths);
        }
    }
    collect(&command, "ipamctl", &mut paths);
    for path in paths {
        let error = parse(&format!("{path} --help")).unwrap_err();
        assert_eq!(error.exit_code(), 0, "{path}");
        assert!(error.to_string().contains("Examples:"), "{path}");
    }
}

#[test]
fn other_words_for_the_same() {
    for line in [
        "ipamctl pools ls",
        "ipamctl get pools",
        "ipamctl describe subnet lan-10",
        "ipamctl reservations rm printers",
        "ipamctl whois 10.0.0.1",
        "ipamctl vrf list",
        "ipamctl pools watch web",
        "ipamctl watch pools",
        "ipamctl watch subnet lan-10",
        "ipamctl endpoints get host/a",
        "ipamctl -o json pool list",
        "ipamctl reservation create printers --range 10.10.0.12-10.10.0.19",
        "ipamctl reservation set printers --add-range 10.10.0.20 --remove-range 10.10.0.12",
        "ipamctl pool list -o json --server http://a:1,http://b:2 -n web",
    ] {
        if let Err(error) = parse(line) {
            panic!("{line}\n{error}");
        }
    }
    let several = parse("ipamctl pool list --server http://a:1,http://b:2").unwrap();
    assert_eq!(several.global.connection.servers, ["http://a:1", "http://b:2"]);
}

#[test]
fn a_flag_that_is_not_there_says_which_one_is() {
    for (line, words) in [
        ("ipamctl renew", "--endpoint"),
        ("ipamctl release", "--endpoint"),
        ("ipamctl pool set web --range 10.0.0.1", "--add-range RANGE and --remove-range RANGE"),
        ("ipamctl subnet set lan --cidr 10.0.0.0/8", "CIDR of a subnet is immutable"),
    ] {
        let error = parse(line).unwrap_err();
        assert_eq!(error.exit_code(), 2, "{line}");
        assert!(error.to_string().contains(words), "{line}: {error}");
    }
    walk(&Arguments::command(), &mut |command| {
        let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let mut examples: Vec<&str> = after.lines().filter(|line| line.contains("ipamctl ")).collect();
        let number = examples.len();
        examples.sort_unstable();
        examples.dedup();
        assert_eq!(examples.len(), number, "{} has an example twice", command.get_name());
    });
}

#[test]
fn a_contradictory_line_is_a_usage_error() {
    for line in [
        "ipamctl pool create Web --subnet lan",
        "ipamctl pool create web --subnet lan --range 10.0.0.9-10.0.0.1",
        "ipamctl pool create web --subnet lan --cooling soon",
        "ipamctl pool set web --enable --disable",
        "ipamctl subnet create lan --cidr 10.0.0.1/24",
        "ipamctl subnet set lan --route 10.0.0.0/8",
        "ipamctl who-has nobody",
        "ipamctl release",
        "ipamctl release somebody",
        "ipamctl release 10.0.0.1 --endpoint host/a",
        "ipamctl frobnicate",
        "ipamctl pool list -o yml",
        "ipamctl pool list -o jsonpath={.items",
        "ipamctl pool list -l a=b=c,",
        "ipamctl apply -f pools.yaml --prune",
        "ipamctl token create ci --role king",
        "ipamctl token create ci --role node --node worker-3",
        "ipamctl pool list --limit 0",
        "ipamctl pool list --limit 5 --all",
        "ipamctl pool delete web --idempotency-key ä",
    ] {
        assert_eq!(parse(line).unwrap_err().exit_code(), 2, "{line}");
    }
}
