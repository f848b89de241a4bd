//! Tests of the network with real namespaces; they need root and `/dev/net/tun`.

mod faults;
mod rate;
mod reach;
mod remains;
mod support;
