//! The rendered result: the texts that the recipient sees and the message for WhatsApp's API.

use std::borrow::Cow;

use serde::Serialize;

use crate::{document::Json, template::Template};

/// The texts of a message, without parts that the template does not have.
#[derive(Debug, Default, Serialize)]
pub struct Texts<'a> {
    /// The header text, or the URL of the attachment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<Cow<'a, str>>,
    /// The body text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<Cow<'a, str>>,
    /// The footer text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub footer: Option<Cow<'a, str>>,
    /// The buttons, in display order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub buttons: Vec<Button<'a>>,
    /// The limited-time offer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offer: Option<Offer<'a>>,
    /// Whether the message asks the recipient for permission to call.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub call_permission_request: bool,
    /// The cards of a carousel, in display order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cards: Vec<Texts<'a>>,
}

/// A limited-time offer as the recipient sees it.
#[derive(Debug, Serialize)]
pub struct Offer<'a> {
    /// The text of the offer.
    pub text: Cow<'a, str>,
    /// The end of the offer, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expiration_time_ms: Option<i64>,
}

/// A button as the recipient sees it.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Button<'a> {
    /// Sends its label as a reply.
    QuickReply {
        /// The label.
        text: Cow<'a, str>,
    },
    /// Opens a URL.
    Url {
        /// The label.
        text: Cow<'a, str>,
        /// The complete URL.
        url: Cow<'a, str>,
    },
    /// Calls a phone number.
    PhoneNumber {
        /// The label.
        text: Cow<'a, str>,
        /// The phone number.
        phone_number: Cow<'a, str>,
    },
    /// Copies a code.
    CopyCode {
        /// The label, if the template has one.
        #[serde(skip_serializing_if = "Option::is_none")]
        text: Option<Cow<'a, str>>,
        /// The code.
        code: &'a str,
    },
    /// Delivers a one-time code.
    Otp {
        /// The label.
        text: Cow<'a, str>,
        /// The label if the device fills in the code.
        #[serde(skip_serializing_if = "Option::is_none")]
        autofill_text: Option<Cow<'a, str>>,
        /// The code.
        code: &'a str,
    },
    /// Opens a WhatsApp Flow.
    Flow {
        /// The label.
        text: Cow<'a, str>,
    },
    /// Opens the catalogue.
    Catalog {
        /// The label.
        text: Cow<'a, str>,
    },
    /// Shows several products.
    Mpm {
        /// The label.
        text: Cow<'a, str>,
    },
    /// Shows the product of the header.
    Spm {
        /// The label.
        text: Cow<'a, str>,
    },
    /// Calls the sender on WhatsApp.
    VoiceCall {
        /// The label.
        text: Cow<'a, str>,
    },
    /// Shows an order and offers to pay for it.
    OrderDetails {
        /// The label.
        text: Cow<'a, str>,
    },
    /// Asks the recipient for contact information.
    RequestContactInfo {
        /// The label.
        text: Cow<'a, str>,
    },
}

/// A template message for WhatsApp's Cloud API, complete except for the recipient.
#[derive(Debug, Serialize)]
pub struct Message<'a> {
    messaging_product: &'static str,
    r#type: &'static str,
    template: TemplateMessage<'a>,
}

impl<'a> Message<'a> {
    pub(super) fn new(template: &'a Template, components: Vec<Component<'a>>) -> Self {
        let language = Language { code: template.language() };
        Self {
            messaging_product: "whatsapp",
            r#type: "template",
            template: TemplateMessage { name: template.name(), language, components },
        }
    }
}

#[derive(Debug, Serialize)]
struct TemplateMessage<'a> {
    name: &'a str,
    language: Language<'a>,
    /// Only components with values.
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
        limited_time_offer: OfferEnd,
    },
}

impl<'a> Parameter<'a> {
    pub(super) fn text(text: &'a str) -> Self {
        Self::Text { parameter_name: None, text }
    }
}

#[derive(Debug, Serialize)]
pub(super) struct Media<'a> {
    /// The URL of the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) link: Option<&'a str>,
    /// The media id that WhatsApp assigned on upload.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<&'a str>,
    /// The file name on the recipient's device; documents only.
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

/// The action of a button; each type of button has its own members.
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

#[derive(Debug, Serialize)]
pub(super) struct OfferEnd {
    pub(super) expiration_time_ms: i64,
}
