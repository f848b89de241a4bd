//! What can be asked about prefixes.

use ipam_api::Code;
use ipam_api::access::{Target, Verb};

use super::parameters::{fresh, of_list};
use super::route::{Access, OF_LISTS, OF_READS, Route};

pub(super) fn routes() -> [Route; 4] {
    let (all, item) = ("/v1/prefixes", "/v1/prefixes/{id}");
    [
        Route::get(all, Target::Prefix, "Lists prefixes, the oldest first.")
            .query(of_list(&crate::http::allocation::prefix::SHAPE))
            .json(200, "PrefixPage")
            .refuses(OF_LISTS),
        Route::new(
            "POST",
            all,
            Access::Deed(Verb::Allocate, Target::Prefix),
            "Delegates the lowest free aligned block of a length, or refreshes the one that the owner has.",
        )
        .takes("DelegateRequest")
        .json(200, "Delegated")
        .json(201, "Delegated")
        .refuses(&[
            Code::NotFound,
            Code::AlreadyExists,
            Code::PoolExhausted,
            Code::NoPoolFits,
            Code::PoolDisabled,
            Code::Terminating,
            Code::GenerationUnconfirmed,
            Code::InUse,
        ]),
        Route::get(item, Target::Prefix, "Shows a prefix.")
            .query(fresh())
            .json(200, "Prefix")
            .refuses(OF_READS),
        Route::new(
            "DELETE",
            item,
            Access::Deed(Verb::Release, Target::Prefix),
            "Takes a prefix back, with everything below it.",
        )
        .json(200, "PrefixReleased")
        .refuses(&[Code::NotFound]),
    ]
}
