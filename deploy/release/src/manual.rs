//! Manual pages and completions, from the grammars that the programs parse.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use clap::CommandFactory as _;
use clap_complete::Shell;
use ipam_image::tree::{DATA, Tree, read};

use crate::plugin;
use crate::tarball::compressed;

/// Folder of manual pages of commands.
const MAN: &str = "share/man/man1";
/// Form of the name of a program's completions.
type FileName = fn(&str) -> String;
/// Shells with the folders of their completions.
const SHELLS: [(Shell, &str, FileName); 3] = [
    (Shell::Bash, "share/bash-completion/completions", str::to_owned),
    (Shell::Zsh, "share/zsh/vendor-completions", |name| format!("_{name}")),
    (Shell::Fish, "share/fish/vendor_completions.d", |name| format!("{name}.fish")),
];

/// Adds pages and completions of the daemon.
///
/// # Errors
/// If a temporary file can't be written.
pub(crate) fn daemon(tree: &mut Tree) -> Result<()> {
    of_grammar(tree, ipamd::command_line::Arguments::command())
}

/// Adds pages and completions of the agent.
///
/// # Errors
/// As for [`daemon`].
pub(crate) fn agent(tree: &mut Tree) -> Result<()> {
    of_grammar(tree, ipam_agent::command_line::Arguments::command())
}

/// Adds the page of the plugin, which is a file of the sources, and its completions.
///
/// # Errors
/// If the page can't be read.
pub(crate) fn plugin(tree: &mut Tree, page: &Path) -> Result<()> {
    tree.file(format!("{MAN}/{}.1.gz", plugin::NAME), compressed(&read(page)?)?, DATA);
    completions(tree, &plugin::grammar())
}

/// Adds pages and completions that a program writes itself. The completions of `ipamctl` call the program for
/// names.
///
/// # Errors
/// If the program fails.
pub(crate) fn ctl(tree: &mut Tree, program: &Path) -> Result<()> {
    let folder = tempfile::tempdir()?;
    run(Command::new(program).arg("man").arg(folder.path()))?;
    pages(tree, folder.path())?;
    for name in ["kubectl-ipam", "kubectl_complete-ipam"] {
        tree.link(format!("{MAN}/{name}.1.gz"), "ipamctl.1.gz");
    }
    for (shell, folder, file) in SHELLS {
        let script = run(Command::new(program).args(["completion", &shell.to_string()]))?;
        tree.file(format!("{folder}/{}", file("ipamctl")), script, DATA);
    }
    Ok(())
}

fn of_grammar(tree: &mut Tree, grammar: clap::Command) -> Result<()> {
    let folder = tempfile::tempdir()?;
    clap_mangen::generate_to(grammar.clone(), folder.path())?;
    pages(tree, folder.path())?;
    completions(tree, &grammar)
}

/// Adds the completions of a grammar for each shell.
fn completions(tree: &mut Tree, grammar: &clap::Command) -> Result<()> {
    let name = grammar.get_name();
    for (shell, folder, file) in SHELLS {
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut grammar.clone(), name, &mut script);
        if shell == Shell::Bash {
            script = with_commands(&script, name)?;
        }
        tree.file(format!("{folder}/{}", file(name)), script, DATA);
    }
    Ok(())
}

/// Script for bash whose branches have the names of the commands.
///
/// In a program's name, `clap_complete` 4.6 replaces a hyphen by `__` where the script stores a command, but
/// by `__subcmd__` in the branch of the command, so bash would never take the branch.
fn with_commands(script: &[u8], name: &str) -> Result<Vec<u8>> {
    let [branch, command] = ["__subcmd__", "__"].map(|hyphen| name.replace('-', hyphen) + "__subcmd__");
    Ok(std::str::from_utf8(script)?.replace(&branch, &command).into_bytes())
}

/// Adds all pages of a folder, compressed as Debian's policy (12.1) requires.
fn pages(tree: &mut Tree, folder: &Path) -> Result<()> {
    for page in fs::read_dir(folder)? {
        let page = page?;
        let name = page.file_name().into_string().ok().context("a page has no name in UTF-8")?;
        tree.file(format!("{MAN}/{name}.gz"), compressed(&read(&page.path())?)?, DATA);
    }
    Ok(())
}

fn run(command: &mut Command) -> Result<Vec<u8>> {
    let output = command.output().with_context(|| format!("can't start {command:?}"))?;
    if !output.status.success() {
        bail!("{command:?}: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(output.stdout)
}
