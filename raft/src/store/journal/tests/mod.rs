mod check;
mod format;
pub(in crate::store) mod pages;
