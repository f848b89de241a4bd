//! Host policies: desired states of network managers, rendered per node with addresses of pools.
//!
//! Pure: it decides nothing about allocation, and reads no state.

mod assign;
mod max_unavailable;
mod policy;
mod reference;
mod request;
mod requests;
mod resolve;
#[cfg(test)]
mod tests;
mod validate;
mod walk;

pub use max_unavailable::MaxUnavailable;
pub use policy::{HostPolicy, HostPolicyInterface, HostPolicyStatus};
pub use reference::pool_of;
pub use request::{HostPolicyReset, RenderHostPolicy, RenderedHostPolicy, ResetHostPolicy};
pub use requests::interface_requests;
pub use resolve::{Resolved, resolve};
