//! The content of a template for comparisons with its mirror, and the content of an imported one.

use galley_domain::{document::raw, rulebook::WHATSAPP};

pub(super) use galley_domain::upstream::content::{document_key, version_key};

/// The members that are not part of the content, because a template has them in columns.
const IDENTITY: [&str; 4] = ["name", "language", "category", "allow_category_change"];

/// The content of a template that is created from a document of the provider: the members that the
/// rulebook has, unchanged. What the rulebook does not know inside of them is kept.
pub(super) fn imported_content(document: &str) -> Option<String> {
    let members = raw::members(document)?;
    let fields = WHATSAPP.template.fields.iter().map(|field| field.name);
    let fields = fields.filter(|name| !IDENTITY.contains(name));
    let member = |name: &str| {
        let (_, value) = members.iter().find(|(key, _)| key == name)?;
        (*value != "null").then(|| format!(r#""{name}":{value}"#))
    };
    let members: Vec<String> = fields.filter_map(member).collect();
    Some(format!("{{{}}}", members.join(",")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = r#"{"id":"1","name":"a","language":"en","status":"APPROVED",
        "category":"UTILITY","health_status":{},"parameter_format":"POSITIONAL",
        "components":[ {"type":"BODY","text":"Hi\u0000","mystery":1.50},{"type":"NEW"} ]}"#;

    #[test]
    fn an_imported_content_has_the_members_of_the_rulebook_unchanged() {
        let content = imported_content(DOCUMENT).unwrap();
        let components = r#"[ {"type":"BODY","text":"Hi\u0000","mystery":1.50},{"type":"NEW"} ]"#;
        assert!(content.contains(components), "{content}");
        assert!(content.contains("parameter_format") && !content.contains("health_status"));
        assert!(!content.contains(r#""name""#) && !content.contains("APPROVED"), "{content}");
        assert_eq!(imported_content("[]"), None);
    }

    #[test]
    fn an_imported_content_equals_its_document() {
        let content = imported_content(DOCUMENT).unwrap();
        assert_eq!(version_key("UTILITY", &content), document_key(DOCUMENT));
        assert!(version_key("UTILITY", "{}").is_some());
        assert_ne!(version_key("UTILITY", "{}"), document_key(DOCUMENT));
        assert_eq!(version_key("UTILITY", "nothing"), None);
    }
}
