//! Provider of Cluster API, in the leader of real members and in a process of its own: the lines of
//! `integrations.md` §C5.

mod claims;
mod deletion;
mod hostile;
mod invariants;
mod kills;
mod management;
mod moves;
mod outages;
mod page;
mod paused;
mod process;
mod references;
mod requested;
mod scale;
mod scene;
mod sections;
mod status;
mod vectors;
mod versions;
mod waiting;
