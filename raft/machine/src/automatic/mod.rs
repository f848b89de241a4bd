//! Automatic pools: pools that requests create for their applications.

mod bound;
mod end;
mod plan;
mod pools;
mod resize;
mod spare;
