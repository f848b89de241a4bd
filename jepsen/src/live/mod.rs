//! Live system: real processes in network namespaces that a switch joins, with disks whose power can be cut.

pub(crate) mod boot_id;
mod disk;
pub mod lab;
pub(crate) mod log;
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
