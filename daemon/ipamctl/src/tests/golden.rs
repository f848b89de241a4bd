//! Golden files of the output: all help, and each table at 80 and 120 columns.
//!
//! `UPDATE=1` rewrites the files; examine the difference afterwards.

use std::fmt::Write as _;
use std::path::Path;

use clap::CommandFactory as _;

use super::world::{terminal, world};
use super::*;

/// Compares a text with its golden file.
fn hold(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata").join(name);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    if kept == text {
        return;
    }
    let differing = text.lines().zip(kept.lines()).find(|(now, kept)| now != kept);
    panic!("{} is no longer what is shown; first: {differing:#?}\nUPDATE=1 writes it anew", path.display());
}

fn collect(command: &mut clap::Command, path: &str, columns: usize, text: &mut String) {
    // The long help of `ipamctl` contains the global flags, which are compared only once.
    if path == "ipamctl" {
        let _ = write!(text, "$ {path} --help\n{}\n\n", command.render_long_help().to_string().trim_end());
    }
    let _ = write!(text, "$ {path} -h\n{}\n\n", command.render_help().to_string().trim_end());
    for nested in command.get_subcommands_mut().filter(|nested| nested.get_name() != "help") {
        let path = format!("{path} {}", nested.get_name());
        *nested = nested.clone().term_width(columns);
        collect(nested, &path, columns, text);
    }
}

#[test]
fn help_texts_equal_the_committed_ones() {
    for columns in [80, 120] {
        let mut command = Arguments::command().term_width(columns).max_term_width(columns);
        command.build();
        let mut text = String::new();
        collect(&mut command, "ipamctl", columns, &mut text);
        hold(&format!("help-{columns}.txt"), &text);
    }
}

#[tokio::test]
async fn tables_are_what_they_were() {
    const LINES: [&str; 52] = [
        "status",
        "network list",
        "network show lab",
        "subnet list",
        "subnet list -o wide",
        "subnet show lan-10",
        "pool list",
        "pool list -o wide",
        "pool show web",
        "pool map web",
        "pool map web --state free",
        "subnet map lan-10",
        "pool drain web --to web-b --yes",
        "network map lab",
        "pool list --field name,subnet,status.counts.free",
        "reservation list",
        "reservation show printers",
        "node list",
        "node show prod-eu/worker-3",
        "host-policy list",
        "host-policy show static-ip",
        "host-policy render static-ip --node worker-3",
        "host-policy reset static-ip --yes",
        "namespace list",
        "namespace show prod-eu/web",
        "endpoint list -o wide",
        "endpoint show pod/prod-eu/web/frontend-7",
        "allocation list",
        "allocation show 48190233",
        "allocation bulk vm/lab/build-0 vm/lab/build-1 --pool rack-12",
        "allocation release 48190233 48190234 --yes",
        "token list",
        "token show ci",
        "cluster members",
        "cluster transfer-leader n1 --dry-run",
        "who-has 10.10.0.77",
        "who-has 10.10.0.77 --at 12h",
        "events --since 20m",
        "allocate --endpoint host/db-07 --pool rack-12 --pool rack-12-v6",
        "explain --endpoint pod/prod-eu/web/frontend-7 --node worker-3",
        "who-has 10.10.0.79",
        "quarantine list",
        "quarantine show 10.10.0.78",
        "prefix set node-1 --parent 48190230 --length 24 --yes",
        "gc --dry-run",
        "gc --yes",
        "node gone prod-eu/worker-17 --dry-run",
        "node remove db-07 --release --dry-run",
        "task list",
        "task show silent-nodes",
        "fsck",
        "context list",
    ];
    let (server, _) = pretend(world).await;
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir(home.path().join("ipamctl")).unwrap();
    std::fs::write(
        home.path().join("ipamctl/config.toml"),
        "current = 'prod'\n[context.prod]\nservers = ['https://n1.ipam.example:7440']\nproduction = true\n\
         realm = 'prod-eu'\n[context.lab]\nservers = ['http://127.0.0.1:7440']\n",
    )
    .unwrap();
    for columns in [80, 120] {
        let mut text = String::new();
        let mut around = terminal(columns);
        around.variables.insert("XDG_CONFIG_HOME".to_owned(), home.path().to_str().unwrap().to_owned());
        for line in LINES {
            let said = format!("-q --color never --server {server} {line}");
            let (result, shown) = run_within(&around, &said).await;
            let expected = if line == "fsck" { 7 } else { 0 };
            assert_eq!(code(&result), expected, "{line}: {result:?}");
            let wide = shown.lines().find(|shown| shown.chars().count() > columns);
            assert!(wide.is_none(), "{line}: {wide:?}");
            let _ = write!(text, "$ ipamctl {line}\n{shown}\n");
        }
        hold(&format!("tables-{columns}.txt"), &text);
    }
}

/// Every example of every help succeeds.
#[tokio::test]
async fn examples_work() {
    let (server, _) = pretend(world).await;
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir(home.path().join("ipamctl")).unwrap();
    let file = home.path().join("pools.yaml");
    std::fs::write(&file, "kind: pool\nname: new\nsubnet: lan-10\n").unwrap();
    let policy = home.path().join("static-ip.yaml");
    std::fs::write(&policy, "kind: host-policy\nname: uplink\n").unwrap();
    let gc = home.path().join("gc.json");
    std::fs::write(&gc, world::gc_report().to_string()).unwrap();
    let removal = home.path().join("db-07.json");
    let (_, found) = run(&server, "node remove db-07 --release --dry-run -o json").await;
    std::fs::write(&removal, found).unwrap();
    let fsck = home.path().join("fsck.json");
    let (_, found) = run(&server, "fsck -o json").await;
    std::fs::write(&fsck, found).unwrap();
    let token = home.path().join("token");
    std::fs::write(&token, "ipamd_s3cret").unwrap();
    std::fs::set_permissions(&token, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let mut examples = Vec::new();
    grammar::walk(&Arguments::command(), &mut |command| {
        let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let block = after.split_once("Examples:\n").map(|(_, block)| block.to_owned()).unwrap_or_default();
        examples.extend(block.lines().map(|line| line.trim().to_owned()));
    });
    // Other tests have examples that never end, that write backups, or that need a Kubernetes API.
    let elsewhere = |example: &String| {
        ["--follow", " watch", " cluster backup ", " kubernetes "].iter().any(|words| example.contains(words))
    };
    for example in examples.into_iter().filter(|example| !elsewhere(example)) {
        let config = home.path().join("ipamctl/config.toml");
        std::fs::write(
            &config,
            "current = 'prod'\n[context.prod]\nservers = ['http://p']\n[context.lab]\nservers = ['http://l']\n",
        )
        .unwrap();
        let mut words: Vec<String> =
            split(&example).into_iter().skip(1).map(|word| word.into_string().unwrap()).collect();
        // Files are never overwritten, so each of these examples has a folder of its own.
        let folder = tempfile::tempdir().unwrap();
        let ca = folder.path().join("ca").display().to_string();
        if example.contains(" ca issue ") {
            let made = run_within(&Environment::default(), &format!("cluster ca init {ca} -q")).await;
            assert_eq!(code(&made.0), 0);
        }
        for index in 0..words.len() {
            let before = index.checked_sub(1).map(|index| words[index].clone()).unwrap_or_default();
            match before.as_str() {
                // Files are those of the test, and all servers are the fake server.
                "-f" if words[index] == "static-ip.yaml" => words[index] = policy.display().to_string(),
                "-f" => words[index] = file.display().to_string(),
                "--from" if words[index] == "gc.json" => words[index] = gc.display().to_string(),
                "--from" if words[index] == "db-07.json" => words[index] = removal.display().to_string(),
                "--apply" => words[index] = fsck.display().to_string(),
                "--file" => {
                    let lines =
                        if words[index] == "ids.txt" { "48190233" } else { "vm/lab/build-0\nvm/lab/build-1" };
                    let lists = folder.path().join(&words[index]);
                    std::fs::write(&lists, lines).unwrap();
                    words[index] = lists.display().to_string();
                }
                "--to-file" | "--output-dir" | "man" | "bundle" => {
                    words[index] = folder.path().join(index.to_string()).display().to_string()
                }
                "--token-file" => words[index] = token.display().to_string(),
                "--server" => words[index] = server.clone(),
                _ if words[index] == "./ca" => words[index].clone_from(&ca),
                _ => {}
            }
        }
        let name = words.last().cloned().unwrap_or_default();
        let mut line = words.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(" ");
        line.push_str(" -q --no-input");
        if !line.contains("--yes") {
            line.push_str(" --yes");
        }
        if !line.contains("--server") && !line.contains("\"context\"") {
            line.push_str(&format!(" --server {server}"));
        }
        if example.starts_with("ipamctl network delete") && !line.contains("--confirm") {
            line.push_str(&format!(" --confirm {name}"));
        }
        let around =
            Environment::of([("XDG_CONFIG_HOME", home.path().to_str().unwrap()), ("HOME", "/nowhere")]);
        let (result, _) = run_within(&around, &line).await;
        let finds = example.starts_with("ipamctl diff")
            || (example.starts_with("ipamctl fsck") && !example.contains("--apply"));
        let expected = if finds { 7 } else { 0 };
        assert_eq!(code(&result), expected, "{example}\n{line}\n{result:?}");
    }
}
