//! Lists: filtered, sorted, cut down to some fields, and read page by page from one state.

mod cursor;
mod field;
mod listed;
mod page;
mod query;
mod test;

pub(super) use self::field::{Holds, Row};
#[cfg(test)]
pub(super) use self::listed::tests_of;
pub(super) use self::listed::{Listable, Shape, id_in_path, ids_by_name, list, show_by_id};
#[cfg(feature = "testing")]
pub(super) use self::listed::{cursor_again, takes};
pub(super) use self::query::Test;
pub(super) use self::test::without;
