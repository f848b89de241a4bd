//! Network managers of a host, which would undo what the agent configures on their interfaces.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use ipam_api::limits::HOST_FILE_BYTES_MAX;
use ipam_api::render::{Format, render};
use ipam_api::resource::Interface;

use super::kernel::Link;

/// Network manager that owns an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manager {
    /// NetworkManager.
    NetworkManager,
    /// systemd-networkd.
    Networkd,
    /// ifupdown.
    Ifupdown,
    /// dhclient, started by hand or by another program.
    Dhclient,
}

impl Manager {
    /// Name of the program.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::NetworkManager => "NetworkManager",
            Self::Networkd => "systemd-networkd",
            Self::Ifupdown => "ifupdown",
            Self::Dhclient => "dhclient",
        }
    }

    /// Format of its files.
    #[must_use]
    pub fn format(self) -> Format {
        match self {
            Self::NetworkManager => Format::Networkmanager,
            Self::Networkd => Format::Networkd,
            Self::Ifupdown | Self::Dhclient => Format::Ifupdown,
        }
    }

    /// Message about an interface that the manager owns.
    #[must_use]
    pub fn refusal(self, device: &str) -> String {
        let (name, format) = (self.name(), self.format());
        format!(
            "{device} is managed by {name}, which would undo changes of the agent; take it out of {name}, or \
             set mode = \"render\" and format = \"{format}\", which writes {}",
            file(format, device)
        )
    }
}

/// File that the mode `render` would write for an interface.
fn file(format: Format, device: &str) -> String {
    let sample = serde_json::json!([{"name": device, "addresses": [
        {"address": "192.0.2.1/24", "pool": "sample", "allocation": 1, "checked": false},
    ]}]);
    let interfaces: Vec<Interface> = serde_json::from_value(sample).unwrap_or_default();
    let rendered = render(format, &interfaces).ok().and_then(|files| files.into_iter().next());
    rendered.map_or_else(|| folder(format).to_owned(), |file| file.path)
}

/// Folder of the files of a format.
fn folder(format: Format) -> &'static str {
    match format {
        Format::Networkd => "a file in /etc/systemd/network",
        Format::Ifupdown => "a file in /etc/network/interfaces.d",
        Format::Networkmanager => "a file in /etc/NetworkManager/system-connections",
        Format::Netplan => "a file in /etc/netplan",
        Format::Nmstate | Format::CloudInit => "a file",
    }
}

/// State of the network managers, below a root directory.
#[derive(Debug, Clone)]
pub struct Managers {
    root: PathBuf,
}

impl Managers {
    /// Managers of a host whose root directory this is.
    #[must_use]
    pub fn new(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    /// Manager that owns a link, if any.
    #[must_use]
    pub fn of(&self, link: &Link) -> Option<Manager> {
        let index = link.index.to_string();
        let device = self.read(&Path::new("run/NetworkManager/devices").join(&index));
        if device.lines().any(|line| matches!(line.trim(), "managed=true" | "managed=1")) {
            return Some(Manager::NetworkManager);
        }
        let state = self.read(&Path::new("run/systemd/netif/links").join(&index));
        let is_configured =
            |line: &str| matches!(line.trim(), "ADMIN_STATE=configured" | "ADMIN_STATE=configuring");
        if state.lines().any(is_configured) {
            return Some(Manager::Networkd);
        }
        let state = self.read(Path::new("run/network/ifstate"));
        if state.lines().any(|line| line.split('=').next().map(str::trim) == Some(link.name.as_str())) {
            return Some(Manager::Ifupdown);
        }
        self.has_dhclient(&link.name).then_some(Manager::Dhclient)
    }

    fn has_dhclient(&self, name: &str) -> bool {
        let files = [format!("run/dhclient.{name}.pid"), format!("run/dhclient-{name}.pid")];
        files.iter().any(|file| {
            let pid = self.read(Path::new(file));
            let pid = pid.trim();
            let is_number = !pid.is_empty() && pid.bytes().all(|byte| byte.is_ascii_digit());
            is_number && self.read(&Path::new("proc").join(pid).join("comm")).trim() == "dhclient"
        })
    }

    /// Reads a file below the root directory; empty if it can't be read.
    fn read(&self, path: &Path) -> String {
        let mut text = String::new();
        let read = File::open(self.root.join(path))
            .and_then(|file| file.take(HOST_FILE_BYTES_MAX).read_to_string(&mut text));
        if read.is_ok() { text } else { String::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fake::link;
    use super::*;

    #[test]
    fn each_manager_is_known_by_its_files() {
        let root = tempfile::tempdir().unwrap();
        let managers = Managers::new(root.path());
        let of = |file: &str, content: &str| {
            let path = root.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, content).unwrap();
            let found = managers.of(&link(7, "eth1", 1));
            std::fs::remove_file(&path).unwrap();
            found
        };
        for (file, content, expected) in [
            ("run/NetworkManager/devices/7", "[device]\nmanaged=true\n", Some(Manager::NetworkManager)),
            ("run/NetworkManager/devices/7", "[device]\nmanaged=false\n", None),
            ("run/NetworkManager/devices/8", "[device]\nmanaged=true\n", None),
            ("run/systemd/netif/links/7", "ADMIN_STATE=configuring\n", Some(Manager::Networkd)),
            ("run/systemd/netif/links/7", "ADMIN_STATE=unmanaged\n", None),
            ("run/network/ifstate", "lo=lo\neth1=eth1\n", Some(Manager::Ifupdown)),
            ("run/network/ifstate", "lo=lo\neth10=eth10\n", None),
            ("run/dhclient.eth1.pid", "17\n", None),
            ("run/dhclient.eth1.pid", "../17\n", None),
        ] {
            assert_eq!(of(file, content), expected, "{file}: {content}");
        }
        std::fs::create_dir_all(root.path().join("proc/17")).unwrap();
        std::fs::write(root.path().join("proc/17/comm"), "dhclient\n").unwrap();
        assert_eq!(of("run/dhclient.eth1.pid", "17\n"), Some(Manager::Dhclient));
    }

    #[test]
    fn a_refusal_names_the_manager_and_the_other_mode() {
        let refusal = Manager::NetworkManager.refusal("eth1");
        for part in ["eth1 is managed by NetworkManager", "mode = \"render\"", "/etc/NetworkManager/"] {
            assert!(refusal.contains(part), "{refusal}");
        }
    }
}
