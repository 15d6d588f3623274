//! What comes out: the texts as people read them, and the message in the form of WhatsApp's API.

use std::borrow::Cow;

use serde::Serialize;

use crate::{document::Json, template::Template};

/// The texts of a message; parts that the template does not have are absent.
#[derive(Debug, Default, Serialize)]
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
    /// What is offered for a limited time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offer: Option<Offer<'a>>,
    /// Whether the customer is asked for leave to be called.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub call_permission_request: bool,
    /// The cards below the message, in the order they are shown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cards: Vec<Texts<'a>>,
}

/// An offer as it is shown.
#[derive(Debug, Serialize)]
pub struct Offer<'a> {
    /// What it is called.
    pub text: Cow<'a, str>,
    /// The moment when it ends, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expiration_time_ms: Option<i64>,
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
        /// The label, where the template has one.
        #[serde(skip_serializing_if = "Option::is_none")]
        text: Option<Cow<'a, str>>,
        /// The code.
        code: &'a str,
    },
    /// Hands over a one-time code.
    Otp {
        /// The label.
        text: Cow<'a, str>,
        /// The label where the code is filled in by itself.
        #[serde(skip_serializing_if = "Option::is_none")]
        autofill_text: Option<Cow<'a, str>>,
        /// The code.
        code: &'a str,
    },
    /// Opens a form.
    Flow {
        /// The label.
        text: Cow<'a, str>,
    },
    /// Opens the catalogue.
    Catalog {
        /// The label.
        text: Cow<'a, str>,
    },
    /// Shows some products.
    Mpm {
        /// The label.
        text: Cow<'a, str>,
    },
    /// Shows the product of the header.
    Spm {
        /// The label.
        text: Cow<'a, str>,
    },
    /// Calls the sender within WhatsApp.
    VoiceCall {
        /// The label.
        text: Cow<'a, str>,
    },
    /// Shows what was ordered, and pays it.
    OrderDetails {
        /// The label.
        text: Cow<'a, str>,
    },
    /// Sends back how the customer can be reached.
    RequestContactInfo {
        /// The label.
        text: Cow<'a, str>,
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
    Header {
        parameters: Vec<Parameter<'a>>,
    },
    Body {
        parameters: Vec<Parameter<'a>>,
    },
    Button {
        sub_type: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        index: Option<String>,
        parameters: Vec<Parameter<'a>>,
    },
    LimitedTimeOffer {
        parameters: [Parameter<'a>; 1],
    },
    Carousel {
        cards: Vec<Card<'a>>,
    },
}

#[derive(Debug, Serialize)]
pub(super) struct Card<'a> {
    pub(super) card_index: usize,
    pub(super) components: Vec<Component<'a>>,
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Parameter<'a> {
    Text {
        #[serde(skip_serializing_if = "Option::is_none")]
        parameter_name: Option<String>,
        text: &'a str,
    },
    Image {
        image: Media<'a>,
    },
    Video {
        video: Media<'a>,
    },
    Document {
        document: Media<'a>,
    },
    Gif {
        gif: Media<'a>,
    },
    Location {
        location: Location<'a>,
    },
    Product {
        product: Product<'a>,
    },
    CouponCode {
        coupon_code: &'a str,
    },
    Payload {
        payload: &'a str,
    },
    TtlMinutes {
        ttl_minutes: i64,
    },
    Action {
        action: Action<'a>,
    },
    LimitedTimeOffer {
        limited_time_offer: End,
    },
}

impl<'a> Parameter<'a> {
    pub(super) fn text(text: &'a str) -> Self {
        Self::Text { parameter_name: None, text }
    }
}

#[derive(Debug, Serialize)]
pub(super) struct Media<'a> {
    /// Where it is fetched from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) link: Option<&'a str>,
    /// What WhatsApp called it when it was sent there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<&'a str>,
    /// What the file is called on the customer's device; only documents show it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) filename: Option<Cow<'a, str>>,
}

#[derive(Debug, Serialize)]
pub(super) struct Location<'a> {
    pub(super) latitude: f64,
    pub(super) longitude: f64,
    pub(super) name: &'a str,
    pub(super) address: &'a str,
}

#[derive(Debug, Serialize)]
pub(super) struct Product<'a> {
    pub(super) product_retailer_id: &'a str,
    pub(super) catalog_id: &'a str,
}

/// What a button does when it is tapped; each kind of button has members of its own.
#[derive(Debug, Default, Serialize)]
pub(super) struct Action<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) flow_token: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) flow_action_data: Option<&'a Json<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) thumbnail_product_retailer_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sections: Option<&'a Json<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) order_details: Option<&'a Json<'a>>,
}

/// When an offer ends.
#[derive(Debug, Serialize)]
pub(super) struct End {
    pub(super) expiration_time_ms: i64,
}
