//! Enums whose values are words that people and programs read.

/// Declares an enum of words.
macro_rules! words {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident $word:literal),+ $(,)? }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$doc])* $variant),+
        }

        impl $name {
            /// Every word.
            pub const WORDS: &'static [&'static str] = &[$($word),+];

            /// The word as it is kept and shown.
            pub fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word),+
                }
            }

            /// Its place among [`Self::WORDS`], for rows that have to be small. Stable: new words
            /// are added at the end.
            pub fn number(self) -> u8 {
                self as u8
            }

            /// The word at that place.
            pub fn numbered(number: u8) -> Option<Self> {
                Self::WORDS.get(usize::from(number)).and_then(|word| Self::named(word))
            }

            /// Reads the word in any letter case.
            pub fn named(word: &str) -> Option<Self> {
                $(if word.eq_ignore_ascii_case($word) {
                    return Some(Self::$variant);
                })+
                None
            }
        }
    };
}

pub(crate) use words;
