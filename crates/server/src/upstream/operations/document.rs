//! The documents that are sent to a provider.

use galley_domain::{
    document::raw,
    rulebook::{Category, WHATSAPP},
    template::Template,
};
use serde_json::Value;

/// The document that creates a template.
pub(super) fn create(template: &Template) -> String {
    let identity = [
        ("name", Value::from(template.name())),
        ("language", Value::from(template.language())),
        ("category", Value::from(template.category().as_str())),
        ("allow_category_change", Value::from(template.allow_category_change())),
    ];
    joined(&identity, template.content(), |_| true)
}

/// The document that replaces the content of a template, and its category if that changes.
pub(super) fn edit(template: &Template, category: Option<Category>) -> String {
    let category = category.map(|it| ("category", Value::from(it.as_str())));
    let is_editable = |key: &str| WHATSAPP.edit.fields.iter().any(|field| field.name == key);
    joined(category.as_slice(), template.content(), is_editable)
}

/// An object with these members and those of the content.
fn joined(members: &[(&str, Value)], content: &str, is_sent: impl Fn(&str) -> bool) -> String {
    let members = members.iter().map(|(key, value)| format!("{}:{value}", Value::from(*key)));
    let content = raw::members(content).unwrap_or_default();
    let content = content.iter().filter(|(key, _)| is_sent(key));
    let content = content.map(|(key, value)| format!("{}:{value}", Value::from(&**key)));
    let members: Vec<String> = members.chain(content).collect();
    format!("{{{}}}", members.join(","))
}

#[cfg(test)]
mod tests {
    use galley_domain::{
        document::Document,
        upstream::content::{ContentMatch, VersionContent},
    };

    use super::*;

    fn template() -> Template {
        let document = r#"{"name":"a","language":"en_US","category":"UTILITY",
            "allow_category_change":false,"parameter_format":"POSITIONAL",
            "components":[{"type":"BODY","text":"Your order is on its way."}]}"#;
        Template::read(&Document::parse(document.as_bytes()).unwrap(), &WHATSAPP).unwrap()
    }

    fn parsed(text: &str) -> Value {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn a_create_names_the_template_and_an_edit_only_what_can_change() {
        let created = parsed(&create(&template()));
        assert_eq!((&created["name"], &created["language"]), (&"a".into(), &"en_US".into()));
        assert_eq!(created["allow_category_change"], false);
        assert_eq!(created["category"], "UTILITY");
        let edited = parsed(&edit(&template(), None));
        assert_eq!(edited["components"], created["components"]);
        for member in ["name", "language", "category", "allow_category_change"] {
            assert!(edited.get(member).is_none(), "{member}");
        }
        let edited = parsed(&edit(&template(), Some(Category::Marketing)));
        assert_eq!(edited["category"], "MARKETING");
    }

    #[test]
    fn the_content_of_a_version_equals_what_was_created() {
        let compared = VersionContent::of(&template()).compare(&create(&template()));
        assert_eq!(compared, ContentMatch::Equal);
    }
}
