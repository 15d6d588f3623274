//! Fuzz targets for template documents and render values.

use std::sync::LazyLock;

use galley_domain::{
    document::Document,
    render,
    rulebook::{Rulebook, V1, WHATSAPP, graph_codes},
    template::{Template, edit::Edit},
};

/// Fuzzes documents under the rulebook `v1`.
pub fn document_v1(input: &[u8]) {
    document(input, &V1);
}

/// Fuzzes documents under the rulebook `whatsapp`.
pub fn document_whatsapp(input: &[u8]) {
    document(input, &WHATSAPP);
}

/// Checks that a dry run and a read agree, that an accepted document reads back equal, and that a
/// rejected one has violations.
fn document(input: &[u8], rulebook: &'static Rulebook) {
    let Ok(document) = Document::parse(input) else { return };
    let result = Template::read(&document, rulebook);
    assert_eq!(Template::check(&document, rulebook).template, result, "a dry run agrees");
    match result {
        Ok(template) => {
            let text = to_json(&template);
            let stored = Document::parse(text.as_bytes()).expect("a stored document is JSON");
            assert_eq!(
                Template::read(&stored, rulebook).as_ref(),
                Ok(&template),
                "reads back equal"
            );
            let _ = Edit::read(&document, rulebook, &template);
            let empty = Document::parse(b"{}").expect("an empty object is JSON");
            check_render(&template, rulebook, &empty);
        }
        Err(violations) => {
            assert!(!violations.listed().is_empty(), "rejected without a violation");
            for violation in violations.listed() {
                graph_codes::for_violation(violation, document.root());
            }
        }
    }
}

/// Fuzzes render values, with templates of every kind.
pub fn values(input: &[u8]) {
    static TEMPLATES: LazyLock<Vec<(Template, &'static Rulebook)>> = LazyLock::new(|| {
        let v1 = [
            include_str!("../../examples/04-all-four-with-media-header.json"),
            include_str!("../../examples/05-text-header.json"),
            include_str!("../../examples/07-copy-code.json"),
        ];
        let whatsapp = [
            include_str!("../seeds/document_whatsapp/named.json"),
            include_str!("../seeds/document_whatsapp/buttons.json"),
            include_str!("../seeds/document_whatsapp/carousel.json"),
            include_str!("../seeds/document_whatsapp/offer.json"),
            include_str!("../seeds/document_whatsapp/code.json"),
            include_str!("../seeds/document_whatsapp/location.json"),
        ];
        let v1 = v1.into_iter().map(|document| (document, &V1));
        let all = v1.chain(whatsapp.into_iter().map(|document| (document, &WHATSAPP)));
        all.map(|(document, rulebook)| {
            let document = Document::parse(document.as_bytes()).expect("a seed is JSON");
            (Template::read(&document, rulebook).expect("a seed is valid"), rulebook)
        })
        .collect()
    });
    // Parsed once for all templates.
    let Ok(values) = Document::parse(input) else { return };
    for (template, rulebook) in &*TEMPLATES {
        check_render(template, rulebook, &values);
    }
}

/// Checks that a rendered message serialises, and that rejected values have violations.
fn check_render(template: &Template, rulebook: &Rulebook, values: &Document<'_>) {
    match render::render(template, rulebook, values) {
        Ok(rendered) => {
            drop(serde_json::to_string(&rendered).expect("a rendered message serialises"));
        }
        Err(violations) => assert!(!violations.listed().is_empty(), "rejected without a violation"),
    }
}

/// Returns the stored document of a template.
fn to_json(template: &Template) -> String {
    let quoted = |text: &str| serde_json::to_string(text).expect("a string serialises");
    format!(
        r#"{{"name":{},"language":{},"category":"{}","allow_category_change":{},{}"#,
        quoted(template.name()),
        quoted(template.language()),
        template.category().as_str(),
        template.allow_category_change(),
        template.content().trim_start_matches('{'),
    )
}
