//! Commands of the page about Kubernetes.

use std::path::Path;

/// Commands of a section, each as one line for a shell.
pub(crate) fn commands(section: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/docs/kubernetes.md");
    commands_of(&std::fs::read_to_string(path).unwrap(), section)
}

fn commands_of(page: &str, section: &str) -> Vec<String> {
    let (_, section) = page.split_once(&format!("\n## {section}\n")).expect("the section");
    let section = section.split("\n## ").next().unwrap();
    let blocks = section.split("```sh\n").skip(1).map(|block| block.split("```").next().unwrap());
    let lines = blocks.collect::<String>().replace("\\\n", " ");
    let commands = lines.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    commands.filter(|command| !command.is_empty()).collect()
}

#[test]
fn commands_of_the_section_are_read() {
    let block = |commands: &str| format!("```sh\n{commands}\n```\n");
    let wanted = block("a \\\n  -b") + &block("c d");
    let page = format!("# x\n{0}\n## Installation\n1. a\n{wanted}## Next\n{0}", block("no"));
    assert_eq!(commands_of(&page, "Installation"), ["a -b", "c d"]);
}
