//! Allocations and their holders: endpoints, attachments, prefixes, controllers.

pub(super) mod address;
pub(super) mod allocate;
pub(super) mod attachment;
pub(super) mod automatic;
pub(super) mod bulk;
pub(super) mod configuration;
pub(super) mod controller;
pub(super) mod endpoint;
pub(super) mod explain;
pub(super) mod lease;
pub(super) mod prefix;
pub(super) mod prefix_list;
