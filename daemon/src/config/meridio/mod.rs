//! Front end for clients of Meridio: the section `[meridio]`, and the environment of Meridio's server.

mod environment;
mod go_duration;
#[cfg(feature = "meridio")]
mod section;
#[cfg(feature = "meridio")]
mod shown;

pub(super) use self::environment::MeridioEnvironment;
pub use self::environment::NAMES;
#[cfg(feature = "meridio")]
pub use self::section::MeridioSettings;
#[cfg(feature = "meridio")]
pub(super) use self::{section::FileMeridio, shown::rows};
