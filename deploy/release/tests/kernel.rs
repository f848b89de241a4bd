//! Host with a kernel of its own, in an emulated machine: boot, power cut, shutdown. A daily run leaves this
//! test out (`.config/nextest.toml`), because emulation of a processor is slow.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use tempfile::TempDir;

use crate::cluster::{CONTAINERS, certificates, settings};
use crate::host::Host;
use crate::prepared;

const NAME: &str = "n1";
const ADMIN: &str = "ipamctl --server unix:/run/ipamd/server/ipamd.sock";

/// Shell of root on the second serial port, which has no other user.
const SHELL: &str = "[Unit]
Description=Shell of root on the second serial port
[Service]
ExecStartPre=/bin/stty -F /dev/ttyS1 raw -echo
ExecStart=/bin/bash -c 'echo shell; exec bash'
StandardInput=file:/dev/ttyS1
StandardOutput=file:/dev/ttyS1
StandardError=journal
[Install]
WantedBy=multi-user.target
";

/// Disk with Debian and its kernel, without packages of ipamd, and the output of its boots.
struct Disk {
    dir: TempDir,
}

impl Disk {
    fn new() -> Self {
        let host = Host::on(prepared("IPAMD_KERNEL_BASE"));
        host.write("etc/fstab", "/dev/vda / ext4 defaults 0 1\n");
        host.write("etc/hostname", &format!("{NAME}\n"));
        host.write("etc/hosts", &format!("127.0.0.1 localhost {NAME}\n"));
        host.write("etc/systemd/system/shell.service", SHELL);
        host.does("systemctl enable shell.service 2>&1");
        let disk = Self { dir: tempfile::tempdir().unwrap() };
        host.write_disk(&disk.file("disk.img"));
        disk
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Output of the last boot.
    fn console(&self) -> String {
        let bytes = std::fs::read(self.file("console.log")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// Machine that runs. Dropping the value is a power cut: writes that were not synchronized are lost.
struct Machine<'a> {
    disk: &'a Disk,
    emulator: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl<'a> Machine<'a> {
    /// Boots from the disk, without a network adapter, until the shell answers.
    fn boot(disk: &'a Disk) -> Self {
        let boot = prepared("IPAMD_KERNEL_BASE").join("boot");
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "qemu-system-x86_64", "-nodefaults", "-no-reboot"]);
        command.args(["-machine", "q35", "-cpu", "max", "-smp", "2", "-m", "1G", "-display", "none"]);
        command.arg("-kernel").arg(only(&boot, "vmlinuz-")).arg("-initrd").arg(only(&boot, "initrd.img-"));
        command.args(["-append", "root=/dev/vda rw console=ttyS0 systemd.journald.forward_to_console=1"]);
        command.arg("-drive").arg(format!("file={},format=raw,if=virtio", disk.file("disk.img").display()));
        command.arg("-serial").arg(format!("file:{}", disk.file("console.log").display()));
        command.args(["-serial", "stdio"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut emulator = command.spawn().unwrap();
        let input = emulator.stdin.take().unwrap();
        let output = BufReader::new(emulator.stdout.take().unwrap());
        let mut machine = Self { disk, emulator, input, output };
        assert_eq!(machine.line(), "shell\n", "{}", disk.console());
        machine.does("systemctl is-system-running --wait");
        machine
    }

    /// Next line from the shell; empty after the end of the machine.
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line
    }

    /// Runs a script that must succeed; returns its output.
    fn does(&mut self, script: &str) -> String {
        // The end of a script has a line of its own, also after output that ends within a line.
        let shell = "bash -euo pipefail /dev/fd/3 3<<'SCRIPT' < /dev/null 2>&1";
        write!(self.input, "{shell}\n{script}\nSCRIPT\nprintf '\\nstatus %d\\n' $?\n").unwrap();
        let mut said = String::new();
        loop {
            let line = self.line();
            if let Some(status) = line.strip_prefix("status ") {
                assert_eq!(status, "0\n", "{script}: {said}\n{}", self.disk.console());
                return said;
            }
            assert!(!line.is_empty(), "{script}: the machine ended: {said}\n{}", self.disk.console());
            said += &line;
        }
    }

    fn write(&mut self, path: &str, content: &str) {
        self.does(&format!("cat > {path} <<'CONTENT'\n{content}\nCONTENT"));
    }

    /// Shuts the machine down; returns all output of its services.
    fn shut_down(mut self) -> String {
        self.input.write_all(b"systemctl poweroff\n").unwrap();
        assert!(self.emulator.wait().unwrap().success(), "{}", self.disk.console());
        self.disk.console()
    }
}

impl Drop for Machine<'_> {
    fn drop(&mut self) {
        let _ended = self.emulator.kill().and_then(|()| self.emulator.wait());
    }
}

/// The only file of a directory whose name begins so.
fn only(dir: &Path, begins: &str) -> PathBuf {
    let names =
        std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let found: Vec<String> = names.filter(|name| name.starts_with(begins)).collect();
    assert_eq!(found.len(), 1, "{found:?}");
    dir.join(&found[0])
}

/// Installs the packages by `deploy/docs/packages.md`, and starts a cluster of one member with its node.
fn install(machine: &mut Machine<'_>) {
    machine.does("dpkg --install /packages/ipamd.deb /packages/ipam-agent.deb");
    let files = certificates(&[NAME]);
    let names = [("n1.member.crt", "member.crt"), ("n1.member.key", "member.key"), ("ca.crt", "ca.crt")];
    for (file, at) in names {
        let content = std::fs::read_to_string(files.path().join("ca").join(file)).unwrap();
        machine.write(&format!("/etc/ipamd/tls/{at}"), &content);
    }
    machine.does("chown root:ipamd /etc/ipamd/tls/* && chmod 640 /etc/ipamd/tls/*");
    machine.write("/etc/ipamd/ipamd.toml", &settings(NAME, &[NAME]));
    machine.does("ipamd check-config && systemctl start ipamd");
    machine.does(&format!(
        "{ADMIN} status --wait 2m
         {ADMIN} subnet create lan --cidr 10.10.0.0/16 --gateway 10.10.0.1
         {ADMIN} pool create web --subnet lan --range 10.10.0.10-10.10.0.250
         {ADMIN} token node --ttl 1h --node default/{NAME} --to-file /etc/ipamd/join.token"
    ));
    machine.write(
        "/etc/ipamd/agent.toml",
        "servers = [\"https://n1:7440\"]\nca_file = \"/etc/ipamd/tls/ca.crt\"\n\
         join_token_file = \"/etc/ipamd/join.token\"",
    );
    machine.write("/root/lan.conf", CONTAINERS);
    // The shell does not sync the files that it writes, as an editor would.
    machine.does("sync && systemctl start ipam-agent");
}

/// Attaches a container through Debian's `bridge` and the plugin of the package; returns its address.
fn attach(machine: &mut Machine<'_>, container: &str) -> String {
    machine.does(
        "for try in {1..120}; do ipam-agent doctor > /dev/null && exit; sleep 1; done; ipam-agent doctor",
    );
    machine.does(&format!(
        "ip netns add {container}
         export CNI_COMMAND=ADD CNI_IFNAME=eth0 CNI_PATH=/usr/lib/cni
         export CNI_CONTAINERID={container} CNI_NETNS=/run/netns/{container}
         /usr/lib/cni/bridge < /root/lan.conf"
    ));
    let said = machine.does(&format!("ip netns exec {container} ip -brief -4 address show eth0"));
    said.split_whitespace().find_map(|word| word.strip_suffix("/16")).unwrap().to_owned()
}

#[test]
fn p5_a_host_boots_its_services_and_a_power_cut_loses_no_acknowledged_write() {
    let disk = Disk::new();
    let mut machine = Machine::boot(&disk);
    install(&mut machine);
    let first = attach(&mut machine, "c1");
    machine.does(&format!("{ADMIN} pool create last --subnet lan --range 10.10.1.0/24"));
    drop(machine);

    let mut machine = Machine::boot(&disk);
    machine.does("systemctl is-active ipamd && systemctl is-active ipam-agent");
    machine.does(&format!("{ADMIN} status --wait 2m && {ADMIN} pool show last"));
    let holder = machine.does(&format!("{ADMIN} who-has {first}"));
    assert!(holder.contains("c1"), "{holder}");
    assert_ne!(attach(&mut machine, "c2"), first);
    let console = machine.shut_down();
    for unit in ["ipamd.service", "ipam-agent.service"] {
        assert!(console.contains(&format!("{unit}: Deactivated successfully.")), "{unit}: {console}");
    }
}
