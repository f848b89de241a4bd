//! Routes of prefixes.

use ipam_api::Code;
use ipam_api::access::{Target, Verb};

use super::route::{Access, Handled, Route};
use crate::http::allocation::{prefix, prefix_list};
use crate::http::list::show_by_id;

pub(super) fn routes() -> [Handled; 5] {
    let item = "/v1/prefixes/{id}";
    [
        Route::list::<prefix_list::Prefixes>("Lists prefixes, oldest first.", "PrefixPage"),
        Route::post(
            "/v1/prefixes",
            (Verb::Allocate, Target::Prefix),
            "Delegates the lowest free aligned block of a length, or renews the prefix of this owner. \
             With `wait`, the request waits while no block is free.",
        )
        .takes("DelegateRequest")
        .json(200, "Delegated")
        .json(201, "Delegated")
        .json(202, "Delegated")
        .refuses(&[
            Code::NotFound,
            Code::AlreadyExists,
            Code::PoolExhausted,
            Code::NoPoolFits,
            Code::PoolDisabled,
            Code::Terminating,
            Code::EpochUnconfirmed,
            Code::InUse,
        ])
        .to(prefix::delegate),
        Route::new(
            "PUT",
            "/v1/prefixes",
            Access::Permission(Verb::Allocate, Target::Prefix),
            "Delegates exactly these prefixes, and releases all others of the realm that are cut from the \
             same pool or prefix. Needs the permission to release prefixes, too.",
        )
        .takes("SetPrefixesRequest")
        .json(200, "PrefixesSet")
        .refuses(&[Code::NotFound, Code::AlreadyExists, Code::PoolExhausted, Code::NoPoolFits])
        .to(prefix::set),
        Route::one(item, Target::Prefix, "Shows a prefix.", "Prefix").to(show_by_id::<prefix_list::Prefixes>),
        Route::delete(
            item,
            (Verb::Release, Target::Prefix),
            "Releases a prefix and all prefixes below it, or withdraws a waiting request.",
        )
        .json(200, "PrefixReleased")
        .refuses(&[Code::NotFound])
        .to(prefix::release),
    ]
}
