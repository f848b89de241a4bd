//! Live system: real processes in network namespaces that a switch joins, with disks whose power can be cut.

mod disk;
pub mod lab;
pub mod network;
pub mod node;
pub mod preflight;
pub mod run;
mod tools;
mod work_dir;

pub(crate) use self::disk::Disk;
pub(crate) use self::tools::Tools;
pub(crate) use self::work_dir::WorkDir;
pub use self::work_dir::enter;
pub(crate) use crate::nemesis::Cut;
