//! Manual pages and completions of each program, and links of the documentation (line 4 of the acceptance).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{artifact, package, prepared, run};

/// Programs with the package that has them.
const PROGRAMS: [(&str, &str); 4] =
    [("ipamd", "ipamd"), ("ipamctl", "ipamd"), ("ipam-agent", "ipam-agent"), ("ipam-cni", "ipam-agent")];

/// Completes a word after a command in bash: `$1` is the script, the others are the words.
const COMPLETE: &str = r#"
    source "$1"; shift
    COMP_WORDS=("$@") COMP_CWORD=2
    "_${1//-/__}" "$1" "$3" "$2"
    echo "${COMPREPLY[@]}"
"#;

/// Files of a package in a temporary folder.
pub(crate) fn unpacked(name: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    run(Command::new("dpkg-deb").arg("--extract").arg(package(name)).arg(folder.path()));
    folder
}

#[test]
fn p5_4_each_program_has_a_manual_page_and_completions() {
    for (program, name) in PROGRAMS {
        let folder = unpacked(name);
        let usr = folder.path().join("usr/share");
        assert!(usr.join(format!("man/man1/{program}.1.gz")).exists(), "{program}");
        for path in [
            format!("bash-completion/completions/{program}"),
            format!("zsh/vendor-completions/_{program}"),
            format!("fish/vendor_completions.d/{program}.fish"),
        ] {
            let size =
                std::fs::metadata(usr.join(&path)).unwrap_or_else(|error| panic!("{path}: {error}")).len();
            assert!(size > 0, "{path}");
        }
        run(Command::new("bash").arg("-n").arg(usr.join(format!("bash-completion/completions/{program}"))));
    }
}

#[test]
fn p5_4_bash_completes_options_of_commands() {
    let folder = unpacked("ipam-agent");
    for [program, command, begun, option] in
        [["ipam-agent", "serve", "--conf", "--config"], ["ipam-cni", "ready", "--so", "--socket"]]
    {
        let script = folder.path().join("usr/share/bash-completion/completions").join(program);
        let mut complete = Command::new("bash");
        complete.args(["-c", COMPLETE, "bash"]).arg(script).args([program, command, begun]);
        assert_eq!(run(&mut complete).trim(), option, "{program}");
    }
}

/// A run like that of kubectl: the arguments are the words after `ipam`, the last one incomplete.
#[test]
fn p5_4_kubectl_completes_commands_options_and_values() {
    let folder = unpacked("ipamd");
    let programs = folder.path().join("usr/bin");
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    for (words, expected) in [
        (&["poo"][..], ["pool", ":4"]),
        (&["pool", "create", "--strat"], ["--strategy", ":4"]),
        (&["pool", "create", "--strategy=seq"], ["sequential", ":4"]),
        (&["--ca-file", "/us"], ["/usr/", ":6"]),
    ] {
        let mut complete = Command::new(programs.join("kubectl_complete-ipam"));
        let answer = run(complete.args(words).env("PATH", &path));
        let values = answer.lines().filter_map(|line| line.split('\t').next());
        assert_eq!(values.collect::<Vec<_>>(), expected, "{words:?}");
    }
}

/// The grammar of the completions and the page are written by hand, beside the plugin.
#[test]
fn p5_4_completions_and_page_of_the_plugin_agree_with_its_help() {
    let help = run(Command::new(prepared("IPAMD_STRIPPED").join("ipam-cni")).arg("--help"));
    let words = words_of_usage(&help);
    assert!(words.contains("install") && words.contains("--check-config"), "{help}");
    let folder = unpacked("ipam-agent");
    let usr = folder.path().join("usr/share");
    let script = std::fs::read_to_string(usr.join("bash-completion/completions/ipam-cni")).unwrap();
    let lists = script.split("opts=\"").skip(1).filter_map(|rest| rest.split('"').next());
    let completed = lists.flat_map(str::split_whitespace).filter(|word| !["-h", "-V"].contains(word));
    assert_eq!(completed.collect::<BTreeSet<_>>(), words);
    let page = run(Command::new("zcat").arg(usr.join("man/man1/ipam-cni.1.gz"))).replace("\\-", "-");
    for word in words {
        assert!(page.contains(word), "the page lacks {word}");
    }
}

/// Commands and long options of the usage in a help text of the plugin.
fn words_of_usage(help: &str) -> BTreeSet<&str> {
    let usage = help.split("\n\n").find(|part| part.starts_with("Usage:")).unwrap();
    let lines = usage.lines().filter_map(|line| line.strip_prefix("  ipam-cni "));
    // The first word of a line is a command or an option. Values and a description follow, too.
    let words = lines.flat_map(|line| line.split_whitespace().enumerate());
    let named = words.filter(|(at, word)| *at == 0 || word.trim_start_matches('[').starts_with("--"));
    named.map(|(_, word)| word.trim_matches(['[', ']'])).collect()
}

#[test]
fn p5_4_manual_pages_have_no_errors() {
    for name in ["ipamd", "ipam-agent"] {
        let folder = unpacked(name);
        let pages = std::fs::read_dir(folder.path().join("usr/share/man/man1")).unwrap();
        for page in pages {
            lint(&page.unwrap().path());
        }
    }
}

fn lint(page: &Path) {
    let text = run(Command::new("zcat").arg(page));
    assert!(text.contains(".SH NAME"), "{}", page.display());
    run(Command::new("mandoc").args(["-Tlint", "-Werror"]).arg(page));
}

#[test]
fn p5_4_each_link_of_a_document_leads_to_a_file_of_the_same_artifact() {
    let package = unpacked("ipamd");
    let tarball = tempfile::tempdir().unwrap();
    let mut extract = Command::new("tar");
    extract.arg("--extract").arg("--file").arg(artifact(".tar.gz")).arg("--directory").arg(tarball.path());
    run(&mut extract);
    for folder in [package, tarball] {
        let root = folder.path().canonicalize().unwrap();
        let documents = markdown(&root);
        assert!(documents.len() > 50, "{documents:?}");
        for document in documents {
            for target in targets(&std::fs::read_to_string(&document).unwrap()) {
                let to = document.parent().unwrap().join(&target).canonicalize();
                let is_inside = to.is_ok_and(|to| to.starts_with(&root));
                assert!(is_inside, "{}: {target}", document.display());
            }
        }
    }
}

/// Markdown files of a folder and of its subfolders.
fn markdown(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(markdown(&path));
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
    found
}

/// Targets of the relative links in a Markdown text, without fragments.
fn targets(text: &str) -> Vec<String> {
    // Blocks and spans of code are between odd numbers of backticks.
    let prose: String = text.split('`').step_by(2).collect();
    let inline = prose.split("](").skip(1);
    let definitions = prose.lines().filter(|line| line.starts_with('['));
    let definitions = definitions.filter_map(|line| Some(line.split_once("]: ")?.1));
    let targets = inline.chain(definitions).filter_map(|rest| rest.split([')', '#', ' ', '\n']).next());
    targets.filter(|target| !target.is_empty() && !target.contains(':')).map(str::to_owned).collect()
}
