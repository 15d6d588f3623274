//! The direction in which a message is written.

use serde::Serialize;

use super::runs::Run;

/// The direction of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// From left to right.
    Ltr,
    /// From right to left.
    Rtl,
}

/// The languages that are written from right to left.
const RTL_LANGUAGES: &[&str] =
    &["ar", "ckb", "dv", "fa", "he", "iw", "ji", "nqo", "prs", "ps", "sd", "syr", "ug", "ur", "yi"];

impl Direction {
    /// From right to left if the language is written so, or else if the first letter of the texts is.
    pub(super) fn of<'r>(language: Option<&str>, texts: impl Iterator<Item = &'r Run>) -> Self {
        let language = language.and_then(|it| it.split(['_', '-']).next()).unwrap_or_default();
        if RTL_LANGUAGES.iter().any(|it| it.eq_ignore_ascii_case(language)) {
            return Self::Rtl;
        }
        let is_shown = |run: &&Run| run.placeholder.as_ref().is_none_or(|it| it.filled);
        let first = texts.filter(is_shown).flat_map(|run| run.text.chars()).find_map(strong);
        first.unwrap_or(Self::Ltr)
    }
}

/// The direction of a letter or directional mark; `None` for any other character.
fn strong(character: char) -> Option<Direction> {
    match character {
        '\u{200e}' => Some(Direction::Ltr),
        '\u{200f}' | '\u{61c}' => Some(Direction::Rtl),
        it if !it.is_alphabetic() => None,
        // The blocks that Unicode reserves for scripts written from right to left.
        '\u{590}'..='\u{8ff}'
        | '\u{fb1d}'..='\u{fdff}'
        | '\u{fe70}'..='\u{feff}'
        | '\u{10800}'..='\u{10fff}'
        | '\u{1e800}'..='\u{1efff}' => Some(Direction::Rtl),
        _ => Some(Direction::Ltr),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proof::runs::{Placeholder, Styles};

    fn direction(language: &str, text: &str) -> Direction {
        let run = Run { text: text.to_owned(), style: Styles::PLAIN, placeholder: None };
        Direction::of(Some(language), [run].iter())
    }

    #[test]
    fn the_language_decides_and_otherwise_the_first_letter() {
        for (language, text, expected) in [
            ("ar_AE", "Hello", Direction::Rtl),
            ("he", "", Direction::Rtl),
            ("prs_AF", "", Direction::Rtl),
            ("en_US", "1. *مرحبا* Acme", Direction::Rtl),
            ("en_US", "٣ Acme مرحبا", Direction::Ltr),
            ("en_US", "\u{200f}Acme", Direction::Rtl),
            ("", "שלום", Direction::Rtl),
            ("", "123 😀", Direction::Ltr),
            ("ru", "Привет", Direction::Ltr),
        ] {
            assert_eq!(direction(language, text), expected, "{language} {text}");
        }
    }

    #[test]
    fn an_unfilled_placeholder_has_no_direction() {
        let placeholder = Some(Placeholder { name: "name".to_owned(), filled: false });
        let name = Run { text: "{{name}}".to_owned(), style: Styles::PLAIN, placeholder };
        let text = Run { text: "مرحبا".to_owned(), style: Styles::PLAIN, placeholder: None };
        assert_eq!(Direction::of(None, [name, text].iter()), Direction::Rtl);
    }
}
