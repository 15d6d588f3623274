//! Fast scans over strings that several checks share.

/// Whether there are more than `max` characters, counting only when the bytes leave it open.
pub(crate) fn longer_than(text: &str, max: usize) -> bool {
    text.len() > max && text.chars().nth(max).is_some()
}

/// Whether a text has such a byte. All of them are looked at, which a processor does many at a time:
/// stopping at the first one found would make it look at each by itself.
pub(crate) fn has_byte(text: &str, is_such: impl Fn(u8) -> bool) -> bool {
    text.bytes().fold(false, |has, byte| has | is_such(byte))
}

/// Whether that byte stands twice in a row in a text, found out likewise.
pub(crate) fn has_pair(text: &str, of: u8) -> bool {
    let bytes = text.as_bytes();
    let is_it = |(first, second): (&u8, &u8)| *first == of && *second == of;
    bytes.iter().zip(bytes.get(1..).unwrap_or_default()).fold(false, |has, it| has | is_it(it))
}

/// What parts lines and paragraphs without being a control character.
pub(crate) fn is_separator(character: char) -> bool {
    matches!(character, '\u{2028}' | '\u{2029}')
}

/// Thai, Lao, Myanmar, Khmer, Chinese and Japanese put no space between words.
pub(crate) fn stands_alone(letter: char) -> bool {
    matches!(letter,
        '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}'
        | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{3ffff}')
        && letter.is_alphanumeric()
}
