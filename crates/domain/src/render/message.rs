//! What comes out: the texts as people read them, and the message in the form of WhatsApp's API.

use std::borrow::Cow;

use serde::Serialize;

use crate::template::Template;

/// The texts of a message; parts that the template does not have are absent.
#[derive(Debug, Serialize)]
pub struct Texts<'a> {
    /// The headline, or the address of the attachment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<Cow<'a, str>>,
    /// The message itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<Cow<'a, str>>,
    /// The small print.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub footer: Option<Cow<'a, str>>,
    /// The buttons, in the order they are shown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub buttons: Vec<Button<'a>>,
}

/// A button as it is shown.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Button<'a> {
    /// Answers with its label.
    QuickReply {
        /// The label.
        text: Cow<'a, str>,
    },
    /// Leads to an address.
    Url {
        /// The label.
        text: Cow<'a, str>,
        /// The whole address.
        url: Cow<'a, str>,
    },
    /// Calls a number.
    PhoneNumber {
        /// The label.
        text: Cow<'a, str>,
        /// The number.
        phone_number: Cow<'a, str>,
    },
    /// Copies a code.
    CopyCode {
        /// The code.
        code: &'a str,
    },
}

/// A template message as WhatsApp's Cloud API takes it, complete but for the recipient.
#[derive(Debug, Serialize)]
pub struct Message<'a> {
    messaging_product: &'static str,
    r#type: &'static str,
    template: Sent<'a>,
}

impl<'a> Message<'a> {
    pub(super) fn new(template: &'a Template, components: Vec<Component<'a>>) -> Self {
        let language = Language { code: template.language() };
        Self {
            messaging_product: "whatsapp",
            r#type: "template",
            template: Sent { name: template.name(), language, components },
        }
    }
}

#[derive(Debug, Serialize)]
struct Sent<'a> {
    name: &'a str,
    language: Language<'a>,
    /// Only the parts that take values.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    components: Vec<Component<'a>>,
}

#[derive(Debug, Serialize)]
struct Language<'a> {
    code: &'a str,
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Component<'a> {
    Header { parameters: Vec<Parameter<'a>> },
    Body { parameters: Vec<Parameter<'a>> },
    Button { sub_type: &'static str, index: String, parameters: [Parameter<'a>; 1] },
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Parameter<'a> {
    Text { text: &'a str },
    Image { image: Media<'a> },
    Video { video: Media<'a> },
    Document { document: Media<'a> },
    CouponCode { coupon_code: &'a str },
}

#[derive(Debug, Serialize)]
pub(super) struct Media<'a> {
    pub(super) link: &'a str,
    /// What the file is called on the customer's device; only documents show it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) filename: Option<Cow<'a, str>>,
}
