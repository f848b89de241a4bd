//! `ipam-jepsen matrix`: a campaign of runs that can be interrupted and continued.
