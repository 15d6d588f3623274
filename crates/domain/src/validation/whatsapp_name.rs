//! Names that WhatsApp accepts: lower-case letters, digits and `_`.

/// Latin letters with diacritics, and their replacements.
const LETTERS: &[(&str, &str)] = &[
    ("àáâãäåāăą", "a"),
    ("æ", "ae"),
    ("çćĉċč", "c"),
    ("ďđð", "d"),
    ("èéêëēĕėęě", "e"),
    ("ĝğġģ", "g"),
    ("ĥħ", "h"),
    ("ìíîïĩīĭįı", "i"),
    ("ĵ", "j"),
    ("ķ", "k"),
    ("ĺļľŀł", "l"),
    ("ñńņňŋ", "n"),
    ("òóôõöøōŏőơ", "o"),
    ("œ", "oe"),
    ("ŕŗř", "r"),
    ("śŝşšș", "s"),
    ("ß", "ss"),
    ("ţťŧț", "t"),
    ("þ", "th"),
    ("ùúûüũūŭůűųư", "u"),
    ("ŵ", "w"),
    ("ýÿŷ", "y"),
    ("źżž", "z"),
];

/// Whether WhatsApp accepts a name of this form.
pub(crate) fn is_valid(name: &str) -> bool {
    !name.is_empty() && name.chars().all(is_allowed)
}

/// The name in a form that WhatsApp accepts; `None` if it has that form, or no usable character.
pub(crate) fn adapted(name: &str) -> Option<String> {
    if is_valid(name) {
        return None;
    }
    let lower = without_diacritics(&name.to_lowercase());
    let words = lower.split(|it: char| !is_allowed(it)).filter(|word| !word.is_empty());
    Some(words.collect::<Vec<_>>().join("_")).filter(|changed| !changed.is_empty())
}

fn is_allowed(it: char) -> bool {
    it.is_ascii_lowercase() || it.is_ascii_digit() || it == '_'
}

/// Replaces letters with diacritics by plain letters in a lower-case name.
fn without_diacritics(lower: &str) -> String {
    let mut plain = String::with_capacity(lower.len());
    for letter in lower.chars().filter(|it| !matches!(it, '\u{300}'..='\u{36f}')) {
        match LETTERS.iter().find(|(marked, _)| marked.contains(letter)) {
            Some((_, without)) => plain.push_str(without),
            None => plain.push(letter),
        }
    }
    plain
}
