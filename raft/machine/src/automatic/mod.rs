//! Automatic pools: created by requests for their application from unassigned addresses of a subnet.
//!
//! Each pool serves one interface and one family of one application, which its controller identifies. The
//! pool grows and shrinks with the application's requests. When the application ends, the pool is deleted or
//! kept for a successor.

mod bound;
mod end;
mod plan;
mod resize;
mod unassigned;
