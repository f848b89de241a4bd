//! Clusters as systems under test, to which nemeses apply faults.

use anyhow::Result;
use futures::future::BoxFuture;

use super::Cluster;
use super::recovery::{heal, inject};
use super::view::view;
use crate::nemesis::{Fault, System, View};

impl<C: Cluster> System for C {
    fn view(&mut self) -> BoxFuture<'_, View> {
        Box::pin(view(self))
    }

    fn inject<'a>(&'a mut self, fault: &'a Fault) -> BoxFuture<'a, Result<Vec<String>>> {
        Box::pin(inject(self, fault))
    }

    fn heal<'a>(&'a mut self, fault: &'a Fault) -> BoxFuture<'a, Result<Vec<String>>> {
        Box::pin(heal(self, fault))
    }
}
