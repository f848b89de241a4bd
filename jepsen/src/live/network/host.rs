//! Host: a network namespace with one device `eth0`, and the means to run programs and tasks in it.

use std::ffi::OsStr;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio_tun::{Tun, TunBuilder};

use super::namespace::Namespace;

/// Device that is connected to the switch.
const DEVICE: &str = "eth0";
/// Smallest number that belongs to the addresses of workloads, 10.77.128.0/17.
const RESERVED: u16 = 0x8000;

/// One host of the network.
#[derive(Debug)]
pub struct Host {
    /// Name.
    pub name: String,
    /// Address in 10.77.0.0/16.
    pub ipv4: Ipv4Addr,
    /// Address in fd77::/64.
    pub ipv6: Ipv6Addr,
    namespace: Namespace,
}

impl Host {
    /// Makes the namespace with its device and addresses, and opens the device in the runtime of the switch.
    pub(super) fn make(name: &str, number: u16, switch: &Handle) -> Result<(Self, Arc<Tun>)> {
        if number == 0 || number >= RESERVED {
            bail!("{name}: the number of a host is between 1 and {}", RESERVED - 1);
        }
        let [high, low] = number.to_be_bytes();
        let host = Self {
            name: name.to_owned(),
            ipv4: Ipv4Addr::new(10, 77, high, low),
            ipv6: Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, number),
            namespace: Namespace::make()?,
        };
        let tap = host.namespace.within(|| {
            quiet()?;
            let _runtime = switch.enter();
            TunBuilder::new().name(DEVICE).tap().close_on_exec().build().context("no TAP device")
        })?;
        let tap = tap.into_iter().next().context("no TAP device")?;
        let Self { ipv4, ipv6, .. } = &host;
        let script = format!(
            "link set lo up\n\
             link set {DEVICE} address 02:00:00:77:{high:02x}:{low:02x} txqueuelen 4096 up\n\
             addr add {ipv4}/16 brd + dev {DEVICE}\n\
             addr add {ipv6}/64 dev {DEVICE} nodad\n"
        );
        host.namespace.call("ip", &["-batch", "-"], &script).with_context(|| name.to_owned())?;
        Ok((host, Arc::new(tap)))
    }

    /// Removes the device, even if another process has inherited its file for a moment.
    pub(super) fn disconnect(&self) {
        // The end of the namespace may have removed the device already.
        let _gone = self.namespace.call("ip", &["link", "delete", DEVICE], "");
    }

    /// Path of the namespace for `nsenter --net=` and `setns`, valid as long as this value exists.
    #[must_use]
    pub fn netns(&self) -> &Path {
        self.namespace.path()
    }

    /// Command that runs a program inside; its process id is that of the program.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut net = std::ffi::OsString::from("--net=");
        net.push(self.netns());
        let mut command = Command::new("nsenter");
        command.arg(net).arg("--").arg(program);
        command
    }

    /// Moves the calling thread into the namespace for good.
    ///
    /// # Errors
    /// Without the rights of root.
    pub fn enter(&self) -> Result<()> {
        self.namespace.enter()
    }

    /// Runs work inside, on a thread of its own, and waits for it.
    ///
    /// A child that it starts with a parent-death signal ends with this thread; use [`Self::command`] for it.
    ///
    /// # Errors
    /// The error of the work, or missing rights.
    pub fn within<T: Send>(&self, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
        self.namespace.within(work)
    }

    /// Runtime whose threads are inside, so that sockets and children of its tasks belong to the host.
    ///
    /// `block_on` polls its future on the calling thread, which is outside: pass it the handle of a spawned
    /// task. A thread that can't enter ends the process, because its traffic would leave the network.
    ///
    /// # Errors
    /// If the runtime has no threads.
    pub fn runtime(&self, threads: usize) -> Result<Runtime> {
        let namespace = self.namespace.clone();
        Builder::new_multi_thread()
            .worker_threads(threads)
            .thread_name(format!("host-{}", self.name))
            .on_thread_start(move || {
                if let Err(error) = namespace.enter() {
                    eprintln!("{error:#}");
                    std::process::abort();
                }
            })
            .enable_all()
            .build()
            .with_context(|| format!("{}: no runtime", self.name))
    }

    /// Runs a shell script inside, with `sh -e`, and returns its output.
    ///
    /// # Errors
    /// If it fails, with its error output.
    pub fn run(&self, script: &str) -> Result<String> {
        self.namespace.call("sh", &["-ec", script], "").with_context(|| self.name.clone())
    }
}

/// Turns off the automatic IPv6 configuration of new devices of the calling thread's namespace.
fn quiet() -> Result<()> {
    let settings =
        [("accept_dad", "0"), ("accept_ra", "0"), ("router_solicitations", "0"), ("autoconf", "0")];
    for (name, value) in settings {
        let path = format!("/proc/sys/net/ipv6/conf/default/{name}");
        std::fs::write(&path, value).with_context(|| path)?;
    }
    Ok(())
}
