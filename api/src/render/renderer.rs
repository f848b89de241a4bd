//! Entry point of all renderers.

use super::file::{RenderError, RenderedFile};
use super::format::Format;
use super::plan::Plan;
use super::{cloud_init, ifupdown, netplan, networkd, networkmanager, nmstate};
use crate::resource::Interface;

/// Renders the files of a format for all interfaces of an endpoint.
///
/// # Errors
/// The reason, if the format cannot express an interface.
pub fn render(format: Format, interfaces: &[Interface]) -> Result<Vec<RenderedFile>, RenderError> {
    let plan = Plan::of(interfaces)?;
    match format {
        Format::Netplan => netplan::files(&plan),
        Format::Networkd => networkd::files(&plan),
        Format::Ifupdown => ifupdown::files(&plan),
        Format::Nmstate => nmstate::files(&plan),
        Format::Networkmanager => networkmanager::files(&plan),
        Format::CloudInit => cloud_init::files(&plan),
    }
}
