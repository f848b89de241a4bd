//! Exchange of one request for its response: over sockets, or over the network of a simulation.

use reqwest::{RequestBuilder, Response};

#[cfg(feature = "simulation")]
use super::server::Place;
use super::server::Server;
use super::{Miss, reason, unknown, was_not_let_in};

/// Network of a simulation.
#[cfg(feature = "simulation")]
pub trait Network: std::fmt::Debug + Send + Sync {
    /// Sends a request to the host of its URL, and returns the response once its headers have arrived.
    fn exchange(&self, request: reqwest::Request) -> Exchange<'_>;

    /// Sends a request to the server on a unix socket. Returns the response once its headers have arrived.
    fn exchange_over<'a>(&'a self, socket: &'a std::path::Path, request: reqwest::Request) -> Exchange<'a>;
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

#[cfg(feature = "simulation")]
thread_local! {
    /// Network of the simulation that runs on this thread.
    static NETWORK: std::cell::RefCell<Option<std::sync::Arc<dyn Network>>> =
        const { std::cell::RefCell::new(None) };
}

/// Makes each later client of this thread use the network of a simulation.
#[cfg(feature = "simulation")]
pub fn simulate(network: std::sync::Arc<dyn Network>) {
    NETWORK.set(Some(network));
}

/// Network of the simulation that runs on this thread, if one does.
#[cfg(feature = "simulation")]
pub(super) fn present() -> Option<std::sync::Arc<dyn Network>> {
    NETWORK.with_borrow(Clone::clone)
}

impl Server {
    /// Sends a request, and waits for the headers of its response.
    pub(super) async fn send(&self, request: RequestBuilder) -> Result<Response, Miss> {
        #[cfg(feature = "simulation")]
        if let Some(network) = &self.network {
            return simulated(network.as_ref(), &self.place, request).await;
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
async fn simulated(network: &dyn Network, place: &Place, request: RequestBuilder) -> Result<Response, Miss> {
    let request = request.build().map_err(|error| Miss::Unsent(reason(&error)))?;
    let limit = request.timeout().copied();
    let exchanged = async {
        let exchange = match place {
            Place::Network(_) => network.exchange(request),
            Place::Socket(path) => network.exchange_over(path, request),
        };
        let response = exchange.await.map_err(|lost| match lost {
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
