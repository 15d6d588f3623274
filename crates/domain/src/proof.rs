//! Proofs: how a template looks to its recipient.
//!
//! A proof is made of any document, valid or not: every part that can be read is shown, next to the
//! violations. Values come from the client or from the document's samples. Nothing is loaded, and the
//! work is linear in the size of the document: lists, texts and inserted values are limited.

mod buttons;
mod direction;
mod formatting;
mod header;
mod runs;
mod source;
mod text;

use serde::Serialize;

pub use buttons::Button;
pub use direction::Direction;
pub use header::{Header, Location, Media};
pub use runs::{Placeholder, Run, Styles};
pub use text::MAX_CHARS;

use crate::{
    document::{Document, Json},
    render::{self, whatsapp::authentication},
    rulebook::{Category, Rulebook, WHATSAPP},
    template::Template,
    timestamp,
    violation::{Rule, Violation, Violations},
};
use source::{Member, Source};
use text::{Budget, FilledText, TextValues};

/// Number of components, buttons and cards that are shown, each. No rulebook allows more.
const MAX_ITEMS: usize = 20;

/// How a template looks to its recipient.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Proof {
    /// Whether what is shown is an approved version.
    pub approved: bool,
    /// The direction in which it is written.
    pub direction: Direction,
    /// The message itself.
    #[serde(flatten)]
    pub message: Message,
    /// The cards of a carousel.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cards: Vec<Message>,
    /// The limited-time offer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offer: Option<Offer>,
    /// The one-time code of an AUTHENTICATION template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Whether the message asks the recipient for permission to call.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub call_permission_request: bool,
    /// The first violations of the document.
    pub violations: Vec<Violation>,
    /// The number of further violations.
    #[serde(skip_serializing_if = "is_zero")]
    pub more: usize,
    /// The first violations of the values, if the document is valid.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub value_violations: Vec<Violation>,
    /// The number of further violations of the values.
    #[serde(skip_serializing_if = "is_zero")]
    pub more_value_violations: usize,
    /// Whether texts were cut because they have more than [`MAX_CHARS`] characters.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}

/// A message or a card.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Message {
    /// The header.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<Header>,
    /// The body; empty if there is none.
    pub body: Vec<Run>,
    /// The footer: one plain run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub footer: Option<Vec<Run>>,
    /// The buttons, in display order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub buttons: Vec<Button>,
}

/// A limited-time offer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Offer {
    /// The name of the offer.
    pub text: String,
    /// Whether the message shows when it expires.
    pub has_expiration: bool,
    /// When it expires, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expiration_time_ms: Option<i64>,
    /// The code to copy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl Proof {
    /// The proof of a document that is not stored: `{"document": {…}, "values": {…}}`. `document` is
    /// one that creates a template, `values` are those of [`render::render`]; without them, the
    /// document's samples are used. Returns violations only if there is no `document`.
    pub fn read(request: Document<'_>, rulebook: &Rulebook) -> Result<Self, Violations> {
        let has_duplicates = request.has_duplicates();
        let Json::Object(members) = request.into_root() else {
            return Err(missing_document("", Rule::WrongType, "must be an object"));
        };
        let (mut document, mut values) = (None, None);
        for member in members.into_iter().filter(|it| !matches!(it.value, Json::Null)) {
            let slot = match &*member.key {
                "document" => &mut document,
                "values" => &mut values,
                _ => continue,
            };
            slot.get_or_insert_with(|| Document::from_root(member.value, has_duplicates));
        }
        let Some(document) = document else {
            return Err(missing_document("/document", Rule::Required, "is missing"));
        };
        Ok(Self::of_document(&document, rulebook, values.as_ref()))
    }

    /// The proof of a document, valid or not, with these values or with its samples.
    pub fn of_document(
        document: &Document<'_>,
        rulebook: &Rulebook,
        values: Option<&Document<'_>>,
    ) -> Self {
        let root = document.root();
        let text = |key: &str| root.get(key).and_then(Json::as_str);
        let subject = Subject {
            root,
            language: text("language"),
            category: text("category").and_then(Category::parse),
            rulebook,
        };
        let mut proof = subject.proof(values.map(Document::root));
        match Template::read(document, rulebook) {
            Err(violations) => {
                proof.violations = violations.listed().to_vec();
                proof.more = violations.omitted();
            }
            Ok(template) => {
                let refused = values.and_then(|it| render::render(&template, rulebook, it).err());
                if let Some(refused) = refused {
                    proof.value_violations = refused.listed().to_vec();
                    proof.more_value_violations = refused.omitted();
                }
            }
        }
        proof
    }

    /// The proof of a stored template with its samples. It met the rules when it was stored and is
    /// not validated again.
    pub fn of_template(template: &Template, rulebook: &Rulebook, approved: bool) -> Self {
        let content = Document::parse(template.content().as_bytes()).ok();
        let subject = Subject {
            root: content.as_ref().map_or(&Json::Null, Document::root),
            language: Some(template.language()),
            category: Some(template.category()),
            rulebook,
        };
        Self { approved, ..subject.proof(None) }
    }
}

fn missing_document(pointer: &str, rule: Rule, message: &str) -> Violations {
    let hint = "send `{\"document\": {…}}` with the document that creates a template";
    let (pointer, message) = (pointer.to_owned(), message.to_owned());
    Violation { pointer, rule, message, hint: Some(hint.to_owned()), span: None }.into()
}

/// What a proof is made of.
struct Subject<'d> {
    /// The object with the components.
    root: &'d Json<'d>,
    language: Option<&'d str>,
    category: Option<Category>,
    rulebook: &'d Rulebook,
}

impl<'d> Subject<'d> {
    fn proof<'v: 'd>(&self, values: Option<&'v Json<'v>>) -> Proof {
        let source = values.map_or(Source::Samples, |values| Source::Sent(Some(values)));
        let mut budget = Budget::new();
        let components = Components(items(self.root, "components"));
        let is_authentication =
            *self.rulebook == WHATSAPP && self.category == Some(Category::Authentication);
        let code = if is_authentication { source.code() } else { None };
        let code = code.map(|code| budget.take(code));
        let mut message = components.message(source, code, &mut budget);
        if is_authentication {
            components.add_authentication_texts(&mut message, code, &mut budget);
        }
        let carousel = components.find("CAROUSEL").map_or(&[][..], |it| items(it, "cards"));
        let card = |(index, card): (usize, &'d Json<'d>)| {
            let components = Components(items(card, "components"));
            components.message(source.card(index), None, &mut budget)
        };
        let cards: Vec<Message> = carousel.iter().enumerate().map(card).collect();
        let header = message.header.iter().flat_map(|it| it.text.iter().flatten());
        let footer = message.footer.iter().flatten();
        let direction =
            Direction::of(self.language, message.body.iter().chain(header).chain(footer));
        Proof {
            approved: false,
            direction,
            offer: components.offer(source, &message.buttons),
            call_permission_request: components.find("CALL_PERMISSION_REQUEST").is_some(),
            message,
            cards,
            code: code.map(str::to_owned),
            violations: Vec::new(),
            more: 0,
            value_violations: Vec::new(),
            more_value_violations: 0,
            truncated: budget.is_exceeded,
        }
    }
}

/// The components of a message or card.
struct Components<'d>(&'d [Json<'d>]);

impl<'d> Components<'d> {
    /// The first component of a type.
    fn find(&self, kind: &str) -> Option<&'d Json<'d>> {
        let is_kind = |it: &&Json<'_>| {
            it.get("type").and_then(Json::as_str).is_some_and(|it| it.eq_ignore_ascii_case(kind))
        };
        self.0.iter().find(is_kind)
    }

    fn message(&self, source: Source<'d>, code: Option<&str>, budget: &mut Budget) -> Message {
        let header = self.find("HEADER").and_then(|it| Header::of(it, source, budget));
        let body = self.find("BODY").and_then(|it| Some((it, it.get("text")?.as_str()?)));
        let body = body.map(|(component, text)| {
            let values = source.text_values(component, Member::Body);
            runs::formatted(&FilledText::new(text, &values, budget))
        });
        let footer = self.find("FOOTER").and_then(|it| it.get("text")?.as_str());
        let footer = footer.map(|text| runs::plain(&FilledText::fixed(text, budget)));
        let buttons = self.find("BUTTONS").map_or(&[][..], |it| items(it, "buttons"));
        let button = |(index, button)| Button::of(button, index, source, code);
        Message {
            header,
            body: body.unwrap_or_default(),
            footer,
            buttons: buttons.iter().enumerate().filter_map(button).collect(),
        }
    }

    /// Adds the texts that WhatsApp generates for an AUTHENTICATION template.
    fn add_authentication_texts(
        &self,
        message: &mut Message,
        code: Option<&str>,
        budget: &mut Budget,
    ) {
        let body = self.find("BODY").filter(|_| message.body.is_empty());
        if let Some(body) = body {
            let values = code.map(TextValues::one).unwrap_or_default();
            let text = authentication::body_text(Some(body));
            message.body = runs::plain(&FilledText::new(text, &values, budget));
        }
        let footer = self.find("FOOTER").filter(|_| message.footer.is_none());
        if let Some(text) = footer.and_then(authentication::footer_text) {
            message.footer = Some(runs::plain(&FilledText::fixed(&text, budget)));
        }
    }

    fn offer(&self, source: Source<'d>, buttons: &[Button]) -> Option<Offer> {
        let offer = self.find("LIMITED_TIME_OFFER")?.get("limited_time_offer")?;
        let expiration_time_ms = match source.sent("offer") {
            Some(Json::String(end)) => timestamp::parse(end).map(jiff::Timestamp::as_millisecond),
            end => end.and_then(Json::as_i64),
        };
        Some(Offer {
            text: offer.get("text").and_then(Json::as_str).unwrap_or_default().to_owned(),
            has_expiration: matches!(offer.get("has_expiration"), Some(Json::Bool(true))),
            expiration_time_ms,
            code: buttons.iter().find(|it| it.r#type == "COPY_CODE").and_then(|it| it.code.clone()),
        })
    }
}

/// The first items of a list.
fn items<'d>(object: &'d Json<'d>, list: &str) -> &'d [Json<'d>] {
    match object.get(list) {
        Some(Json::Array(items)) => &items[..items.len().min(MAX_ITEMS)],
        _ => &[],
    }
}
