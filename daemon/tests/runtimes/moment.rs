//! Moments in a run of a CNI plugin at which a test stops it (`stop.sh`).

use std::fs;
use std::path::{Path, PathBuf};

/// Plugins that can be stopped: the main plugin, and the one under test that it calls.
pub(crate) const PLUGINS: [&str; 2] = ["bridge", "ipam-cni"];

/// One moment of an operation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    verb: &'static str,
    plugin: &'static str,
    when: &'static str,
}

/// Moments of an operation in their order: nothing is done; the main plugin has begun; an address is
/// allocated or released, and the main plugin doesn't know; all is done, and the runtime doesn't know.
pub(crate) fn moments(verb: &'static str) -> [Moment; 4] {
    let [main, ipam] = PLUGINS;
    [(main, "before"), (ipam, "before"), (ipam, "after"), (main, "after")].map(|(plugin, when)| Moment {
        verb,
        plugin,
        when,
    })
}

/// The start of the plugin under test for a DEL.
pub(crate) fn before_del() -> Moment {
    let [_, plugin] = PLUGINS;
    Moment { verb: "DEL", plugin, when: "before" }
}

impl Moment {
    /// Orders the next run that gets here to stop.
    pub(crate) fn order(self, orders: &Path) -> Order {
        let Self { verb, plugin, when } = self;
        fs::write(orders.join(format!("{plugin}-{verb}-{when}")), "").unwrap();
        Order { reached: orders.join("reached") }
    }
}

/// Order to one run. Only one can be stopped at a time.
pub(crate) struct Order {
    reached: PathBuf,
}

impl Order {
    /// Returns true once the run has stopped.
    pub(crate) fn is_reached(&self) -> bool {
        self.reached.exists()
    }
}

/// The run goes on, if it still lives.
impl Drop for Order {
    fn drop(&mut self) {
        let removed = fs::remove_file(&self.reached);
        assert!(removed.is_ok() || std::thread::panicking(), "nothing was stopped");
    }
}
