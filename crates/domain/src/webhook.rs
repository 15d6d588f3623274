//! What is sent about endpoints that events are delivered to: the documents that register and
//! change one, rotate its secret, and have events delivered once more; and how they are sent events.

pub mod delivery;
mod format;

use jiff::Timestamp;

use crate::{
    document::{Document, Json},
    rulebook::{
        Field, FieldType, ObjectSchema, Presence, Rulebook, StringFormat, StringRule, WHATSAPP,
    },
    template::lifecycle::EventType,
    validation::{reader::Reader, timestamp},
    violation::{Rule, Violation, ViolationCollector, Violations},
};

pub use format::{Format, INVALID_FORMAT, Update, rejection_word, status_word};

const fn text_of(max: usize, form: StringFormat) -> FieldType {
    FieldType::String(StringRule { max, whatsapp_max: None, multiline: false, format: form })
}

const fn url(presence: Presence) -> Field {
    Field {
        name: "url",
        presence,
        field_type: text_of(2_000, StringFormat::Url),
        about: "Where events are sent. It begins with `https://`, unless the operator allows http.",
    }
}

const EVENTS: Field = Field {
    name: "events",
    presence: Presence::Optional,
    field_type: FieldType::ChoiceList(EventType::VALUES),
    about: "Which types of event are sent; an empty list, like none at all, means every type.",
};

/// Never kept: whoever wants to be called proves with it that the address is his.
const VERIFY_TOKEN: Field = Field {
    name: "verify_token",
    presence: Presence::Optional,
    field_type: text_of(256, StringFormat::Free),
    about: "With the format `whatsapp`: what the address is asked with, as `hub.verify_token`, before anything is kept. It is kept nowhere.",
};

/// The form of the document that registers an endpoint.
pub static REGISTRATION: ObjectSchema = ObjectSchema {
    title: "an endpoint",
    fields: &[
        url(Presence::Required),
        EVENTS,
        Field {
            name: "format",
            presence: Presence::Optional,
            field_type: FieldType::Choice(Format::VALUES),
            about: "How events are sent: `galley`, as the feed has them, unless something else is said; `whatsapp`, as Meta sends them, for accounts with the rulebook `whatsapp`. It never changes.",
        },
        VERIFY_TOKEN,
        Field {
            name: "secret",
            presence: Presence::Optional,
            field_type: text_of(256, StringFormat::Secret),
            about: "With the format `whatsapp`: the app secret that receivers know already. Without it one is made.",
        },
    ],
};

/// The form of the document that subscribes an address, as the Graph API has it.
pub static SUBSCRIPTION: ObjectSchema = ObjectSchema {
    title: "a subscription",
    fields: &[
        Field {
            name: "override_callback_uri",
            presence: Presence::Optional,
            field_type: text_of(200, StringFormat::Url),
            about: "Where changes of templates are sent.",
        },
        VERIFY_TOKEN,
    ],
};

/// The form of the document that changes one.
pub static CHANGE: ObjectSchema = ObjectSchema {
    title: "a change of an endpoint",
    fields: &[
        url(Presence::Optional),
        VERIFY_TOKEN,
        EVENTS,
        Field {
            name: "disabled",
            presence: Presence::Optional,
            field_type: FieldType::Bool,
            about: "`true` switches it off; `false` switches it on again, and it goes on where it was.",
        },
    ],
};

/// The form of the document that rotates a secret.
pub static ROTATION: ObjectSchema = ObjectSchema {
    title: "a rotation",
    fields: &[Field {
        name: "force",
        presence: Presence::Optional,
        field_type: FieldType::Bool,
        about: "`true` rotates although the rotation before has not ended: the oldest secret is worth nothing from now on.",
    }],
};

/// The form of the document that has events delivered once more.
pub static REPLAY: ObjectSchema = ObjectSchema {
    title: "a replay",
    fields: &[
        Field {
            name: "event",
            presence: Presence::Optional,
            field_type: FieldType::PositiveInteger,
            about: "The `seq` of one event.",
        },
        Field {
            name: "since",
            presence: Presence::Optional,
            field_type: text_of(40, StringFormat::Timestamp),
            about: "Every event since this moment.",
        },
    ],
};

/// A text that only its owner and its receiver know. It stays out of logs.
#[derive(Clone, PartialEq, Eq)]
pub struct Redacted(pub String);

impl std::fmt::Debug for Redacted {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Redacted(…)")
    }
}

/// An endpoint to be registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registration {
    /// Where events are sent.
    pub url: String,
    /// Which types; none: all of them.
    pub events: Vec<EventType>,
    /// How.
    pub format: Format,
    /// What the address is asked with; there with every format that asks.
    pub verify_token: Option<Redacted>,
    /// A secret that the receiver knows already.
    pub secret: Option<Redacted>,
}

/// An address to be subscribed by way of the Graph API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscription {
    /// Where changes are sent.
    pub url: String,
    /// What the address is asked with.
    pub verify_token: Redacted,
}

/// What of an endpoint is to change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Another address.
    pub url: Option<String>,
    /// What that address, or else the present one, is asked with.
    pub verify_token: Option<Redacted>,
    /// Other types; an empty list: all of them.
    pub events: Option<Vec<EventType>>,
    /// Switched off, or on again.
    pub disabled: Option<bool>,
}

/// How a secret is to be rotated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rotation {
    /// Also while the rotation before has not ended.
    pub force: bool,
}

/// What is to be delivered once more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replay {
    /// One event, by its number.
    Event(u64),
    /// Every event since then.
    Since(Timestamp),
}

impl Registration {
    /// Reads the document: an endpoint of an account with that rulebook, or everything that is
    /// wrong with it.
    pub fn read(document: &Document<'_>, rulebook: &str) -> Result<Self, Violations> {
        let root = document.root();
        let format = text(root, "format").and_then(|word| Format::parse(&word));
        let format = format.unwrap_or(Format::Galley);
        let also = |report: &mut ViolationCollector| {
            let whatsapp = format == Format::Whatsapp;
            if whatsapp && Rulebook::by_name(rulebook) != Some(&WHATSAPP) {
                let message = "belongs to accounts with the rulebook `whatsapp`, and this is none";
                misfit(report, "/format", message, "leave it out");
            }
            ask_for_token(report, format, true, root);
            if !whatsapp && root.get("secret").is_some() {
                let message = "can be chosen with the format `whatsapp` only";
                misfit(report, "/secret", message, "leave it out: one is made and told");
            }
        };
        Reader::read(document, &REGISTRATION, |_| true, also)?;
        Ok(Self {
            url: text(root, "url").expect("the table asks for it"),
            events: events(root).unwrap_or_default(),
            format,
            verify_token: text(root, "verify_token").map(Redacted),
            secret: text(root, "secret").map(Redacted),
        })
    }
}

impl Subscription {
    /// Reads the document: a subscription, nothing if it names no address, or everything that is
    /// wrong with it.
    pub fn read(document: &Document<'_>) -> Result<Option<Self>, Violations> {
        let root = document.root();
        let named = root.get("override_callback_uri").is_some();
        let also =
            |report: &mut ViolationCollector| ask_for_token(report, Format::Whatsapp, named, root);
        Reader::read(document, &SUBSCRIPTION, |_| true, also)?;
        let url = text(root, "override_callback_uri");
        let verify_token = text(root, "verify_token").map(Redacted);
        Ok(url.zip(verify_token).map(|(url, verify_token)| Self { url, verify_token }))
    }
}

impl Change {
    /// Reads the document: a change of an endpoint of that format, or everything that is wrong
    /// with it.
    pub fn read(document: &Document<'_>, format: Format) -> Result<Self, Violations> {
        let root = document.root();
        let also = |report: &mut ViolationCollector| {
            if given(root, &CHANGE) == Some(0) {
                let hint = "send `url`, `verify_token`, `events` or `disabled`";
                whole(report, Rule::NothingToChange, "changes nothing", hint);
            }
            ask_for_token(report, format, root.get("url").is_some(), root);
        };
        Reader::read(document, &CHANGE, |_| true, also)?;
        Ok(Self {
            url: text(root, "url"),
            verify_token: text(root, "verify_token").map(Redacted),
            events: events(root),
            disabled: flag(root, "disabled"),
        })
    }
}

/// A token is needed for an address that is asked, and of no use for any other.
fn ask_for_token(report: &mut ViolationCollector, format: Format, address: bool, root: &Json<'_>) {
    let hint = "it is what the receiver compares `hub.verify_token` with";
    match (format, root.get("verify_token")) {
        (Format::Whatsapp, None) if address && matches!(root, Json::Object(_)) => {
            misfit(report, "/verify_token", "is needed with the format `whatsapp`", hint);
        }
        (Format::Galley, Some(_)) => {
            let message = "belongs to the format `whatsapp`";
            misfit(report, "/verify_token", message, "leave it out: no other format asks");
        }
        _ => {}
    }
}

/// Adds what does not fit the format of an endpoint.
fn misfit(report: &mut ViolationCollector, pointer: &str, message: &str, hint: &str) {
    report.add(|| Violation {
        pointer: pointer.to_owned(),
        rule: Rule::WebhookFormat,
        message: message.to_owned(),
        hint: Some(hint.to_owned()),
        span: None,
    });
}

impl Rotation {
    /// Reads the document: how to rotate, or everything that is wrong with it.
    pub fn read(document: &Document<'_>) -> Result<Self, Violations> {
        Reader::read(document, &ROTATION, |_| true, |_| {})?;
        Ok(Self { force: flag(document.root(), "force").unwrap_or_default() })
    }
}

impl Replay {
    /// Reads the document: what to deliver once more, or everything that is wrong with it.
    pub fn read(document: &Document<'_>) -> Result<Self, Violations> {
        let root = document.root();
        Reader::read(
            document,
            &REPLAY,
            |_| true,
            |report| {
                let message = match given(root, &REPLAY) {
                    Some(0) => "names neither an event nor a moment",
                    Some(2..) => "names both an event and a moment",
                    _ => return,
                };
                whole(report, Rule::ReplayWhat, message, "send either `event` or `since`");
            },
        )?;
        let since = || root.get("since").and_then(Json::as_str).and_then(timestamp::parse);
        let event = root.get("event").and_then(Json::as_u64).map(Self::Event);
        Ok(event.or_else(|| since().map(Self::Since)).expect("one of them is there"))
    }
}

/// How many of its fields the document has; none if it is no object.
fn given(root: &Json<'_>, part: &'static ObjectSchema) -> Option<usize> {
    let count = || part.fields.iter().filter(|field| root.get(field.name).is_some()).count();
    matches!(root, Json::Object(_)).then(count)
}

/// Adds what is wrong with the document as a whole.
fn whole(report: &mut ViolationCollector, rule: Rule, message: &str, hint: &str) {
    report.add(|| Violation {
        pointer: String::new(),
        rule,
        message: message.to_owned(),
        hint: Some(hint.to_owned()),
        span: None,
    });
}

fn text(root: &Json<'_>, key: &str) -> Option<String> {
    root.get(key).and_then(Json::as_str).map(str::to_owned)
}

fn flag(root: &Json<'_>, key: &str) -> Option<bool> {
    match root.get(key)? {
        Json::Bool(flag) => Some(*flag),
        _ => None,
    }
}

/// The types that are listed, each once.
fn events(root: &Json<'_>) -> Option<Vec<EventType>> {
    let Json::Array(items) = root.get("events")? else { return None };
    let mut events = Vec::with_capacity(items.len());
    for event in items.iter().filter_map(|item| item.as_str().and_then(EventType::parse)) {
        if !events.contains(&event) {
            events.push(event);
        }
    }
    Some(events)
}
