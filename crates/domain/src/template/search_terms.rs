//! Words for searching: how names and texts are taken apart, the same for what is kept and for
//! what is asked.

use crate::{
    document::{Document, Json, text::is_unspaced_letter},
    template::Template,
};

/// Longer words are searched by their beginning.
const LONGEST_WORD: usize = 64;

/// The words of a text: runs of letters and digits, their case folded. Scripts that are written
/// without spaces give a word for each character, so that any part of a text can be found.
pub fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut letters = 0;
    for letter in text.chars() {
        let alone = is_unspaced_letter(letter);
        if (alone || !letter.is_alphanumeric()) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
            letters = 0;
        }
        if letter.is_alphanumeric() && letters < LONGEST_WORD {
            letters += 1;
            // By way of the upper case, which brings together what differs in small letters only.
            word.extend(letter.to_uppercase().flat_map(char::to_lowercase));
        }
        if alone {
            words.push(std::mem::take(&mut word));
            letters = 0;
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

/// The different words of a template's name and of every text that its reader gets to see.
pub fn words_of(template: &Template) -> Vec<String> {
    let mut found = words(template.name());
    if let Ok(document) = Document::parse(template.content().as_bytes()) {
        texts(document.root(), &mut |text| found.extend(words(text)));
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// Every member named `text`, however deep.
fn texts(value: &Json<'_>, found: &mut impl FnMut(&str)) {
    match value {
        Json::Array(items) => items.iter().for_each(|item| texts(item, found)),
        Json::Object(members) => {
            for member in members {
                match &member.value {
                    Json::String(text) if member.key == "text" => found(text),
                    other => texts(other, found),
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
    fn words_are_runs_of_letters_and_digits_with_their_case_folded() {
        for (text, expected) in [
            ("Order_Shipped-2", &["order", "shipped", "2"][..]),
            ("Straße STRASSE", &["strasse", "strasse"]),
            ("ΟΔΟΣ οδός", &["οδοσ", "οδόσ"]),
            ("don't {{1}}!", &["don", "t", "1"]),
            ("今日はsale", &["今", "日", "は", "sale"]),
            (" \n-", &[]),
        ] {
            assert_eq!(words(text), expected, "{text}");
        }
        assert_eq!(words(&"é".repeat(100)), ["é".repeat(64)]);
    }

    #[test]
    fn name_header_body_footer_and_labels_are_searched_and_samples_are_not() {
        let document = br#"{"name":"first_name","language":"en_US","category":"UTILITY",
            "allow_category_change":true,"components":[
            {"type":"HEADER","format":"TEXT","text":"head"},
            {"type":"BODY","text":"body {{1}} body","example":{"body_text":[["sample"]]}},
            {"type":"FOOTER","text":"foot"},
            {"type":"BUTTONS","buttons":[{"type":"URL","text":"label","url":"https://a.b/c"}]}]}"#;
        let template = Template::read(&Document::parse(document).unwrap(), &V1).unwrap();
        let expected = ["1", "body", "first", "foot", "head", "label", "name"];
        assert_eq!(words_of(&template), expected);
    }
}
