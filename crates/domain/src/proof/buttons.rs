//! The buttons of a proof.

use serde::Serialize;

use super::source::Source;
use crate::{
    document::Json,
    rulebook::{FieldType, ObjectSchema, ParameterFormat, Presence, VariantContent, WHATSAPP},
    validation::placeholders,
};

/// A button as the recipient sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Button {
    /// The type, in upper case.
    pub r#type: String,
    /// The label; empty if there is none.
    pub text: String,
    /// The URL that it opens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The phone number that it calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phone_number: Option<String>,
    /// The code that it copies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The label if the device fills in the code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub autofill_text: Option<String>,
}

impl Button {
    /// A button of a document; `None` if it has no type. `code` is the message's one-time code.
    pub(super) fn of<'v>(
        button: &'v Json<'v>,
        index: usize,
        source: Source<'v>,
        code: Option<&str>,
    ) -> Option<Self> {
        let text = |key: &str| button.get(key).and_then(Json::as_str);
        let r#type = text("type")?.to_ascii_uppercase();
        let label = text("text").or_else(|| default_label(&r#type)).unwrap_or_default();
        let value = || source.button_value(button, index);
        let code = match &*r#type {
            "COPY_CODE" => value(),
            "OTP" => code,
            _ => None,
        };
        let url = text("url").filter(|_| r#type == "URL");
        let phone_number = text("phone_number").filter(|_| r#type == "PHONE_NUMBER");
        let autofill_text = text("autofill_text").filter(|_| r#type == "OTP");
        Some(Self {
            text: label.to_owned(),
            url: url.map(|url| with_end(url, value())),
            phone_number: phone_number.map(str::to_owned),
            code: code.map(str::to_owned),
            autofill_text: autofill_text.map(str::to_owned),
            r#type,
        })
    }
}

/// A URL with the placeholder at its end filled in. A sample may be the complete URL.
fn with_end(url: &str, end: Option<&str>) -> String {
    match (placeholders::base(url, ParameterFormat::Named), end) {
        (Some(base), Some(end)) if end.starts_with(base) => end.to_owned(),
        (Some(base), Some(end)) => format!("{base}{end}"),
        _ => url.to_owned(),
    }
}

/// The label that WhatsApp shows on a button without one.
fn default_label(button_type: &str) -> Option<&'static str> {
    let buttons = variant(WHATSAPP.template, "components", "BUTTONS")?;
    let button = variant(buttons, "buttons", button_type)?;
    button.fields.iter().find(|field| field.name == "text").and_then(|field| {
        if let Presence::DefaultsTo(label) = field.presence { Some(label) } else { None }
    })
}

/// The schema of one variant of the items of a list; the first one if a second tag determines it.
fn variant(
    schema: &'static ObjectSchema,
    list: &str,
    value: &str,
) -> Option<&'static ObjectSchema> {
    let field = schema.fields.iter().find(|field| field.name == list)?;
    let FieldType::TaggedList(list) = &field.field_type else { return None };
    let mut content = &list.item.variants.iter().find(|it| it.value == value)?.content;
    loop {
        match content {
            VariantContent::Fields(schema) => return Some(schema),
            VariantContent::Tagged(tagged) => content = &tagged.variants.first()?.content,
        }
    }
}
