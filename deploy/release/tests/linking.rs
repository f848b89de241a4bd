//! Libraries: programs load only the libraries that they are linked with (acceptance, line 2).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{prepared, run, text};

/// Programs of the artifacts.
const PROGRAMS: [&str; 4] = ["ipamd", "ipamctl", "ipam-cni", "ipam-agent"];

/// In a network of its own, with a name server and the name services of a systemd host: `$1` is the folder
/// of the test, `$2` that of the programs.
const RESOLVE: &str = r#"
    ip link set lo up
    mount --bind "$1/nsswitch.conf" /etc/nsswitch.conf
    mount --bind "$1/resolv.conf" /etc/resolv.conf
    python3 "$1/names.py" >"$1/names" &
    until grep -qx ready "$1/names"; do sleep 0.05; done
    # Ends a program as soon as it has asked for its name.
    asks() {
        name=$1; shift
        setsid strace -f -qq -e trace=openat,execve -o "$dir/$name.trace" "$@" >"$dir/$name.log" 2>&1 &
        for look in $(seq 600); do
            if grep -qx "$name.test" "$dir/names"; then kill -- -$! && return; fi
            sleep 0.1
        done
        cat "$dir/$name.log"; return 1
    }
    dir=$1
    asks ipamctl "$2/ipamctl" --server http://ipamctl.test:7440 --timeout 60s pool list
    asks ipam-agent "$2/ipam-agent" serve --config "$1/agent.toml"
    asks ipamd "$2/ipamd" serve --name a --data-dir "$1/data" --insecure --client-socket "$1/ipamd.sock" \
        --client-listen 127.0.0.1:7440 --peer-listen 127.0.0.1:7441 --member a=127.0.0.1:7441 \
        --member b=ipamd.test:7441 --member c=ipamd.test:7442
    # The plugin refuses the name of a server.
    ! CNI_COMMAND=STATUS strace -f -qq -e trace=openat,execve -o "$1/ipam-cni.trace" \
        "$2/ipam-cni" <"$1/network.json" >"$1/ipam-cni.answer"
"#;

/// Libraries of a program by `ldd`; none if it is static.
fn linked(program: &Path) -> BTreeSet<PathBuf> {
    let output = Command::new("ldd").arg(program).output().unwrap();
    if !output.status.success() {
        let said = text(&output);
        assert!(said.contains("not a dynamic executable") || said.contains("statically linked"), "{said}");
        return BTreeSet::new();
    }
    let printed = text(&output);
    printed.split_whitespace().filter(|word| word.starts_with('/')).map(PathBuf::from).collect()
}

#[test]
fn p5_2_programs_run_without_any_other_file() {
    for program in PROGRAMS {
        let path = prepared("IPAMD_STRIPPED").join(program);
        let libraries = linked(&path);
        assert!(
            std::env::var_os("IPAMD_SHIPPED").is_none() || libraries.is_empty(),
            "{program}: {libraries:?}"
        );
        let root = tempfile::tempdir().unwrap();
        for file in libraries.iter().chain([&path]) {
            let at = if *file == path { Path::new(program) } else { file.strip_prefix("/").unwrap() };
            let inside = root.path().join(at);
            std::fs::create_dir_all(inside.parent().unwrap()).unwrap();
            std::fs::copy(file, inside).unwrap();
        }
        let said = run(Command::new("chroot").arg(root.path()).arg(format!("/{program}")).arg("--version"));
        assert!(said.contains(env!("CARGO_PKG_VERSION")), "{program}: {said}");
    }
}

#[test]
fn p5_2_names_resolve_without_libraries_of_name_services() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, content: &str| std::fs::write(dir.path().join(name), content).unwrap();
    write("nsswitch.conf", "hosts: resolve mymachines dns\n");
    write("resolv.conf", "nameserver 127.0.0.1\n");
    write("names.py", include_str!("names.py"));
    let at = dir.path().display();
    write(
        "agent.toml",
        &format!(
            "servers = [\"http://ipam-agent.test:7440\"]\nnode = \"a\"\nprobes = false\n\
             state_dir = \"{at}/state\"\nsocket = \"{at}/agent.sock\"\n"
        ),
    );
    write(
        "network.json",
        r#"{"cniVersion": "1.1.0", "name": "lan", "type": "bridge",
            "ipam": {"type": "ipam-cni", "servers": ["http://ipam-cni.test:7440"]}}"#,
    );
    let programs = prepared("IPAMD_STRIPPED");
    let mut command = Command::new("unshare");
    command.args(["--mount", "--net", "--pid", "--fork", "--kill-child", "bash", "-euo", "pipefail", "-c"]);
    run(command.args([RESOLVE, "bash"]).arg(dir.path()).arg(&programs));
    let answer = std::fs::read_to_string(dir.path().join("ipam-cni.answer")).unwrap();
    assert!(answer.contains("the plugin resolves no names"), "{answer}");
    for program in PROGRAMS {
        let trace = std::fs::read_to_string(dir.path().join(format!("{program}.trace"))).unwrap();
        let known = linked(&programs.join(program));
        let names = |paths: &BTreeSet<PathBuf>| -> BTreeSet<String> {
            paths.iter().map(|path| path.file_name().unwrap().to_str().unwrap().to_owned()).collect()
        };
        // The trace also contains attempts to open a library that this machine lacks.
        let tried = trace.lines().filter(|line| line.contains("openat("));
        let paths = tried.filter_map(|line| line.split('"').nth(1)).map(PathBuf::from);
        let tried: BTreeSet<PathBuf> = paths.collect();
        let looked = tried.contains(Path::new("/etc/resolv.conf"));
        assert_eq!(looked, program != "ipam-cni", "{program} and name servers");
        let libraries = tried.into_iter().filter(|path| path.to_str().unwrap().contains(".so")).collect();
        let unknown: Vec<String> = names(&libraries).difference(&names(&known)).cloned().collect();
        // The cache of the linker is not a library.
        assert!(unknown.iter().all(|name| name == "ld.so.cache"), "{program} tries to load {unknown:?}");
    }
}
