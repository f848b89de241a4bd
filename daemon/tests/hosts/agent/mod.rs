//! Agents that configure the interfaces of their hosts, in network namespaces.

mod kills;
mod managers;
mod outage;
mod rack;
mod reboots;
mod reinstalled;
mod rollback;
mod settings;
mod simultaneous;
