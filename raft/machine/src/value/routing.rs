//! Routes that a request asks for on its interfaces.

use ipam_api::name::InterfaceName;
use ipam_api::resource::Route;
use serde::{Deserialize, Serialize};

/// Routes that a request asks for on its interfaces.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Routing {
    /// Further routes: each is of the interface in whose subnet its gateway is.
    pub routes: Vec<Route>,
    /// Interfaces whose gateways get no default route.
    pub clean: Vec<InterfaceName>,
    /// The one interface whose gateways get one, if no other's shall.
    pub default_interface: Option<InterfaceName>,
}

impl Routing {
    /// True if it says nothing.
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

/// Routes of an allocation, as its request said.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouteConfig {
    /// Routes of its own, through its subnet.
    pub routes: Vec<Route>,
    /// True if its gateway gets no default route.
    pub clean_gateway: bool,
}
