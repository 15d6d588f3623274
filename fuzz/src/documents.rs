//! Documents of templates, and the values that templates are rendered with.

use std::sync::LazyLock;

use galley_domain::{
    document::Document,
    render,
    rulebook::{Rulebook, V1, WHATSAPP, graph_codes},
    template::{Template, edit::Edit},
};

/// A document under the rulebook `v1`.
pub fn document_v1(input: &[u8]) {
    document(input, &V1);
}

/// A document under the rulebook `whatsapp`.
pub fn document_whatsapp(input: &[u8]) {
    document(input, &WHATSAPP);
}

/// A dry run judges as a reading does, what is accepted reads back equal, what is refused has a
/// reason, and nothing panics.
fn document(input: &[u8], rulebook: &'static Rulebook) {
    let Ok(document) = Document::parse(input) else { return };
    let verdict = Template::read(&document, rulebook);
    assert_eq!(Template::check(&document, rulebook).template, verdict, "a dry run judges alike");
    match verdict {
        Ok(template) => {
            let kept = written(&template);
            let kept = Document::parse(kept.as_bytes()).expect("what is kept is JSON");
            assert_eq!(Template::read(&kept, rulebook).as_ref(), Ok(&template), "reads back equal");
            let _ = Edit::read(&document, rulebook, &template);
            let nothing = Document::parse(b"{}").expect("an empty object is JSON");
            rendered(&template, rulebook, &nothing);
        }
        Err(violations) => {
            assert!(!violations.listed().is_empty(), "refused without a reason");
            for violation in violations.listed() {
                graph_codes::of(violation, document.root());
            }
        }
    }
}

/// Values for templates of every kind.
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
            (Template::read(&document, rulebook).expect("a seed is good"), rulebook)
        })
        .collect()
    });
    // Read once: a call renders one template.
    let Ok(values) = Document::parse(input) else { return };
    for (template, rulebook) in &*TEMPLATES {
        rendered(template, rulebook, &values);
    }
}

/// What comes out can be written, and what is refused has a reason.
fn rendered(template: &Template, rulebook: &Rulebook, values: &Document<'_>) {
    match render::render(template, rulebook, values) {
        Ok(rendered) => drop(serde_json::to_string(&rendered).expect("it can be written")),
        Err(violations) => assert!(!violations.listed().is_empty(), "refused without a reason"),
    }
}

/// The document that a template is kept as.
fn written(template: &Template) -> String {
    let quoted = |text: &str| serde_json::to_string(text).expect("a text can be written");
    format!(
        r#"{{"name":{},"language":{},"category":"{}","allow_category_change":{},{}"#,
        quoted(template.name()),
        quoted(template.language()),
        template.category().as_str(),
        template.allow_category_change(),
        template.content().trim_start_matches('{'),
    )
}
