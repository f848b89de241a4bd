//! Committed code of the wire contracts. `UPDATE=1` writes it again.

use std::path::Path;

/// Packages of the contracts, with their committed code.
const PACKAGES: [(&str, &str); 2] = [("ipam.v1.rs", "ipam/v1.rs"), ("nsp.v1.rs", "nsp/v1.rs")];

#[test]
fn the_committed_code_is_what_the_protocol_files_compile_to() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let made = tempfile::tempdir().unwrap();
    let files = protox::compile(["ipam/v1/ipam.proto"], [own.join("proto")]).unwrap();
    tonic_prost_build::configure().build_transport(false).out_dir(made.path()).compile_fds(files).unwrap();
    for (made_file, file) in PACKAGES {
        let made = std::fs::read_to_string(made.path().join(made_file)).unwrap();
        let committed = own.join("src/wire").join(file);
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&committed, &made).unwrap();
        }
        let committed = std::fs::read_to_string(committed).unwrap();
        assert!(committed == made, "{file} is stale: UPDATE=1 cargo nextest run -p ipam-meridio");
    }
}
