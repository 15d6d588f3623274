//! Enums whose values are strings in JSON, in the database and on the command line.

/// Declares an enum with a string for each variant.
macro_rules! string_enum {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident $value:literal),+ $(,)? }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$doc])* $variant),+
        }

        impl $name {
            /// Every value, in declaration order.
            pub const VALUES: &'static [&'static str] = &[$($value),+];

            /// The value as it is stored and displayed.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $value),+
                }
            }

            /// The index in [`Self::VALUES`], for compact rows. Codes are stable: new values are
            /// added at the end.
            pub fn code(self) -> u8 {
                self as u8
            }

            /// The value with this code.
            pub fn from_code(code: u8) -> Option<Self> {
                Self::VALUES.get(usize::from(code)).and_then(|value| Self::parse(value))
            }

            /// Parses a value; letter case is ignored.
            pub fn parse(value: &str) -> Option<Self> {
                $(if value.eq_ignore_ascii_case($value) {
                    return Some(Self::$variant);
                })+
                None
            }
        }
    };
}

pub(crate) use string_enum;
