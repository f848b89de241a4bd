//! Full, failing, stalled and lying disks: real members, each on a small file system of its own.
//!
//! Needs root, loop devices, `mount` and `mkfs.ext4`. Which fault is shown by which test stands in
//! `deploy/docs/disk-faults.md`.

mod agent;
mod damaged;
mod failing;
mod full;
mod image;
mod matrix;
mod scene;
mod stalled;
