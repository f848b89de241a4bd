//! Automatic pools: created by requests for their application from unassigned addresses of a subnet.
//!
//! An application has one for each of its interfaces and families, and no other application uses it. They are
//! found by the controller, grow and shrink with its requests, and end or stay with the application.

mod bound;
mod end;
mod plan;
mod resize;
mod unassigned;
