//! Tests of the network with real namespaces; they need root and `/dev/net/tun`.

mod faults;
mod reach;
mod remains;
mod support;
