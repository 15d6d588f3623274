//! Names of accounts and credentials. Events, versions and lists show them beside the authors that
//! Galley itself names, so no name may look like one of those, or disguise the text around it.

use unicode_normalization::{UnicodeNormalization as _, char::is_combining_mark};

use crate::document::text::{folded, is_directional, is_separator};

/// Maximum length of the name of a credential, in characters.
pub const MAX_CREDENTIAL_NAME_CHARS: usize = 64;

/// Maximum length of the name of an account, in characters.
const MAX_ACCOUNT_NAME_CHARS: usize = 200;

/// The authors that Galley names. The console writes some of them with an article. A token without a
/// name is shown as `token` and its id.
const BUILT_IN_AUTHORS: [&str; 4] = ["operator", "provider", "service", "system"];

/// Why a text cannot be a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// It is empty or too long.
    #[error("must have 1 to {max} characters")]
    Length {
        /// Maximum length in characters.
        max: usize,
    },
    /// White space is at its ends.
    #[error("begins or ends with whitespace")]
    Edges,
    /// A control character, or a line or paragraph separator.
    #[error("contains the control character U+{:04X}", u32::from(*.0))]
    Control(char),
    /// A character that changes the direction of text.
    #[error("contains the directional character U+{:04X}", u32::from(*.0))]
    Directional(char),
    /// All its characters are invisible.
    #[error("has no visible character")]
    Invisible,
    /// It is the name of an author that Galley itself names.
    #[error("looks like `{0}`, which Galley itself shows as an author")]
    BuiltIn(&'static str),
}

/// Checks the name of a new credential.
pub fn check_credential_name(text: &str) -> Result<(), NameError> {
    check_length(text, MAX_CREDENTIAL_NAME_CHARS)?;
    if text.trim() != text {
        return Err(NameError::Edges);
    }
    check_characters(text)
}

/// Checks the new name of an account.
pub fn check_account_name(text: &str) -> Result<(), NameError> {
    check_length(text, MAX_ACCOUNT_NAME_CHARS)?;
    check_characters(text)
}

fn check_length(text: &str, max: usize) -> Result<(), NameError> {
    let is_valid = (1..=max).contains(&text.chars().count());
    if is_valid { Ok(()) } else { Err(NameError::Length { max }) }
}

/// Checks which characters a name has, and that it does not look like an author that Galley names.
pub(crate) fn check_characters(text: &str) -> Result<(), NameError> {
    if let Some(found) = text.chars().find(|it| it.is_control() || is_separator(*it)) {
        return Err(NameError::Control(found));
    }
    if let Some(found) = text.chars().find(|it| is_directional(*it)) {
        return Err(NameError::Directional(found));
    }
    if folded(text).trim().is_empty() {
        return Err(NameError::Invisible);
    }
    let compared = compared(text);
    let compared = compared.strip_prefix("the").unwrap_or(&compared);
    let is_number = |it: &str| !it.is_empty() && it.chars().all(char::is_numeric);
    if compared.strip_prefix("token").is_some_and(is_number) {
        return Err(NameError::BuiltIn("token"));
    }
    match BUILT_IN_AUTHORS.into_iter().find(|it| *it == compared) {
        Some(author) => Err(NameError::BuiltIn(author)),
        None => Ok(()),
    }
}

/// The text as it is compared: compatibility forms, letter case, accents, white space and invisible
/// characters make no difference. In NFKC, lower case is the case folding of every character that folds to ASCII, except
/// for `ß`, and no built-in author contains `ss`.
fn compared(text: &str) -> String {
    let is_compared = |it: &char| !it.is_whitespace() && !is_combining_mark(*it);
    folded(text).nfd().filter(is_compared).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_credentials_are_short_and_printable() {
        for valid in ["CI, 2026", "ä", &"ä".repeat(64)] {
            assert_eq!(check_credential_name(valid), Ok(()), "{valid:?}");
        }
        let length = NameError::Length { max: 64 };
        for (invalid, expected) in [
            ("", length),
            (&*"ä".repeat(65), length),
            (" a", NameError::Edges),
            ("a ", NameError::Edges),
            ("a\nb", NameError::Control('\n')),
            ("a\u{7}", NameError::Control('\u{7}')),
            ("a\u{9b}31m", NameError::Control('\u{9b}')),
            ("a\u{2028}b", NameError::Control('\u{2028}')),
        ] {
            assert_eq!(check_credential_name(invalid), Err(expected), "{invalid:?}");
        }
    }

    #[test]
    fn names_of_accounts_are_printable() {
        for valid in ["Shop & Co", &"a".repeat(200), " shop"] {
            assert_eq!(check_account_name(valid), Ok(()), "{valid:?}");
        }
        let length = NameError::Length { max: 200 };
        for (invalid, expected) in [
            ("", length),
            (&*"a".repeat(201), length),
            (" ", NameError::Invisible),
            ("a\tb", NameError::Control('\t')),
            ("\u{202e}pohs", NameError::Directional('\u{202e}')),
            (" System ", NameError::BuiltIn("system")),
        ] {
            assert_eq!(check_account_name(invalid), Err(expected), "{invalid:?}");
        }
    }

    #[test]
    fn no_name_changes_the_direction_of_text_or_is_invisible() {
        let embeddings = ('\u{202a}'..='\u{202e}').chain('\u{2066}'..='\u{2069}');
        for found in embeddings.chain(['\u{61c}', '\u{200e}', '\u{200f}']) {
            let name = format!("Ada{found}");
            assert_eq!(check_characters(&name), Err(NameError::Directional(found)), "{found:?}");
        }
        for invisible in ["\u{200b}", "\u{2800}\u{3164}", "\u{ad}\u{fe0f}"] {
            assert_eq!(check_characters(invisible), Err(NameError::Invisible), "{invisible:?}");
        }
        // Scripts and emoji need joiners and selectors.
        for valid in ["\u{308}", "कि", "می\u{200c}خواهم", "👩\u{200d}💻", "❤\u{fe0f}", "אבג"]
        {
            assert_eq!(check_characters(valid), Ok(()), "{valid:?}");
        }
    }

    #[test]
    fn no_name_looks_like_an_author_that_galley_names() {
        for (name, author) in [
            ("operator", "operator"),
            ("Operator", "operator"),
            ("the operator", "operator"),
            ("The\u{a0}Operator", "operator"),
            ("o\u{200b}pera\u{ad}tor", "operator"),
            ("\u{feff}operator\u{2060}", "operator"),
            ("operator\u{2800}", "operator"),
            ("oper\u{e0061}ator\u{fe00}", "operator"),
            ("ｏｐｅｒａｔｏｒ", "operator"),
            ("𝓟rovider", "provider"),
            ("ⓟROVIDER", "provider"),
            ("ſyſtem", "system"),
            ("\u{3000}system\u{200b} ", "system"),
            ("servⅰce", "service"),
            ("\u{115f}Service", "service"),
            ("opera\u{200a}tor", "operator"),
            ("sys tem", "system"),
            ("öperator", "operator"),
            ("OPÉRATOR", "operator"),
            ("syste\u{301}m", "system"),
            ("s\u{20dd}ystem", "system"),
            ("thé Provider", "provider"),
            ("tökén 7", "token"),
            ("token 7", "token"),
            ("Token\u{a0}\u{ff17}1", "token"),
        ] {
            assert_eq!(check_characters(name), Err(NameError::BuiltIn(author)), "{name:?}");
        }
        for valid in
            ["operator 2", "operators", "my system", "Ada", "customer service", "token", "token a"]
        {
            assert_eq!(check_characters(valid), Ok(()), "{valid:?}");
        }
    }
}
