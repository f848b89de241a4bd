//! Mirror of nodes and namespaces: what their resources should be, and the next step for each.

mod labels;
mod namespace;
mod node;
mod step;
mod view;

pub(crate) use self::namespace::NamespaceMirror;
pub(crate) use self::node::NodeMirror;
pub(crate) use self::step::{Mirror, Row, Step, Wanted, step};
pub(crate) use self::view::Mirrored;
