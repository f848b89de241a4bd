//! Operations of the REST API that the watcher uses.

use std::future::Future;
use std::sync::Arc;

use ipam_api::client::{Answer, Call, Client, push_encoded, with_query};
use ipam_api::limits::PAGE_ITEMS_MAX;
use ipam_api::problem::Retry;
use ipam_api::resource::Page;
use ipam_api::{Code, Problem};
use serde::de::DeserializeOwned;

/// Servers of the REST API, over HTTP or in the same process.
pub trait Servers: Clone + Send + Sync + 'static {
    /// Sends a request.
    fn send(&self, call: Call) -> impl Future<Output = Result<Answer, Problem>> + Send;
}

/// Servers over HTTP.
#[derive(Debug, Clone)]
pub struct Remote(pub Arc<Client>);

impl Servers for Remote {
    async fn send(&self, call: Call) -> Result<Answer, Problem> {
        self.0.send(call).await
    }
}

/// Reads all pages of a list.
pub(crate) async fn each<T: DeserializeOwned + Send>(
    servers: &impl Servers,
    path: &str,
    mut take: impl FnMut(T) + Send,
) -> Result<(), Problem> {
    let path = with_query(path, "limit", &PAGE_ITEMS_MAX.to_string());
    let mut next: Option<String> = None;
    loop {
        let mut call = Call::get(path.as_str());
        if let Some(cursor) = &next {
            call = call.query("cursor", cursor);
        }
        let page: Page<T> = servers.send(call).await?.read()?;
        page.items.into_iter().for_each(&mut take);
        match page.next {
            Some(cursor) if next.as_ref() != Some(&cursor) => next = Some(cursor),
            Some(_) => return Err(Problem::new(Code::Internal, "a cursor repeats")),
            None => return Ok(()),
        }
    }
}

/// True if the request may succeed later, unchanged.
pub(crate) fn is_passing(problem: &Problem) -> bool {
    let is_later = matches!(problem.retry, Retry::Same | Retry::After) && problem.code != Code::InUse;
    is_later || matches!(problem.code, Code::Unreachable | Code::DeadlineExceeded)
}

/// Path with these segments.
pub(crate) fn path(segments: &[&str]) -> String {
    segments.iter().fold("/v1".to_owned(), |mut path, segment| {
        path.push('/');
        push_encoded(&mut path, segment);
        path
    })
}
