//! `endpoint show -o netplan` and the other formats of network managers.

use std::os::unix::fs::PermissionsExt as _;

use super::*;

#[tokio::test]
async fn a_single_file_is_printed_as_it_is_and_several_with_their_paths() {
    let (server, _) = pretend(world::world).await;
    let (result, text) = run(&server, "endpoint show host/db-07 -o netplan").await;
    assert_eq!(code(&result), 0, "{result:?}");
    assert!(text.starts_with("# Rendered by ipamd") && text.contains("- 10.10.0.77/24\n"), "{text}");
    let (result, text) = run(&server, "endpoint show host/vlan-7 -o networkd").await;
    assert_eq!(code(&result), 0, "{result:?}");
    let paths: Vec<&str> = text.lines().filter(|line| line.starts_with("# /")).collect();
    let wanted = ["eth0.network", "eth0.110.netdev", "eth0.110.network"]
        .map(|name| format!("# /etc/systemd/network/60-ipamd-{name} mode 644"));
    assert_eq!(paths, wanted, "{text}");
}

#[tokio::test]
async fn files_go_below_a_root_directory_with_their_modes() {
    let (server, _) = pretend(world::world).await;
    let root = tempfile::tempdir().unwrap();
    let line = format!("endpoint show host/db-07 -o networkmanager --output-dir {}", root.path().display());
    let path = root.path().join("etc/NetworkManager/system-connections/60-ipamd-eth0.nmconnection");
    assert_eq!(code(&run(&server, &format!("{line} --dry-run")).await.0), 0);
    assert!(!path.exists(), "a dry run writes nothing");
    // The second run overwrites the files of the first one.
    for _ in 0..2 {
        let (result, text) = run(&server, &line).await;
        assert_eq!((code(&result), text.as_str()), (0, ""), "{result:?}");
        assert!(std::fs::read_to_string(&path).unwrap().contains("address1=10.10.0.77/24\n"));
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
    let (result, _) = run(&server, "endpoint show host/db-07 --output-dir /tmp").await;
    assert_eq!(code(&result), 2, "tables are no files: {result:?}");
    let (result, _) = run(&server, "endpoint show host/db-07 -o netplan --output-dir /proc/none").await;
    assert_eq!(code(&result), 2, "{result:?}");
}

#[tokio::test]
async fn other_commands_refuse_the_formats_before_they_send_anything() {
    let (server, seen) = pretend(world::world).await;
    for line in [
        "endpoint list -o netplan",
        "endpoint delete host/db-07 -o ifupdown --yes",
        "pool show web -o nmstate",
        "allocate --endpoint host/db-07 --pool web -o cloud-init",
        "status -o networkd",
    ] {
        let (result, _) = run(&server, line).await;
        assert_eq!(code(&result), 2, "{line}: {result:?}");
        let said = result.unwrap_err().text(false).unwrap();
        assert!(said.contains("ipamctl endpoint show KIND/NAME -o"), "{line}: {said}");
    }
    assert!(seen.lock().unwrap().is_empty());
}

#[tokio::test]
async fn addresses_that_no_format_has_are_refused_with_the_reason() {
    let (server, _) = pretend(world::world).await;
    let (result, text) = run(&server, "endpoint show host/hostile -o netplan").await;
    assert_eq!((code(&result), text.as_str()), (1, ""), "{result:?}");
    assert!(result.unwrap_err().text(false).unwrap().contains("can't be rendered"));
}
