//! The store against upstream's suite, against crashes, and against a disk that lies.

mod backup;
mod check_journal;
mod damage;
mod directory;
mod files;
mod fixtures;
mod journal;
mod log;
mod rebuild;
mod rows;
mod sample;
mod snapshot;
mod suite;
