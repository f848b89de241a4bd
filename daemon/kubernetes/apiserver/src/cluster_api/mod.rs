//! Definitions of Cluster API with their webhooks: conversion and admission, written from the contract.

mod admission;
mod conversion;
mod definitions;
mod schemas;
mod serve;
mod versions;

pub(crate) use self::admission::review;
pub(crate) use self::conversion::{convert, converts};
pub(crate) use self::serve::serve;
pub use self::versions::{ClusterApi, ClusterApiVersion};
