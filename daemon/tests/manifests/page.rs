//! Commands of the page about Kubernetes, from a cluster to a pod with an address.

use std::path::Path;

/// Most commands that the way may take.
const COMMANDS_MAX: usize = 5;

/// Commands of the section `Installation`, each as its words.
pub(crate) fn commands() -> Vec<Vec<String>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/docs/kubernetes.md");
    let commands = commands_of(&std::fs::read_to_string(path).unwrap());
    assert!(!commands.is_empty() && commands.len() <= COMMANDS_MAX, "{commands:#?}");
    commands
}

fn commands_of(page: &str) -> Vec<Vec<String>> {
    let (_, section) = page.split_once("\n## Installation\n").expect("the section Installation");
    let section = section.split("\n## ").next().unwrap();
    let blocks = section.split("```sh\n").skip(1).map(|block| block.split("```").next().unwrap());
    let text: String = blocks.collect();
    let lines = text.replace("\\\n", " ");
    let words = lines.lines().map(|line| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
    words.filter(|words| !words.is_empty()).collect()
}

#[test]
fn commands_of_the_section_are_read() {
    let block = |commands: &str| format!("```sh\n{commands}\n```\n");
    let wanted = block("a \\\n  -b") + &block("c d");
    let page = format!("# x\n{0}\n## Installation\n1. a\n{wanted}## Next\n{0}", block("no"));
    assert_eq!(commands_of(&page), [vec!["a", "-b"], vec!["c", "d"]]);
}
