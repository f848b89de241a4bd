//! Writer of the release artifacts: tarball, Debian and RPM packages, bill of materials, checksums.
//!
//! `cargo xtask dist` builds the programs and the container image, then calls this program.
//!
//! **Invariant:** the bytes of an artifact depend on the checkout, the programs and the time alone.

mod bill;
mod checksums;
mod debian;
mod documentation;
mod layout;
mod manual;
mod plugin;
mod rpm;
mod tarball;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::Parser;
use ipam_image::tree::read;
use ipam_image::{crates, licences};

use crate::debian::Package;
use crate::layout::Sources;

/// Write the release artifacts of a checkout with built programs.
#[derive(Debug, Parser)]
#[command(name = "ipam-release")]
struct Arguments {
    /// Checkout.
    #[arg(long, value_name = "DIR")]
    root: PathBuf,
    /// Directory with the shipped programs.
    #[arg(long, value_name = "DIR")]
    binaries: PathBuf,
    /// Directory of the artifacts.
    #[arg(long, value_name = "DIR")]
    output: PathBuf,
    /// Time of all entries, in seconds since 1970.
    #[arg(long, value_name = "SECONDS")]
    time: u64,
    /// Version of the artifacts, if it is not that of the sources.
    #[arg(long, default_value = env!("CARGO_PKG_VERSION"))]
    release: String,
    /// Compression of packages, as `dpkg-deb` names it. All but `xz` are fast, for tests.
    #[arg(long, default_value = "xz")]
    compression: String,
    /// RPM packages, too; needs rpmbuild.
    #[arg(long)]
    rpm: bool,
    /// Other artifacts in the output directory that the checksums include.
    #[arg(long, value_name = "NAME")]
    also: Vec<String>,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let Arguments { root, output, time, release, .. } = &arguments;
    fs::create_dir_all(output).with_context(|| output.display().to_string())?;
    let crates = crates::shipped(root)?;
    let sources = Sources {
        root: root.clone(),
        binaries: arguments.binaries.clone(),
        licences: licences::text(root, &crates)?,
    };
    let mut names = arguments.also.clone();
    let folder = format!("ipamd-{release}-{}-linux", std::env::consts::ARCH);
    let tarball = format!("{folder}.tar.gz");
    let level = match arguments.compression.as_str() {
        "xz" => flate2::Compression::best(),
        _ => flate2::Compression::fast(),
    };
    write(&output.join(&tarball), &tarball::write(&sources.tarball()?.below(&folder), *time, level)?)?;
    names.push(tarball);
    for (name, tree) in [("ipamd", sources.daemon()?), ("ipam-agent", sources.agent()?)] {
        let package = Package { name, version: release, time: *time, compression: &arguments.compression };
        package.build(&tree, &root.join("deploy/debian").join(name), &output.join(package.file()))?;
        names.push(package.file());
        if arguments.rpm {
            package.build_rpm(&tree, &root.join("deploy"), output)?;
            names.push(package.rpm_file());
        }
    }
    let bill = format!("ipamd-{release}.cdx.json");
    write(&output.join(&bill), bill::document(root, &crates, release)?.as_bytes())?;
    names.push(bill);
    let contents: Vec<Vec<u8>> = names.iter().map(|name| read(&output.join(name))).collect::<Result<_>>()?;
    let sums = checksums::lines(names.iter().map(String::as_str).zip(contents.iter().map(Vec::as_slice)));
    write(&output.join(checksums::NAME), sums.as_bytes())?;
    names.push(checksums::NAME.to_owned());
    for name in names {
        println!("{:>9} KiB  {}", fs::metadata(output.join(&name))?.len() >> 10, output.join(name).display());
    }
    Ok(())
}

fn write(path: &Path, content: &[u8]) -> Result<()> {
    fs::write(path, content).with_context(|| path.display().to_string())
}
