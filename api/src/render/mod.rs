//! Configuration files of host network managers, rendered from the addresses of an endpoint.
//!
//! Pure: it reads no host and writes no file. One source file per format. The feature `render` has the
//! renderers; the types of their output are always there.

#[cfg(feature = "render")]
mod check;
#[cfg(feature = "render")]
mod cloud_init;
mod file;
mod format;
#[cfg(feature = "render")]
mod ifupdown;
#[cfg(feature = "render")]
mod netplan;
#[cfg(feature = "render")]
mod networkd;
#[cfg(feature = "render")]
mod networkmanager;
#[cfg(feature = "render")]
mod nmstate;
#[cfg(feature = "render")]
mod plan;
#[cfg(feature = "render")]
mod renderer;
#[cfg(test)]
#[cfg(feature = "render")]
mod tests;
#[cfg(feature = "render")]
mod vlan;
#[cfg(feature = "render")]
mod yaml;

pub use file::{HostConfiguration, RenderError, RenderedFile};
pub use format::Format;
#[cfg(feature = "render")]
pub use renderer::render;
#[cfg(feature = "render")]
pub use vlan::vlan_device;
