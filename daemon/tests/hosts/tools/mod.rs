//! Rendered files, read and applied by the real network managers in namespaces of their own.

mod cloud_init;
mod command;
mod ifupdown;
mod netplan;
mod networkd;
mod networkmanager;
mod nmstate;
mod observed;
mod policies;
mod room;
