//! The form in which causes are declared: what is stored and what is shown in one place.

/// The code of a cause: a variant of [`Code`], or an expression over the fields.
macro_rules! code {
    ($code:ident) => {
        Code::$code
    };
    ($code:expr) => {
        $code
    };
}

/// A sentence: a format string over the fields, or an expression.
macro_rules! sentence {
    ($words:literal) => {
        format!($words)
    };
    ($words:expr) => {
        $words
    };
}

/// A remedy: a format string over the fields, or an expression that may have none.
macro_rules! remedy {
    () => {
        None
    };
    ($words:literal) => {
        Some(format!($words))
    };
    ($words:expr) => {
        $words
    };
}

/// Declares causes: the variant with its fields, its code, its sentence and its remedy.
macro_rules! causes {
    ($($name:ident $({ $($field:ident: $type:ty),* })? => $code:tt: $detail:tt $(help $help:tt)?;)*) => {
        /// The reason of a refusal or of a wait. Variants are only ever appended: rows have them by position.
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
        pub enum Cause {
            $($name $({ $($field: $type),* })?,)*
        }

        #[allow(unused_parens, reason = "an expression is one token tree in parentheses")]
        #[expect(unused_variables, reason = "not every sentence names every field")]
        impl Cause {
            /// The stable code.
            #[must_use]
            pub fn code(&self) -> Code {
                match self {
                    $(Cause::$name $({ $($field),* })? => code!($code),)*
                }
            }

            /// All variants as they are declared: name, fields, code, sentence.
            #[cfg(test)]
            pub(crate) const DECLARED: &'static [(&'static str, &'static str, &'static str, &'static str)] = &[$((
                stringify!($name),
                stringify!($($($field: $type),*)?),
                stringify!($code),
                stringify!($detail),
            )),*];

            pub(crate) fn sentence(&self) -> String {
                match self {
                    $(Cause::$name $({ $($field),* })? => sentence!($detail),)*
                }
            }

            pub(crate) fn remedy(&self) -> Option<String> {
                match self {
                    $(Cause::$name $({ $($field),* })? => remedy!($($help)?),)*
                }
            }
        }
    };
}
