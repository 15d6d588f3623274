//! Search terms: how names and texts are split into terms, for stored templates and for queries.

use std::borrow::Cow;

use unicode_normalization::{UnicodeNormalization as _, char::canonical_combining_class};

use crate::{
    document::{Document, Json, text::is_unspaced_letter},
    template::Template,
};

/// Longer terms are truncated.
const MAX_TERM_CHARS: usize = 64;

/// The terms of a text: runs of letters and digits without accents and in one letter case. In
/// scripts that are written without spaces, each character is a term, so that any part of a text
/// can be found.
///
/// A change of the terms requires the indexes of all stores to be rebuilt.
pub fn terms(text: &str) -> Vec<String> {
    let mut terms = Vec::new();
    let mut term = String::new();
    let mut length = 0;
    for letter in without_accents(text).chars() {
        let is_term = is_unspaced_letter(letter);
        // Marks such as a virama join the letters of a word.
        let is_in_word =
            letter.is_alphanumeric() || !term.is_empty() && canonical_combining_class(letter) != 0;
        if (is_term || !is_in_word) && !term.is_empty() {
            terms.push(std::mem::take(&mut term));
            length = 0;
        }
        if is_in_word && length < MAX_TERM_CHARS {
            length += 1;
            if letter.is_ascii() {
                term.push(letter.to_ascii_lowercase());
            } else {
                // Through upper case, which unifies letters with several lower-case forms.
                for letter in letter.to_uppercase().flat_map(char::to_lowercase) {
                    push_spelled_out(&mut term, letter);
                }
            }
        }
        if is_term {
            terms.push(std::mem::take(&mut term));
            length = 0;
        }
    }
    if !term.is_empty() {
        terms.push(term);
    }
    terms
}

/// A text without the accents of its letters. Letters that a mark turns into another letter, such
/// as `が` and the syllables of Hangul, stay composed.
fn without_accents(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.nfd().filter(|letter| !is_accent(*letter)).nfc().collect())
}

/// Whether a character is a combining mark of the alphabetic scripts of Europe.
fn is_accent(letter: char) -> bool {
    matches!(letter, '\u{300}'..='\u{36f}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}')
}

/// Appends a lower-case letter. Letters with a stroke and ligatures, which Unicode does not
/// decompose, become the letters that keyboards without them type.
fn push_spelled_out(term: &mut String, letter: char) {
    match letter {
        'ø' => term.push('o'),
        'ł' => term.push('l'),
        'đ' => term.push('d'),
        'ħ' => term.push('h'),
        'ŧ' => term.push('t'),
        'æ' => term.push_str("ae"),
        'œ' => term.push_str("oe"),
        other => term.push(other),
    }
}

/// The distinct terms of a template's name and of every text that its recipient sees.
pub fn template_terms(template: &Template) -> Vec<String> {
    let mut found = terms(template.name());
    if let Ok(document) = Document::parse(template.content().as_bytes()) {
        visit_texts(document.root(), &mut |text| found.extend(terms(text)));
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// Calls `visit` with every member named `text`, at any depth.
fn visit_texts(value: &Json<'_>, visit: &mut impl FnMut(&str)) {
    match value {
        Json::Array(items) => items.iter().for_each(|item| visit_texts(item, visit)),
        Json::Object(members) => {
            for member in members {
                match &member.value {
                    Json::String(text) if member.key == "text" => visit(text),
                    other => visit_texts(other, visit),
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rulebook::V1;

    #[test]
    fn terms_are_case_folded_runs_of_letters_and_digits() {
        for (text, expected) in [
            ("Order_Shipped-2", &["order", "shipped", "2"][..]),
            ("Straße STRASSE", &["strasse", "strasse"]),
            ("ΟΔΟΣ οδός", &["οδοσ", "οδοσ"]),
            ("Pâques PAQUES Pa\u{302}ques", &["paques", "paques", "paques"]),
            ("Łódź Smørrebrød İzmir cœur", &["lodz", "smorrebrod", "izmir", "coeur"]),
            ("Tiếng Đức ёлка", &["tieng", "duc", "елка"]),
            ("한국 \u{1112}\u{1161}\u{11ab}국", &["한국", "한국"]),
            ("हिन्दी क\u{93c}लम \u{958}लम", &["हिन्दी", "क\u{93c}लम", "क\u{93c}लम"]),
            ("がか\u{3099}", &["が", "が"]),
            ("don't {{1}}!", &["don", "t", "1"]),
            ("今日はsale", &["今", "日", "は", "sale"]),
            (" \n-", &[]),
        ] {
            assert_eq!(terms(text), expected, "{text}");
        }
        assert_eq!(terms(&"é".repeat(100)), ["e".repeat(64)]);
    }

    #[test]
    fn names_and_texts_have_terms_and_samples_do_not() {
        let document = br#"{"name":"first_name","language":"en_US","category":"UTILITY",
            "allow_category_change":true,"components":[
            {"type":"HEADER","format":"TEXT","text":"head"},
            {"type":"BODY","text":"body {{1}} body","example":{"body_text":[["sample"]]}},
            {"type":"FOOTER","text":"foot"},
            {"type":"BUTTONS","buttons":[{"type":"URL","text":"label","url":"https://a.b/c"}]}]}"#;
        let template = Template::read(&Document::parse(document).unwrap(), &V1).unwrap();
        let expected = ["1", "body", "first", "foot", "head", "label", "name"];
        assert_eq!(template_terms(&template), expected);
    }
}
