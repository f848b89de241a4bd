//! Journal of the node's attachments and pods: a small log on disk, and the map that it describes.
//!
//! **Invariant:** the map is the result of a replay of the file. Only the writer of the file changes it.

mod attachments;
mod file;
mod pod;
mod record;
#[cfg(test)]
mod tests;
mod writer;

pub use self::attachments::Attachments;
pub use self::file::{JournalError, JournalFile};
pub use self::pod::{Application, Pod, PodNetwork, Pods};
pub use self::record::{Entry, Key, Phase, Record};
pub use self::writer::{Journal, Receipt, Unwritable};
