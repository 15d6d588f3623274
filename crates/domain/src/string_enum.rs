//! Enums whose values are words that people and programs read.

/// Declares an enum of words.
macro_rules! string_enum {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident $word:literal),+ $(,)? }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$doc])* $variant),+
        }

        impl $name {
            /// Every word.
            pub const VALUES: &'static [&'static str] = &[$($word),+];

            /// The word as it is kept and shown.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word),+
                }
            }

            /// Its place among [`Self::VALUES`], for rows that have to be small. Stable: new words
            /// are added at the end.
            pub fn code(self) -> u8 {
                self as u8
            }

            /// The word at that place.
            pub fn from_code(number: u8) -> Option<Self> {
                Self::VALUES.get(usize::from(number)).and_then(|word| Self::parse(word))
            }

            /// Reads the word in any letter case.
            pub fn parse(word: &str) -> Option<Self> {
                $(if word.eq_ignore_ascii_case($word) {
                    return Some(Self::$variant);
                })+
                None
            }
        }
    };
}

pub(crate) use string_enum;
