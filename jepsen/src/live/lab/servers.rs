//! Endpoints of the cluster for the clients on one host.

use std::sync::Arc;

use anyhow::Result;
use ipam_api::client::{Client, Options};

use crate::workload::{Server, Servers};

/// URLs of the founding members, and the credentials of clients.
#[derive(Debug, Clone)]
pub struct Endpoints {
    /// Names and URLs.
    pub urls: Vec<(String, String)>,
    /// CA and token.
    pub options: Options,
}

impl Endpoints {
    /// A client of all members.
    ///
    /// # Errors
    /// If a file of the credentials can't be used.
    pub fn all(&self) -> Result<Client> {
        let urls: Vec<&str> = self.urls.iter().map(|(_, url)| url.as_str()).collect();
        Ok(Client::with(&urls, &self.options)?)
    }

    /// Servers for one session.
    ///
    /// # Errors
    /// If a file of the credentials can't be used.
    pub fn servers(&self) -> Result<Servers> {
        let mut each: Vec<(String, Arc<dyn Server>)> = Vec::new();
        for (name, url) in &self.urls {
            each.push((name.clone(), Arc::new(Client::with(&[url], &self.options)?)));
        }
        Ok(Servers { all: Arc::new(self.all()?), each })
    }
}
