//! Every command of the operator's page, in the page's order, on hosts of a lab, then those of the runbook of
//! alerts. Needs root.
//!
//! With them runs the network of the README: over TLS, from a node's token to a container with both families.

mod host;
mod page;

use std::path::Path;
use std::process::{Command, Output};

use host::Lab;
use page::Block;

use crate::support::programs;

const SYSTEMD_ANALYZE: &str = "/usr/bin/systemd-analyze";

#[test]
fn the_operators_page_is_true() {
    let steps = page::steps(&read("deploy/docs/operating.md"));
    assert!(steps.len() > 10, "the page was read to its end");
    let lab = Lab::make();
    let mut printed = String::new();
    for step in steps {
        let at = format!("operating.md:{}", step.line);
        match step.what {
            Block::Write { host, file, text } => lab.write(&host, &file, &text),
            Block::Expect(expected) => {
                assert!(
                    page::is_like(&printed, &expected),
                    "{at}: expected\n{expected}\nbut it printed\n{printed}"
                );
            }
            Block::Run { hosts, script, fails } => {
                for host in hosts {
                    println!("{at} {host}# {}", script.trim_end());
                    let output = lab.run(&host, &script);
                    printed = text(&output);
                    println!("{printed}");
                    assert_eq!(output.status.success(), !fails, "{at}: on {host}: {printed}\n{}", lab.logs());
                }
            }
        }
    }
    the_commands_of_the_runbook_succeed(&lab);
}

/// Runs the index of the runbook, and then the page of each alert in the order of the rules.
///
/// The commands change nothing, so that the runbook needs no cluster of its own.
fn the_commands_of_the_runbook_succeed(lab: &Lab) {
    let rules = read("deploy/monitoring/alerts.yaml");
    let pages = rules.lines().filter_map(|line| line.trim().strip_prefix("runbook_url: "));
    let mut pages: Vec<&str> = std::iter::once("deploy/docs/alerts.md").chain(pages).collect();
    // An alert with two severities has one page.
    pages.dedup();
    assert!(pages.len() > 20, "the rules were read to their end");
    for file in pages {
        let commands = page::commands(&read(file));
        assert!(!commands.is_empty(), "{file} has no command");
        for (line, script) in commands {
            let at = format!("{file}:{line}");
            println!("{at} desk# {script}");
            let output = lab.run("desk", &script);
            let printed = text(&output);
            println!("{printed}");
            assert!(output.status.success(), "{at}: {printed}\n{}", lab.logs());
        }
    }
}

/// The page configures the network of the README, so that the test of the page runs it.
#[test]
fn the_network_of_the_readme_is_that_of_the_page() {
    let readme = read("README.md");
    let (_, block) = readme.split_once("```json\n").unwrap();
    let (network, _) = block.split_once("```").unwrap();
    let steps = page::steps(&read("deploy/docs/operating.md"));
    let runs = steps.iter().any(|step| match &step.what {
        Block::Write { host, file, text } => {
            host == "w1" && file.starts_with("/etc/cni/net.d/") && text == network
        }
        Block::Run { .. } | Block::Expect(_) => false,
    });
    assert!(runs, "operating.md has another network than\n{network}");
}

/// Verification of the units with the programs under test. Without systemd there is nothing to verify with.
#[test]
fn systemd_knows_all_settings_of_the_units() {
    if !Path::new(SYSTEMD_ANALYZE).exists() {
        println!("{SYSTEMD_ANALYZE} is missing");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/systemd");
    for (unit, program) in [("ipamd", programs::ipamd()), ("ipam-agent", programs::ipam_agent())] {
        let name = format!("{unit}.service");
        let text = std::fs::read_to_string(folder.join(&name)).unwrap();
        let installed = format!("/usr/local/bin/{unit}");
        assert!(text.contains(&installed), "{text}");
        let file = dir.path().join(&name);
        std::fs::write(&file, text.replace(&installed, program.to_str().unwrap())).unwrap();
        let output = Command::new(SYSTEMD_ANALYZE).args(["verify", "--man=no"]).arg(&file).output().unwrap();
        // An unknown setting is a warning only.
        assert!(output.status.success() && self::text(&output).is_empty(), "{output:?}");
    }
}

/// Reads a file of the checkout.
fn read(file: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(file)).unwrap()
}

fn text(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned()).concat()
}
