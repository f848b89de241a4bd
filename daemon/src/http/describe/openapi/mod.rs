//! The OpenAPI document, made from the table of routes and the types: `api/openapi.json` is held to it.

mod bounds;
mod components;
mod document;
mod parameters;
mod tests;
