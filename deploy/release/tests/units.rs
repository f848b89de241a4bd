//! Units of the packages, as systemd reads them (line 5 of the acceptance).

use std::process::Command;

use crate::{package, run};

/// Services of the packages, each with its timer, if it has one.
///
/// The number is the largest exposure that `systemd-analyze security` may compute, in tenths.
const UNITS: [(&str, &[&str], u32); 3] = [
    ("ipamd", &["ipamd.service"], 20),
    ("ipam-agent", &["ipam-agent.service"], 40),
    ("ipamd", &["ipamd-backup.service", "ipamd-backup.timer"], 40),
];

#[test]
fn p5_5_units_are_known_and_confined() {
    for (name, units, limit) in UNITS {
        let folder = tempfile::tempdir().unwrap();
        run(Command::new("dpkg-deb").arg("--extract").arg(package(name)).arg(folder.path()));
        let installed = folder.path().join("lib/systemd/system");
        let path = installed.join(units[0]);
        let mut security = Command::new("systemd-analyze");
        security.args(["security", "--offline=true", &format!("--threshold={limit}")]);
        run(security.arg(&path));
        let mut text = std::fs::read_to_string(&path).unwrap();
        assert!(!text.contains("/usr/local/"), "{text}");
        // `verify` looks for the programs on this machine.
        let inside = format!("{}/usr/", folder.path().display());
        text = text.replace("=/usr/", &format!("={inside}"));
        std::fs::write(&path, text).unwrap();
        for unit in units {
            let mut verify = Command::new("systemd-analyze");
            let said = run(verify.args(["verify", "--man=no"]).arg(installed.join(unit)));
            assert_eq!(said, "", "{unit}");
        }
    }
}

#[test]
fn p5_6_the_unit_has_the_settings_of_readiness_and_watchdog() {
    let unit = std::fs::read_to_string(crate::root().join("deploy/systemd/ipamd.service")).unwrap();
    for setting in ["Type=notify", "WatchdogSec=", "TimeoutStartSec=", "User=ipamd"] {
        assert!(unit.lines().any(|line| line.starts_with(setting)), "{setting}");
    }
}
