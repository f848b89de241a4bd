//! Lab CA, whose files are never overwritten.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use ipam_api::tls::{Credentials, identity_of, read_roots};

use super::*;

async fn ca(line: &str) -> (Result<(), Failure>, String) {
    run("http://127.0.0.1:1", &format!("cluster ca {line}")).await
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn certificates_name_their_subjects_and_keys_are_private() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join("ca");
    let at = place.display();
    ca(&format!("init {at}")).await.0.unwrap();
    assert_eq!((mode(&place), mode(&place.join("ca.key"))), (0o700, 0o600));
    for (whom, stem, shown) in [
        ("member n1 --address 10.0.0.1 --address n1.example", "n1.member", "member n1"),
        ("client alice", "alice.client", "client alice"),
        ("node east/worker-3.example", "worker-3.example.east.node", "node east/worker-3.example"),
    ] {
        let (done, said) = ca(&format!("issue {at} {whom}")).await;
        done.unwrap();
        let (certificate, key) = (place.join(format!("{stem}.crt")), place.join(format!("{stem}.key")));
        assert!(said.contains(&*certificate.to_string_lossy()), "{said}");
        assert_eq!((mode(&certificate), mode(&key)), (0o644, 0o600));
        let credentials = Credentials::read(&certificate, &key).unwrap();
        assert_eq!(identity_of(&credentials.chain[0]).unwrap().unwrap().to_string(), shown);
        assert!(read_roots(&place.join("ca.crt")).is_ok());
    }
}

#[tokio::test]
async fn nothing_is_written_over_and_nothing_senseless_is_issued() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().display();
    assert_eq!(code(&ca(&format!("issue {at} member n1")).await.0), 2, "there is no CA");
    ca(&format!("init {at}")).await.0.unwrap();
    ca(&format!("issue {at} member n1")).await.0.unwrap();
    let files = || -> Vec<Vec<u8>> {
        ["ca.crt", "ca.key", "n1.member.crt", "n1.member.key"]
            .map(|name| std::fs::read(dir.path().join(name)).unwrap())
            .into()
    };
    let before = files();
    for line in [
        format!("init {at}"),
        format!("issue {at} member n1"),
        format!("issue {at} member n2 --address n1.member.ipamd.internal"),
        format!("issue {at} member n2 --address http://n2:7440"),
        format!("issue {at} member a..b"),
        format!("issue {at} node a.b/worker"),
        format!("issue {at} node default/Worker"),
    ] {
        assert_eq!(code(&ca(&line).await.0), 2, "{line}");
    }
    ca(&format!("--dry-run issue {at} member n3")).await.0.unwrap();
    assert!(!dir.path().join("n3.member.crt").exists());
    assert_eq!(files(), before);
    ca(&format!("issue {at} member n1 --force")).await.0.unwrap();
    let after = files();
    assert_eq!(after[..2], before[..2]);
    assert!(after[2] != before[2] && after[3] != before[3]);
}
