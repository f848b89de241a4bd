//! Foreign clients of the Meridio front end: grpcio from PyPI, and grpc-go from Debian's packages.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::python;
use crate::workspace::{Workspace, call};

/// Name of the Python environment with grpcio, and of the folder of the Go client in `target/tools`.
const PYTHON: &str = "meridio";
const GO: &str = "meridio-go";

/// Sources of the Go client.
const SOURCES: [&str; 2] =
    ["daemon/tests/meridio/clients/client.go", "daemon/tests/meridio/clients/connection.go"];
/// Folder of the protocol, and its files: each is a package of Go by the name of its folder.
const PROTOCOL: &str = "daemon/meridio/proto";
const FILES: [&str; 2] = ["ipam/v1/ipam.proto", "nsp/v1/conduit.proto"];
/// Go packages of the files. The empty message has another package in the newer runtime, which Debian's
/// grpc-go doesn't use.
const PACKAGES: &str = "plugins=grpc,Mgoogle/protobuf/empty.proto=github.com/golang/protobuf/ptypes/empty,\
                        Mipam/v1/ipam.proto=ipam/v1,Mnsp/v1/conduit.proto=nsp/v1";
/// Debian's compiler, and the libraries that its packages install.
const COMPILER: &str = "/usr/bin/go";
const LIBRARIES: &str = "/usr/share/gocode";

/// Builds both clients, unless they exist and their sources are unchanged.
pub(crate) fn ensure(workspace: &Workspace) -> Result<()> {
    python::environment(workspace, PYTHON)?;
    build(workspace).context("the Go client; first: cargo xtask test --only packages")
}

/// Compiles the Go client without a network, into a folder with its own cache.
fn build(workspace: &Workspace) -> Result<()> {
    let home = workspace.target.join("tools").join(GO);
    let wanted = sources(&workspace.root)?;
    // The tests compare this file, too.
    let built = home.join("built.txt");
    if fs::read_to_string(&built).is_ok_and(|text| text == wanted) {
        return Ok(());
    }
    let folder = home.join("src");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    if built.exists() {
        fs::remove_file(&built)?;
    }
    fs::create_dir_all(&folder)?;
    for file in FILES {
        let output = format!("--go_out={PACKAGES}:{}", folder.display());
        let protocol = workspace.root.join(PROTOCOL);
        call(Command::new("protoc").arg(output).arg("--proto_path").arg(protocol).arg(file))?;
    }
    let main = folder.join("client");
    fs::create_dir(&main)?;
    for source in SOURCES {
        let path = workspace.root.join(source);
        fs::copy(&path, main.join(path.file_name().context("a file")?))?;
    }
    call(
        Command::new(COMPILER)
            .args(["build", "-trimpath", "-o"])
            .arg(home.join("client"))
            .arg(".")
            .current_dir(main)
            .env("GOPATH", format!("{}:{LIBRARIES}", home.display()))
            .env("GOCACHE", home.join("cache"))
            .env("GO111MODULE", "off")
            .env("GOFLAGS", "")
            .env("CGO_ENABLED", "0"),
    )?;
    Ok(fs::write(built, wanted)?)
}

/// All sources of the Go client, as one text.
fn sources(root: &Path) -> Result<String> {
    let files = FILES.iter().map(|file| Path::new(PROTOCOL).join(file));
    let mut text = String::new();
    for path in SOURCES.iter().map(PathBuf::from).chain(files) {
        text += &fs::read_to_string(root.join(&path)).with_context(|| path.display().to_string())?;
    }
    Ok(text)
}
