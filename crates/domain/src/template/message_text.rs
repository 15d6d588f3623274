//! The text by which WhatsApp detects duplicate templates: its reviewers reject a template with the
//! same text as another one of the account.

use crate::{
    document::{Document, Json},
    rulebook::Category,
    template::Template,
    violation::{Warning, WarningRule},
};

/// The text of a template: its body and its footer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MessageText {
    body: String,
    footer: Option<String>,
}

impl MessageText {
    /// The text of a template; `None` if it has no text or is not compared with other templates.
    pub fn from_template(template: &Template) -> Option<Self> {
        Self::from_content(template.category(), template.content())
    }

    /// The text of a version with this category and [`Template::content`].
    pub fn from_content(category: Category, content: &str) -> Option<Self> {
        if category == Category::Authentication {
            return None;
        }
        let document = Document::parse(content.as_bytes()).ok()?;
        let Some(Json::Array(components)) = document.root().get("components") else { return None };
        let text = |kind: &str| {
            let is_kind = |it: &&Json<'_>| it.get("type").and_then(Json::as_str) == Some(kind);
            let component = components.iter().find(is_kind)?;
            component.get("text").and_then(Json::as_str).map(str::to_owned)
        };
        Some(Self { body: text("BODY")?, footer: text("FOOTER") })
    }

    /// The warning about a template with the same text as `other`.
    pub fn duplicate_warning(other: &str) -> Warning {
        Warning {
            pointer: "/components".to_owned(),
            rule: WarningRule::SameContent,
            message: format!("body and footer are the same as those of {other}"),
            hint: "use the other template, or change the text".to_owned(),
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

    fn message_text(category: Category, components: &str) -> Option<MessageText> {
        MessageText::from_content(category, &format!(r#"{{"components":[{components}]}}"#))
    }

    #[test]
    fn only_body_and_footer_are_compared() {
        const BODY: &str = r#"{"type":"BODY","text":"Hello {{1}}, you"}"#;
        let plain = message_text(Category::Utility, BODY);
        assert_eq!(plain.as_ref().map(MessageText::texts), Some(("Hello {{1}}, you", None)));
        let header = format!(r#"{{"type":"HEADER","format":"TEXT","text":"News"}},{BODY}"#);
        assert_eq!(message_text(Category::Marketing, &header), plain);
        let footer = format!(r#"{BODY},{{"type":"FOOTER","text":"Bye"}}"#);
        assert_ne!(message_text(Category::Utility, &footer), plain);
    }

    #[test]
    fn authentication_templates_and_templates_without_text_are_not_compared() {
        const BODY: &str = r#"{"type":"BODY","text":"Hello"}"#;
        assert_eq!(message_text(Category::Authentication, BODY), None);
        assert_eq!(message_text(Category::Utility, r#"{"type":"BODY"}"#), None);
    }
}
