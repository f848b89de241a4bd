//! Real interfaces, through real main plugins, from a real cluster. Needs root, and the plugins of
//! containernetworking-plugins; where they are missing it fails with the install command.

mod containers;
mod dev;
mod lan;
mod probe;
mod probing;
mod silence;
pub(crate) mod wire;
