//! Manual pages and completions of each program (line 4 of the acceptance).

use std::path::Path;
use std::process::Command;

use crate::{package, run};

/// Programs with the package that has them.
const PROGRAMS: [(&str, &str); 4] =
    [("ipamd", "ipamd"), ("ipamctl", "ipamd"), ("ipam-agent", "ipam-agent"), ("ipam-cni", "ipam-agent")];

fn unpacked(name: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    run(Command::new("dpkg-deb").arg("--extract").arg(package(name)).arg(folder.path()));
    folder
}

#[test]
fn p5_4_each_program_has_a_manual_page_and_completions() {
    for (program, name) in PROGRAMS {
        let folder = unpacked(name);
        let usr = folder.path().join("usr/share");
        assert!(usr.join(format!("man/man1/{program}.1.gz")).exists(), "{program}");
        // Runtimes start the plugin; its input is no command line.
        if program == "ipam-cni" {
            continue;
        }
        for path in [
            format!("bash-completion/completions/{program}"),
            format!("zsh/vendor-completions/_{program}"),
            format!("fish/vendor_completions.d/{program}.fish"),
        ] {
            let size =
                std::fs::metadata(usr.join(&path)).unwrap_or_else(|error| panic!("{path}: {error}")).len();
            assert!(size > 0, "{path}");
        }
        run(Command::new("bash").arg("-n").arg(usr.join(format!("bash-completion/completions/{program}"))));
    }
}

#[test]
fn p5_4_manual_pages_have_no_errors() {
    for name in ["ipamd", "ipam-agent"] {
        let folder = unpacked(name);
        let pages = std::fs::read_dir(folder.path().join("usr/share/man/man1")).unwrap();
        for page in pages {
            lint(&page.unwrap().path());
        }
    }
}

fn lint(page: &Path) {
    let text = run(Command::new("zcat").arg(page));
    assert!(text.contains(".SH NAME"), "{}", page.display());
    run(Command::new("mandoc").args(["-Tlint", "-Werror"]).arg(page));
}
