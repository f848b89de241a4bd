//! Routes that a request specifies for its interfaces.

use ipam_api::name::InterfaceName;
use ipam_api::resource::Route;
use serde::{Deserialize, Serialize};

/// Routes that a request specifies for its interfaces.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Routing {
    /// Further routes: each belongs to the interface whose subnet contains its gateway.
    pub routes: Vec<Route>,
    /// Interfaces without default routes through their gateways.
    pub clean: Vec<InterfaceName>,
    /// The only interface with a default route, if set.
    pub default_interface: Option<InterfaceName>,
}

impl Routing {
    /// Returns true if no route is specified.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.routes.is_empty() && self.clean.is_empty() && self.default_interface.is_none()
    }

    /// Returns true if an interface has no default routes through its gateways.
    #[must_use]
    pub fn is_clean(&self, interface: &InterfaceName) -> bool {
        self.clean.contains(interface)
            || self.default_interface.as_ref().is_some_and(|only| only != interface)
    }
}

/// Routes of an allocation, from its request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouteConfig {
    /// Routes through the subnet of the allocation.
    pub routes: Vec<Route>,
    /// True if no default route through the gateway is configured.
    pub clean_gateway: bool,
}
