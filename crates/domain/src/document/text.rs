//! Fast scans over strings, and character classes that several checks share.

use icu_properties::{
    props::{
        BidiControl, BinaryProperty, DefaultIgnorableCodePoint, EnumeratedProperty,
        GeneralCategory, GeneralCategoryGroup, Script,
    },
    script::ScriptWithExtensions,
};
use unicode_normalization::UnicodeNormalization as _;

/// Whether `text` has more than `max` characters. Counts characters only if the number of bytes
/// does not decide it.
pub(crate) fn longer_than(text: &str, max: usize) -> bool {
    text.len() > max && text.chars().nth(max).is_some()
}

/// Whether any byte matches. Reads every byte, because a loop without an early exit is vectorised.
pub(crate) fn has_byte(text: &str, is_match: impl Fn(u8) -> bool) -> bool {
    text.bytes().fold(false, |found, byte| found | is_match(byte))
}

/// Whether `byte` appears twice in a row. Reads every byte, for the same reason.
pub(crate) fn has_pair(text: &str, byte: u8) -> bool {
    let bytes = text.as_bytes();
    let is_pair = |(first, second): (&u8, &u8)| *first == byte && *second == byte;
    let pairs = bytes.iter().zip(bytes.get(1..).unwrap_or_default());
    pairs.fold(false, |found, pair| found | is_pair(pair))
}

/// Whether a character separates lines or paragraphs without being a control character. These are
/// the only members of the categories Zl and Zp.
pub(crate) fn is_separator(character: char) -> bool {
    matches!(character, '\u{2028}' | '\u{2029}')
}

/// Whether a character is invisible, directional or a variation selector.
pub(crate) fn is_hidden(character: char) -> bool {
    match character {
        // The soft hyphen is the first of them.
        ..'\u{ad}' => false,
        // These display nothing, but are not default ignorable: the blank braille pattern, the
        // interlinear annotation characters, the format controls of hieroglyphs, the filler of the
        // Khitan script and the musical symbol without a note head.
        '\u{2800}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{13430}'..='\u{1343f}'
        | '\u{16fe4}'
        | '\u{1d159}' => true,
        _ => DefaultIgnorableCodePoint::for_char(character),
    }
}

/// The text without letter case, invisible characters and differences of composition.
pub fn folded(text: &str) -> String {
    let visible = text.chars().filter(|it| !is_hidden(*it));
    let folded = visible.nfkc().flat_map(char::to_lowercase);
    folded.nfkc().filter(|it| !is_hidden(*it)).collect()
}

/// Whether a character changes the direction of the text around it.
pub(crate) fn is_directional(character: char) -> bool {
    BidiControl::for_char(character)
}

/// Whether a character is part of a word: a letter, a digit, or a mark that belongs to the letter before
/// it, such as a vowel sign.
pub fn is_word_character(character: char) -> bool {
    character.is_alphanumeric()
        || GeneralCategoryGroup::Mark.contains(GeneralCategory::for_char(character))
}

/// Whether a character is a letter or digit of a script that is written without spaces between
/// words. Search and word counts treat each of them as a word.
pub fn is_unspaced_letter(character: char) -> bool {
    if character.is_ascii() || !character.is_alphanumeric() {
        return false;
    }
    // No Unicode property lists these scripts.
    match Script::for_char(character) {
        Script::Han
        | Script::Hiragana
        | Script::Katakana
        | Script::Khmer
        | Script::Lao
        | Script::Myanmar
        | Script::Thai => true,
        // Hiragana and Katakana share characters such as `ー`.
        Script::Common => ScriptWithExtensions::new().has_script(character, Script::Katakana),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_of_scripts_without_spaces_are_recognised() {
        for letter in "ก๕ກကក漢々かカーｶ𠀀".chars() {
            assert!(is_unspaced_letter(letter), "{letter}");
        }
        for letter in "aé5яعहअ한ʼ -。、฿".chars() {
            assert!(!is_unspaced_letter(letter), "{letter}");
        }
    }
}
