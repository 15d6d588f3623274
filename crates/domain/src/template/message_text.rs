//! What WhatsApp compares templates by: a reviewer there rejects one that says, word for word, what
//! another of the account says.

use crate::{
    document::{Document, Json},
    rulebook::Category,
    template::Template,
    violation::{Warning, WarningRule},
};

/// The words of a template: its body and its footer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MessageText {
    body: String,
    footer: Option<String>,
}

impl MessageText {
    /// That of a template; none if it has no words of its own or is not compared with others.
    pub fn of(template: &Template) -> Option<Self> {
        Self::of_content(template.category(), template.content())
    }

    /// The same of a version: its category, and its content as [`Template::content`] gives it.
    pub fn of_content(category: Category, content: &str) -> Option<Self> {
        if category == Category::Authentication {
            return None;
        }
        let document = Document::parse(content.as_bytes()).ok()?;
        let Some(Json::Array(components)) = document.root().get("components") else { return None };
        let text_of = |kind: &str| {
            let is_it = |it: &&Json<'_>| it.get("type").and_then(Json::as_str) == Some(kind);
            let component = components.iter().find(is_it)?;
            component.get("text").and_then(Json::as_str).map(str::to_owned)
        };
        Some(Self { body: text_of("BODY")?, footer: text_of("FOOTER") })
    }

    /// What the template is told by whoever knows the others.
    pub fn repeated_by(other: &str) -> Warning {
        Warning {
            pointer: "/components".to_owned(),
            rule: WarningRule::SameContent,
            message: format!("body and footer are, word for word, those of {other}"),
            hint: "use the other template, or say something else".to_owned(),
            span: None,
        }
    }

    /// The body, then the footer.
    pub fn texts(&self) -> (&str, Option<&str>) {
        (&self.body, self.footer.as_deref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wording(category: Category, components: &str) -> Option<MessageText> {
        MessageText::of_content(category, &format!(r#"{{"components":[{components}]}}"#))
    }

    #[test]
    fn templates_are_compared_by_body_and_footer_and_nothing_else() {
        const BODY: &str = r#"{"type":"BODY","text":"Hello {{1}}, you"}"#;
        let plain = wording(Category::Utility, BODY);
        assert_eq!(plain.as_ref().map(MessageText::texts), Some(("Hello {{1}}, you", None)));
        let header = format!(r#"{{"type":"HEADER","format":"TEXT","text":"News"}},{BODY}"#);
        assert_eq!(wording(Category::Marketing, &header), plain);
        let footer = format!(r#"{BODY},{{"type":"FOOTER","text":"Bye"}}"#);
        assert_ne!(wording(Category::Utility, &footer), plain);
    }

    #[test]
    fn templates_without_words_of_their_own_are_not_compared() {
        const BODY: &str = r#"{"type":"BODY","text":"Hello"}"#;
        assert_eq!(wording(Category::Authentication, BODY), None);
        assert_eq!(wording(Category::Utility, r#"{"type":"BODY"}"#), None);
    }
}
