//! Emoji: which characters they are, and how many a text displays.

use icu_properties::props::{
    BinaryProperty, Emoji, EmojiModifier, EmojiPresentation, RegionalIndicator,
};

/// Selects the emoji presentation of the previous character.
const EMOJI_SELECTOR: char = '\u{fe0f}';

/// Turns the previous character into a keycap emoji.
const KEYCAP: char = '\u{20e3}';

/// Joins two emoji into one.
const ZERO_WIDTH_JOINER: char = '\u{200d}';

/// Counts the emoji that a text displays. A sequence of joined emoji, an emoji with a skin
/// tone, a keycap and a flag made of two letters count once.
pub(crate) fn count_emoji(text: &str) -> usize {
    let mut count = 0;
    let mut previous = ' ';
    let mut is_half_flag = false;
    // Whether the sequence that the previous character belongs to has been counted.
    let mut is_counted = false;
    for character in text.chars() {
        let is_flag_letter = RegionalIndicator::for_char(character);
        let extends = matches!(character, EMOJI_SELECTOR | KEYCAP | ZERO_WIDTH_JOINER)
            || EmojiModifier::for_char(character)
            || previous == ZERO_WIDTH_JOINER
            || (is_flag_letter && is_half_flag);
        is_half_flag = is_flag_letter && !is_half_flag;
        is_counted &= extends;
        if is_emoji(character) && !is_counted {
            count += 1;
            is_counted = true;
        }
        previous = character;
    }
    count
}

/// Whether a character is displayed as an emoji on its own or turns the previous one into an
/// emoji. Characters that are displayed as text by default, such as `©`, `✓` and `❤`, are not
/// emoji. From U+1F000 on, the default is ignored: clients display all emoji there as pictures.
pub(crate) fn is_emoji(character: char) -> bool {
    if character.is_ascii() {
        return false;
    }
    matches!(character, EMOJI_SELECTOR | KEYCAP)
        || EmojiPresentation::for_char(character)
        || (character >= '\u{1f000}' && Emoji::for_char(character))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sequence_displayed_as_one_emoji_counts_once() {
        for (text, count) in [
            ("a © ✓", 0),
            ("😀😀 😀", 3),
            ("👩\u{200d}🚀", 1),
            ("👍🏽", 1),
            ("🇩🇪🇫🇷", 2),
            ("❤\u{fe0f}❤", 1),
            ("🏳\u{fe0f}\u{200d}🌈", 1),
            ("1\u{fe0f}\u{20e3} 2\u{fe0f}\u{20e3}", 2),
            ("1\u{fe0f}\u{20e3}2\u{fe0f}\u{20e3}", 2),
            ("1\u{20e3}", 1),
            ("🤷\u{200d}♂\u{fe0f}", 1),
            ("🤷🏽\u{200d}♂\u{fe0f}🤷\u{200d}♀\u{fe0f}", 2),
            ("❤\u{fe0f}\u{200d}🔥", 1),
        ] {
            assert_eq!(count_emoji(text), count, "{text}");
        }
    }
}
