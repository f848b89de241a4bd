//! Cluster API: its kinds in both versions, their webhooks, and the life of claims and addresses.

mod admission;
mod conversion;
mod lifecycle;
mod objects;
mod schemas;
mod versions;
