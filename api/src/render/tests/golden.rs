//! Golden files: the rendered files of each case, per format. `UPDATE=1` writes them.

use std::fmt::Write as _;

use super::support::{cases, folder};
use crate::render::{Format, render};

#[test]
fn n5_10_each_format_renders_what_its_golden_file_has() {
    for (case, interfaces) in cases() {
        for format in Format::ALL {
            let mut text = String::new();
            for file in render(format, &interfaces).unwrap() {
                let _ = write!(text, "# {} {:o}\n{}", file.path, file.mode, file.content);
            }
            let path = folder().join(&case).join(format!("{format}.txt"));
            if std::env::var_os("UPDATE").is_some() {
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(&path, &text).unwrap();
            }
            let kept = std::fs::read_to_string(&path).unwrap_or_default();
            assert_eq!(text, kept, "{}; UPDATE=1 writes it", path.display());
        }
    }
}

#[test]
fn secrets_of_managers_are_private_and_no_file_is_anothers() {
    for (_, interfaces) in cases() {
        for format in Format::ALL {
            for file in render(format, &interfaces).unwrap() {
                let private = matches!(format, Format::Netplan | Format::Networkmanager);
                assert_eq!(file.mode, if private { 0o600 } else { 0o644 }, "{}", file.path);
                assert!(file.path.rsplit('/').next().unwrap().starts_with("60-ipamd"), "{}", file.path);
            }
        }
    }
}
