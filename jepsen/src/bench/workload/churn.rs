//! Allocation and release of one address in turn; each is one operation.

use std::net::SocketAddr;

use anyhow::{Context as _, Result};

use super::allocate::{ALLOCATIONS, Allocate, answer};
use crate::bench::load::{Answer, Call, Client};
use crate::bench::wire::request;

/// Client that holds at most one address.
#[derive(Debug)]
pub(in crate::bench) struct Churn {
    allocate: Allocate,
    server: SocketAddr,
    held: Option<u64>,
}

impl Churn {
    /// Client of a server that allocates from one pool.
    pub(in crate::bench) fn new(server: SocketAddr, pool: &str) -> Self {
        Self { allocate: Allocate::new(server, &[pool]), server, held: None }
    }

    async fn step(&mut self) -> Result<Answer> {
        if let Some(id) = self.held {
            let bytes = request("DELETE", self.server, &format!("{ALLOCATIONS}/{id}"), "");
            let done = answer(&self.allocate.connection().exchange(&bytes).await?, 1)?;
            if matches!(done, Answer::Done(_)) {
                self.held = None;
            }
            return Ok(done);
        }
        let response = self.allocate.allocate().await?;
        let done = answer(&response, 1)?;
        if matches!(done, Answer::Done(_)) {
            self.held = Some(allocation_id(response.body).context("an answer without an allocation")?);
        }
        Ok(done)
    }
}

impl Client for Churn {
    fn call(&mut self) -> Call<'_> {
        Box::pin(self.step())
    }
}

/// Id of the first allocation in an answer. A search costs less than a JSON parser.
fn allocation_id(body: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(body).ok()?;
    let (_, rest) = text.split_once("\"allocation\":")?;
    let digits = rest.split(|character: char| !character.is_ascii_digit()).next()?;
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_the_first_allocation_is_found() {
        let body =
            br#"{"interfaces":[{"addresses":[{"pool":"a","allocation":1099511627781,"checked":false}]}]}"#;
        assert_eq!(allocation_id(body), Some(1_099_511_627_781));
        assert_eq!(allocation_id(br#"{"allocation":null}"#), None);
    }
}
