//! Units of the packages, as systemd reads them (line 5 of the acceptance).

use std::process::Command;

use crate::{package, run};

/// Largest exposure that `systemd-analyze security` may compute, in tenths.
const EXPOSURE_MAX: [(&str, &str, u32); 3] = [
    ("ipamd", "ipamd.service", 20),
    ("ipam-agent", "ipam-agent.service", 40),
    ("ipamd", "ipamd-backup.service", 40),
];

#[test]
fn p5_5_units_are_known_and_confined() {
    for (name, unit, limit) in EXPOSURE_MAX {
        let folder = tempfile::tempdir().unwrap();
        run(Command::new("dpkg-deb").arg("--extract").arg(package(name)).arg(folder.path()));
        let path = folder.path().join("lib/systemd/system").join(unit);
        let mut security = Command::new("systemd-analyze");
        security.args(["security", "--offline=true", &format!("--threshold={limit}")]);
        run(security.arg(&path));
        let mut text = std::fs::read_to_string(&path).unwrap();
        assert!(!text.contains("/usr/local/"), "{text}");
        // `verify` looks for the programs on this machine.
        let inside = format!("{}/usr/", folder.path().display());
        text = text.replace("=/usr/", &format!("={inside}"));
        std::fs::write(&path, text).unwrap();
        let said = run(Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(&path));
        assert_eq!(said, "", "{unit}");
    }
}

#[test]
fn p5_6_the_daemon_reports_readiness_and_life() {
    let unit = std::fs::read_to_string(crate::root().join("deploy/systemd/ipamd.service")).unwrap();
    for setting in ["Type=notify", "WatchdogSec=", "TimeoutStartSec=", "User=ipamd"] {
        assert!(unit.lines().any(|line| line.starts_with(setting)), "{setting}");
    }
}
