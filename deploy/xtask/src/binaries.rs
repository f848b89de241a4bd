//! Builds of the programs: a quick build for daily use, and the optimised static build that ships. The latter
//! is in `target/dist`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::jepsen_program::BENCH;
use crate::workspace::{Workspace, call};

/// Programs that ship, with one cargo call each: cargo unifies features over all packages of a call. Built
/// together with the daemon, the plugin would get the daemon's dependencies and start slower for it.
pub(crate) const SHIPPED: [(&str, &[&str]); 4] = [
    ("ipamd", &["ipamd"]),
    ("ipamctl", &["ipamctl"]),
    ("ipam-cni", &["ipam-cni"]),
    ("ipam-agent", &["ipam-agent"]),
];

/// Flags of `.cargo/config.toml`, plus static linking. An environment variable replaces those of the file.
const RUSTFLAGS: &str = "--cfg tokio_unstable -C target-feature=+crt-static";
/// Variable with flags that may contain spaces, and the character between them.
const ENCODED_RUSTFLAGS: &str = "CARGO_ENCODED_RUSTFLAGS";
const SEPARATOR: &str = "\u{1f}";

/// Builds the binaries that ship and prints how large each is.
pub(crate) fn build(workspace: &Workspace) -> Result<Vec<PathBuf>> {
    let triple = host_triple()?;
    let dist = workspace.dist();
    fs::create_dir_all(&dist).with_context(|| format!("can't create {}", dist.display()))?;
    let mut made = Vec::new();
    for (package, names) in SHIPPED {
        call(&mut cargo_build(workspace, &triple, package, names)?)?;
        for name in names {
            let built = workspace.target.join(&triple).join("release").join(name);
            let shipped = dist.join(name);
            install(&built, &shipped)?;
            made.push(shipped);
        }
    }
    for path in &made {
        let bytes = fs::metadata(path)?.len();
        println!("{:>9}  {}", mebibytes(bytes), path.display());
    }
    Ok(made)
}

/// The programs of a cluster and of its nodes.
pub(crate) const PROGRAMS: &[&str] = &["ipamd", "ipamctl", "ipam-cni"];

/// Builds programs with the settings of the tests, so nothing is built twice; returns their folder.
pub(crate) fn build_quickly(workspace: &Workspace, programs: &[&str]) -> Result<PathBuf> {
    // The features of the whole workspace are used; otherwise all dependencies would be built again.
    let mut command = workspace.cargo(["build", "--locked", "--workspace"]);
    call(command.args(programs.iter().flat_map(|name| ["--bin", name])))?;
    Ok(workspace.target.join("debug"))
}

/// Program whose instructions are counted, an example of the crate `ipam-machine`.
pub(crate) const COSTS: &str = "costs";
/// Profile of the tests that compute more than they wait.
const OPTIMISED: &str = "simulation";

/// Builds the simulation and the program of the costs; returns their folder. One cargo call builds common
/// dependencies once.
pub(crate) fn build_optimised_for_tests(workspace: &Workspace) -> Result<PathBuf> {
    let mut command = workspace.cargo(["build", "--locked", "--profile", OPTIMISED]);
    command.args(["--package", BENCH, "--bin", BENCH, "--package", "ipam-machine", "--example", COSTS]);
    call(&mut command)?;
    Ok(workspace.target.join(OPTIMISED))
}

/// Programs that measure the state machine, by package: run by hand, never by the tests.
pub(crate) const MACHINE: [(&str, &str); 2] = [("ipam-machine", "machine"), ("ipam-machine", "selecting")];

/// Program that measures ADDs through `macvlan` and their probes.
pub(crate) const PROBES: [(&str, &str); 1] = [("ipamd", "probes")];

/// Program that measures the front end for Meridio.
pub(crate) const MERIDIO: [(&str, &str); 1] = [("ipamd", "meridio")];

/// Builds the binaries that ship, then runs programs that measure.
pub(crate) fn measure(workspace: &Workspace, measures: &[(&str, &str)]) -> Result<()> {
    build(workspace)?;
    let triple = host_triple()?;
    for (package, bench) in measures {
        let mut command = workspace.cargo(["bench", "--locked", "--package", package, "--bench", bench]);
        command.args(["--target", &triple]).env(ENCODED_RUSTFLAGS, rustflags(workspace)?);
        command.env("IPAMD_BIN_DIR", workspace.dist());
        call(&mut command)?;
    }
    Ok(())
}

/// Builds one optimised program that does not ship; returns its path. Package and program have the same name.
pub(crate) fn build_optimised(workspace: &Workspace, name: &str) -> Result<PathBuf> {
    let triple = host_triple()?;
    call(&mut cargo_build(workspace, &triple, name, &[name])?)?;
    Ok(workspace.target.join(triple).join("release").join(name))
}

fn cargo_build(workspace: &Workspace, triple: &str, package: &str, names: &[&str]) -> Result<Command> {
    let mut command = workspace.cargo(["build", "--release", "--locked", "--package", package]);
    for name in names {
        command.args(["--bin", name]);
    }
    if package == "ipamd" {
        command.args(["--features", "jemalloc"]);
    }
    // With an explicit target the flags don't reach proc-macros and build scripts, which can't be static.
    command.args(["--target", triple]).env(ENCODED_RUSTFLAGS, rustflags(workspace)?);
    Ok(command)
}

/// Flags of the shipped binaries. They contain no path of the machine, so that two builds in two folders are
/// equal.
fn rustflags(workspace: &Workspace) -> Result<String> {
    let mut flags: Vec<String> = RUSTFLAGS.split(' ').map(str::to_owned).collect();
    // The last matching prefix counts, and the target folder is usually inside the checkout.
    let places = [
        (cargo_home()?, "/cargo"),
        (sysroot()?, "/rust"),
        (workspace.root.clone(), "/ipamd"),
        (workspace.target.clone(), "/ipamd/target"),
    ];
    flags.extend(places.iter().map(|(path, name)| format!("--remap-path-prefix={}={name}", path.display())));
    Ok(flags.join(SEPARATOR))
}

/// Folder of cargo with the sources of dependencies.
fn cargo_home() -> Result<PathBuf> {
    let named = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = named.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    home.context("neither CARGO_HOME nor HOME is set")
}

/// Folder of the compiler with the sources of the standard library.
fn sysroot() -> Result<PathBuf> {
    let printed = rustc(&["--print", "sysroot"])?;
    Ok(PathBuf::from(printed.trim()))
}

/// The triple of the machine that builds, from the compiler itself.
fn host_triple() -> Result<String> {
    host_in(&rustc(&["-vV"])?).map(str::to_owned).context("rustc -vV names no host")
}

/// Text that the compiler prints.
fn rustc(words: &[&str]) -> Result<String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).args(words).output().context("can't start rustc")?;
    if !output.status.success() {
        bail!("rustc {} failed: {}", words.join(" "), output.status);
    }
    Ok(String::from_utf8(output.stdout)?)
}

fn host_in(printed: &str) -> Option<&str> {
    printed.lines().find_map(|line| line.strip_prefix("host: ")).map(str::trim)
}

/// Installs a binary by rename, because a running binary can't be overwritten.
fn install(built: &Path, shipped: &Path) -> Result<()> {
    let aside = shipped.with_extension("new");
    fs::copy(built, &aside).with_context(|| format!("can't copy {}", built.display()))?;
    fs::rename(&aside, shipped).with_context(|| format!("can't rename {}", aside.display()))
}

fn mebibytes(bytes: u64) -> String {
    let hundredths = bytes.saturating_mul(100) >> 20;
    format!("{}.{:02} MiB", hundredths / 100, hundredths % 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUILD: &str = r#"fn main() {
        std::fs::write(std::env::var("OUT_DIR").unwrap() + "/place.rs", "file!()").unwrap();
    }"#;
    const MAIN: &str = r#"fn main() {
        println!("{}", include!(concat!(env!("OUT_DIR"), "/place.rs")));
    }"#;
    const MANIFEST: &str = r#"
        [package]
        name = "place"
        version = "0.1.0"
        edition = "2024"
        [workspace]"#;
    const LOCK: &str = r#"
        version = 4
        [[package]]
        name = "place"
        version = "0.1.0""#;

    #[test]
    fn the_host_is_read_from_what_rustc_says() {
        assert_eq!(
            host_in("rustc 1.95.0\nhost: riscv64-any-linux-gnu\nrelease: 1.95.0\n"),
            Some("riscv64-any-linux-gnu")
        );
        assert_eq!(host_in("rustc 1.95.0\n"), None);
    }

    #[test]
    fn sizes_are_rounded_down_to_hundredths() {
        assert_eq!(mebibytes(0), "0.00 MiB");
        assert_eq!(mebibytes((5 << 20) + (1 << 19)), "5.50 MiB");
    }

    /// An environment variable replaces the configured flags, so they must be repeated here.
    #[test]
    fn the_flags_of_the_workspace_are_among_the_shipped_ones() {
        let config = include_str!("../../../.cargo/config.toml");
        let line = config.lines().find(|line| line.starts_with("rustflags")).unwrap();
        let configured: Vec<&str> = line.split('"').skip(1).step_by(2).collect();
        assert!(!configured.is_empty());
        assert!(RUSTFLAGS.starts_with(&configured.join(" ")), "{configured:?} is missing in {RUSTFLAGS:?}");
    }

    /// Writes a program that contains a path of the target folder, and builds it as shipped programs are.
    fn built_in(folder: &Path) -> PathBuf {
        fs::create_dir_all(folder.join("src")).unwrap();
        for (name, content) in
            [("Cargo.toml", MANIFEST), ("Cargo.lock", LOCK), ("build.rs", BUILD), ("src/main.rs", MAIN)]
        {
            fs::write(folder.join(name), content).unwrap();
        }
        let workspace = Workspace { root: folder.to_owned(), target: folder.join("target") };
        build_optimised(&workspace, "place").unwrap()
    }

    #[test]
    fn p5_1_and_2_shipped_programs_are_equal_in_two_folders_and_static() {
        let dir = std::env::temp_dir().join(format!("xtask-places-{}", std::process::id()));
        let [one, other] = ["one", "another/deeper"].map(|name| built_in(&dir.join(name)));
        let printed = Command::new(&one).output().unwrap().stdout;
        let linked = Command::new("ldd").arg(&one).output().unwrap();
        let are_equal = fs::read(&one).unwrap() == fs::read(&other).unwrap();
        fs::remove_dir_all(&dir).unwrap();
        let printed = String::from_utf8(printed).unwrap();
        assert!(printed.starts_with("/ipamd/target/") && printed.ends_with("/place.rs\n"), "{printed}");
        assert!(are_equal, "a folder of the build is in the program");
        let said = [linked.stdout, linked.stderr].concat();
        let said = String::from_utf8(said).unwrap();
        assert!(["not a dynamic", "statically linked"].iter().any(|text| said.contains(text)), "{said}");
    }

    #[test]
    fn a_running_binary_is_replaced() {
        let dir = std::env::temp_dir().join(format!("xtask-install-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let shipped = dir.join("sleep");
        let sleep =
            ["/bin/sleep", "/usr/bin/sleep"].map(Path::new).into_iter().find(|path| path.exists()).unwrap();
        install(sleep, &shipped).unwrap();
        let mut child = Command::new(&shipped).arg("60").spawn().unwrap();
        let again = install(sleep, &shipped);
        child.kill().unwrap();
        child.wait().unwrap();
        fs::remove_dir_all(&dir).unwrap();
        again.unwrap();
    }
}
