//! The content of a template for comparisons with its mirror, and the content of an imported one.

use galley_domain::{document::raw, rulebook::WHATSAPP};

/// The members that are not part of the content, because a template has them in columns.
const IDENTITY: [&str; 4] = ["name", "language", "category", "allow_category_change"];

/// The content of a template that is created from a document of the provider: the members that the
/// rulebook has, unchanged. What the rulebook does not know inside of them is kept.
pub(crate) fn imported_content(document: &str) -> Option<String> {
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
    use galley_domain::{
        id::AccountId,
        rulebook::Category,
        template::sample,
        upstream::{
            RemoteId,
            content::{ContentMatch, VersionContent},
        },
    };

    use super::*;
    use crate::{SampleLink, records::KeptSamples};

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
        let compare =
            |content| VersionContent { category: Category::Utility, content }.compare(DOCUMENT);
        assert_eq!(compare(&content), ContentMatch::Equal);
        assert_eq!(compare("{}"), ContentMatch::Different);
        assert_eq!(compare("nothing"), ContentMatch::Different);
    }

    #[test]
    fn kept_samples_replace_their_links_and_leave_the_content_equal() {
        let [kept, lost] = ["a", "b"].map(|name| format!("https://cdn.example/{name}.png?oe=1"));
        let document = format!(
            r#"{{"category":"UTILITY","components":[{{"type":"HEADER","format":"IMAGE","example":
            {{"header_handle":["{kept}","{lost}"]}}}}]}}"#
        );
        let (account, id) = (AccountId::new(1).unwrap(), RemoteId::parse("5").unwrap());
        let links = SampleLink::all(account, &id, &document);
        let name = "abcdefghijklmnopqrstuvwxyz_-0123";
        let samples = KeptSamples([(links[0].upload.clone(), name.to_owned())].into());
        let content = imported_content(&document).unwrap();
        let replaced = samples.in_content(content.clone(), &links);
        assert_eq!(replaced, content.replace(&kept, &sample::handle(name)));
        assert!(replaced.contains(&lost), "{replaced}");
        let replaced = VersionContent { category: Category::Utility, content: &replaced };
        assert_eq!(replaced.compare(&document), ContentMatch::Equal);
        assert_eq!(KeptSamples::default().in_content(content.clone(), &links), content);
    }
}
