//! Names of the invariants that the machine relies on.

macro_rules! invariants {
    ($($(#[doc = $doc:literal])+ $constant:ident = $name:literal;)*) => {
        $($(#[doc = $doc])+ pub const $constant: &str = $name;)*

        /// All invariants by name.
        pub const ALL: &[&str] = &[$($constant),*];
    };
}

invariants! {
    /// A row has at most as many bytes as a snapshot carries.
    ROW_SIZE = "size of a row";
    /// Rows and events consist of what their encoding can't refuse.
    ENCODING = "encoding of a value";
    /// Each id that a row or the index names belongs to a row.
    ROW_OF_ID = "row of an id";
    /// Each pool has a space.
    SPACE_OF_POOL = "space of a pool";
    /// A planned address belongs to its pool and is free or cooling.
    PROMISED_ADDRESS = "promised address";
    /// A prefix from which others are cut has a division.
    DIVISION_OF_PARENT = "division of a parent";
    /// The head of a waiting line is the place of a claim.
    CLAIM_OF_WAITER = "claim of a waiter";
    /// A count of the index never falls below zero.
    COUNT = "count of the index";
}

#[cfg(test)]
mod tests {
    use super::ALL;

    #[test]
    fn names_are_unique() {
        let mut names = ALL.to_vec();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ALL.len());
    }
}
