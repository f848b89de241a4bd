//! Dispatch of commands to the code that carries them out.

mod bulk;
mod carry_out;
mod prefix_list;
mod transaction;

pub(crate) use self::carry_out::carry_out_looking;
pub use self::carry_out::{apply, carry_out, dry_run};
