//! The OpenAPI document, made from the table of routes and the types. It must equal `api/openapi.json`.

mod bounds;
mod components;
mod document;
mod parameters;
mod tests;
