//! IPAM provider of Cluster API: it serves the claims of a management cluster with addresses of the servers.

mod claim_step;
mod claims;
mod compare;
mod failure;
mod grant;
mod index;
mod pauses;
mod pool_apply;
mod pool_step;
mod pools;
mod queue;
mod run;
mod settings;
mod shared;
mod status;
mod streams;
mod views;
mod waiting;

pub use self::run::provide;
pub use self::settings::ProviderSettings;
pub use self::status::{ProviderCounts, ProviderStatus};
