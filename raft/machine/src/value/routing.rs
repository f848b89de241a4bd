//! Routes that a request specifies for its interfaces.

use ipam_api::name::InterfaceName;
use ipam_api::resource::Route;
use serde::{Deserialize, Serialize};

/// Routes that a request specifies for its interfaces.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Routing {
    /// Further routes: each belongs to the interface whose subnet contains its gateway.
    pub routes: Vec<Route>,
    /// Interfaces whose gateways get no default route.
    pub clean: Vec<InterfaceName>,
    /// The only interface with a default route, if set.
    pub default_interface: Option<InterfaceName>,
}

impl Routing {
    /// True if it specifies nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.routes.is_empty() && self.clean.is_empty() && self.default_interface.is_none()
    }

    /// True if an interface's gateways get no default route.
    #[must_use]
    pub fn is_clean(&self, interface: &InterfaceName) -> bool {
        self.clean.contains(interface)
            || self.default_interface.as_ref().is_some_and(|only| only != interface)
    }
}

/// Routes of an allocation, from its request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouteConfig {
    /// Routes of its own, through its subnet.
    pub routes: Vec<Route>,
    /// True if its gateway gets no default route.
    pub clean_gateway: bool,
}
