//! Page: one self-contained HTML document about a run, without scripts and external resources.

mod anomalies;
mod axis;
mod charts;
mod document;
mod html;
mod lanes;
mod series;
mod tables;

pub use self::document::page;
