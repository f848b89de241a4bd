//! `ipam-jepsen suite`: the runs of the tests.
