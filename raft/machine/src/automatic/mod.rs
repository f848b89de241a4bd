//! Automatic pools: pools that a request makes for its application out of a subnet's addresses that no pool has.
//!
//! An application has one for each of its interfaces and families; nobody else takes from them. They are found by what
//! makes the application's endpoints, grow and shrink with what its requests say, and go or stay when it ends.

mod bound;
mod end;
mod plan;
mod resize;
mod unassigned;
