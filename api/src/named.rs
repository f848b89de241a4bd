//! Enums whose values have names: in JSON, in URLs and on the command line.

/// Declares an enum with a name for each value, and with `ALL`, `as_str` and `Display`.
///
/// The representation in JSON is serde's: `#[serde(rename_all)]` has to agree with the names.
#[macro_export]
macro_rules! named_enum {
    ($(#[$meta:meta])* pub enum $type:ident { $($(#[$doc:meta])* $value:ident = $name:literal,)+ }) => {
        $(#[$meta])*
        pub enum $type {
            $($(#[$doc])* $value,)+
        }

        impl $type {
            /// All values, in order.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$value),+];

            /// Name of the value.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$value => $name,)+
                }
            }
        }

        impl ::std::fmt::Display for $type {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}
