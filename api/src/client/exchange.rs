//! Exchange of one request for its response: over sockets, or over the network of a simulation.

use reqwest::{RequestBuilder, Response};

use super::server::Server;
use super::{Miss, reason, unknown, was_not_let_in};

/// Network of a simulation.
#[cfg(feature = "simulation")]
pub trait Network: std::fmt::Debug + Send + Sync {
    /// Sends a request to the host of its URL, and returns the response once its headers have arrived.
    fn exchange(&self, request: reqwest::Request) -> Exchange<'_>;
}

/// Future of the response to a request.
#[cfg(feature = "simulation")]
pub type Exchange<'a> =
    std::pin::Pin<Box<dyn Future<Output = Result<http::Response<reqwest::Body>, Lost>> + Send + 'a>>;

/// Failure of an exchange.
#[cfg(feature = "simulation")]
#[derive(Debug)]
pub enum Lost {
    /// The request was not sent.
    Unsent(String),
    /// The request was sent, and its response did not arrive.
    Unanswered(String),
}

impl Server {
    /// Sends a request, and waits for the headers of its response.
    pub(super) async fn send(&self, request: RequestBuilder) -> Result<Response, Miss> {
        #[cfg(feature = "simulation")]
        if let Some(network) = &self.network {
            return simulated(network.as_ref(), request).await;
        }
        request.send().await.map_err(|error| {
            if error.is_connect() || error.is_builder() || was_not_let_in(&error) {
                Miss::Unsent(reason(&error))
            } else {
                unknown(&error)
            }
        })
    }
}

#[cfg(feature = "simulation")]
async fn simulated(network: &dyn Network, request: RequestBuilder) -> Result<Response, Miss> {
    let request = request.build().map_err(|error| Miss::Unsent(reason(&error)))?;
    let limit = request.timeout().copied();
    let exchanged = async {
        let response = network.exchange(request).await.map_err(|lost| match lost {
            Lost::Unsent(why) => Miss::Unsent(why),
            Lost::Unanswered(why) => Miss::Unknown { why, is_silent: false },
        })?;
        // As in reqwest, the time limit of a request includes the body of the response. A stream has no
        // limit.
        if limit.is_some() { whole(response.into()).await } else { Ok(response.into()) }
    };
    match tokio::time::timeout(limit.unwrap_or(std::time::Duration::MAX), exchanged).await {
        Ok(exchanged) => exchanged,
        Err(_) => Err(Miss::Unknown { why: "timed out".to_owned(), is_silent: true }),
    }
}

/// Returns the response with its whole body.
#[cfg(feature = "simulation")]
async fn whole(response: Response) -> Result<Response, Miss> {
    let (status, headers) = (response.status(), response.headers().clone());
    let mut whole = http::Response::new(response.bytes().await.map_err(|error| unknown(&error))?);
    (*whole.status_mut(), *whole.headers_mut()) = (status, headers);
    Ok(whole.into())
}
