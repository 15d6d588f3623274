//! Search terms: how names and texts are split into terms, for stored templates and for queries.

use crate::{
    document::{Document, Json, text::is_unspaced_letter},
    template::Template,
};

/// Longer terms are truncated.
const MAX_TERM_CHARS: usize = 64;

/// The terms of a text: case-folded runs of letters and digits. In scripts that are written without
/// spaces, each character is a term, so that any part of a text can be found.
pub fn terms(text: &str) -> Vec<String> {
    let mut terms = Vec::new();
    let mut term = String::new();
    let mut length = 0;
    for letter in text.chars() {
        let is_term = is_unspaced_letter(letter);
        if (is_term || !letter.is_alphanumeric()) && !term.is_empty() {
            terms.push(std::mem::take(&mut term));
            length = 0;
        }
        if letter.is_alphanumeric() && length < MAX_TERM_CHARS {
            length += 1;
            if letter.is_ascii() {
                term.push(letter.to_ascii_lowercase());
            } else {
                // Through upper case, which unifies letters with several lower-case forms.
                term.extend(letter.to_uppercase().flat_map(char::to_lowercase));
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
            ("ΟΔΟΣ οδός", &["οδοσ", "οδόσ"]),
            ("don't {{1}}!", &["don", "t", "1"]),
            ("今日はsale", &["今", "日", "は", "sale"]),
            (" \n-", &[]),
        ] {
            assert_eq!(terms(text), expected, "{text}");
        }
        assert_eq!(terms(&"é".repeat(100)), ["é".repeat(64)]);
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
