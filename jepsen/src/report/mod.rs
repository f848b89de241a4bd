//! Report of stored runs: `results.json`, a summary as text, one self-contained page, and sums over many
//! runs.

mod aggregate;
mod availability;
mod checked;
mod counts;
mod latency;
mod page;
mod promise;
mod results;
mod text;
mod words;

pub use self::aggregate::{aggregate, read_all};
pub use self::availability::AvailabilityRow;
pub use self::checked::{Checked, run_checkers};
pub use self::counts::{FaultCount, OperationCount, PairCount};
pub use self::latency::Latency;
pub use self::page::page;
pub use self::promise::{PromiseResult, PromiseVerdict};
pub use self::results::{RESULTS, Results, Validity, results};
pub use self::text::text;
