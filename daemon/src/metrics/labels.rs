//! Labels of metrics.

use prometheus_client::encoding::EncodeLabelSet;

/// Labels that a metric has, with their names for the catalogue.
pub(super) trait Labels: EncodeLabelSet {
    const NAMES: &'static [&'static str];
}

macro_rules! labels {
    ($($name:ident { $($label:ident: $type:ty),* })*) => {$(
        #[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
        pub(super) struct $name {
            $(pub(super) $label: $type,)*
        }

        impl Labels for $name {
            const NAMES: &'static [&'static str] = &[$(stringify!($label)),*];
        }
    )*};
}

labels! {
    RouteLabels { route: String, code: u16 }
    RouteOnly { route: String }
    ReasonLabels { reason: &'static str }
    CodeLabels { code: &'static str }
    AllocationLabels { family: &'static str, outcome: &'static str }
    PeerLabels { peer: String }
    TaskLabels { task: &'static str }
    PartLabels { part: &'static str }
    ShownLabels { shown_to: &'static str }
    BuildLabels { version: &'static str }
}
