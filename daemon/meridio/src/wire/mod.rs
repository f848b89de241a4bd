//! Messages and services of the wire contracts, compiled from `proto/`. `tests/wire.rs` compares them.

#![allow(
    missing_docs,
    clippy::all,
    clippy::allow_attributes_without_reason,
    unreachable_pub,
    unused_qualifications,
    reason = "generated"
)]

pub mod ipam {
    #[rustfmt::skip]
    pub mod v1;
}

pub mod nsp {
    #[rustfmt::skip]
    pub mod v1;
}
