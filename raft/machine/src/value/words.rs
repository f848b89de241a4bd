//! Enums with a word for each variant.

/// Declares an enum with a word for each variant, and a list of all variants.
macro_rules! words {
    ($(#[$meta:meta])* pub enum $name:ident { $($(#[$note:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$meta])*
        pub enum $name {
            $($(#[$note])* #[doc = concat!("(`", $word, "`)")] $variant,)*
        }

        impl $name {
            /// All variants, in order.
            pub const ALL: [Self; [$($word),*].len()] = [$(Self::$variant),*];

            /// Word of the variant.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                }
            }
        }
    };
}

pub(crate) use words;
