//! History of a run: operations of clients and faults, in the order in which they began and ended.
//!
//! The history is the only interface between the parts: workloads and nemeses write it, checkers and reports
//! read it.

mod edn;
mod endpoint;
mod operation;
mod process;
mod recorder;

pub use self::edn::write_edn;
pub use self::endpoint::endpoint_name;
pub use self::operation::{Function, Grant, Operation, Type, Value};
pub use self::process::Process;
pub use self::recorder::{Invocation, Recorder};
