//! The description of the API: the table of routes, OpenAPI, pages for readers.

pub(super) mod docs;
#[cfg(test)]
mod openapi;
pub(super) mod routes;
