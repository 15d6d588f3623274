//! Webhook endpoints: the documents that register and change an endpoint, rotate its secret and
//! replay events, and the format and policy of deliveries.

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

pub use format::{CATEGORY_NOTICE, Format, PauseTitle, RejectionReason, Update, status_event};

const fn string(max: usize, form: StringFormat) -> FieldType {
    FieldType::String(StringRule { max, whatsapp_max: None, multiline: false, format: form })
}

const fn url(presence: Presence) -> Field {
    Field {
        name: "url",
        presence,
        field_type: string(2_000, StringFormat::Url),
        about: "The URL to which events are sent. It starts with `https://`, unless the operator allows http.",
    }
}

const EVENTS: Field = Field {
    name: "events",
    presence: Presence::Optional,
    field_type: FieldType::ChoiceList(EventType::VALUES),
    about: "The event types to send. An empty or missing list means all types.",
};

/// Never stored: with it, the owner of an endpoint proves control of the URL.
const VERIFY_TOKEN: Field = Field {
    name: "verify_token",
    presence: Presence::Optional,
    field_type: string(256, StringFormat::Free),
    about: "For the format `whatsapp`: the token that Galley sends as `hub.verify_token` to verify the URL before storing the endpoint. The token is not stored.",
};

/// The schema of the document that registers an endpoint.
pub static REGISTRATION: ObjectSchema = ObjectSchema {
    title: "an endpoint",
    fields: &[
        url(Presence::Required),
        EVENTS,
        Field {
            name: "format",
            presence: Presence::Optional,
            field_type: FieldType::Choice(Format::VALUES),
            about: "The format of events: `galley` (default), as in the event feed; or `whatsapp`, as Meta sends them, for accounts with the rulebook `whatsapp`. It cannot be changed.",
        },
        VERIFY_TOKEN,
        Field {
            name: "secret",
            presence: Presence::Optional,
            field_type: string(256, StringFormat::Secret),
            about: "For the format `whatsapp`: the app secret that the receiver already has. If omitted, Galley generates one.",
        },
    ],
};

/// The schema of the Graph API's document that subscribes a URL.
pub static SUBSCRIPTION: ObjectSchema = ObjectSchema {
    title: "a subscription",
    fields: &[
        Field {
            name: "override_callback_uri",
            presence: Presence::Optional,
            field_type: string(200, StringFormat::Url),
            about: "The URL to which changes of templates are sent.",
        },
        VERIFY_TOKEN,
    ],
};

/// The schema of the document that changes an endpoint.
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
            about: "`true` disables the endpoint; `false` enables it again, and deliveries resume where they stopped.",
        },
    ],
};

/// The schema of the document that rotates a secret.
pub static ROTATION: ObjectSchema = ObjectSchema {
    title: "a rotation",
    fields: &[Field {
        name: "force",
        presence: Presence::Optional,
        field_type: FieldType::Bool,
        about: "`true` rotates even while the previous rotation is in progress; the oldest secret becomes invalid immediately.",
    }],
};

/// The schema of the document that replays events.
pub static REPLAY: ObjectSchema = ObjectSchema {
    title: "a replay",
    fields: &[
        Field {
            name: "event",
            presence: Presence::Optional,
            field_type: FieldType::PositiveInteger,
            about: "The `seq` of the event to replay.",
        },
        Field {
            name: "since",
            presence: Presence::Optional,
            field_type: string(40, StringFormat::Timestamp),
            about: "The timestamp from which to replay all events.",
        },
    ],
};

/// A secret string, which does not appear in logs.
#[derive(Clone, PartialEq, Eq)]
pub struct Redacted(pub String);

impl std::fmt::Debug for Redacted {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Redacted(…)")
    }
}

/// An endpoint to register.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registration {
    /// The URL to which events are sent.
    pub url: String,
    /// The event types to send; empty for all types.
    pub events: Vec<EventType>,
    /// The format of events.
    pub format: Format,
    /// The token to verify the URL with; present for every format that verifies URLs.
    pub verify_token: Option<Redacted>,
    /// A secret that the receiver already has.
    pub secret: Option<Redacted>,
}

/// A URL to subscribe through the Graph API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscription {
    /// The URL to which changes are sent.
    pub url: String,
    /// The token to verify the URL with.
    pub verify_token: Redacted,
}

/// A change of an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The new URL.
    pub url: Option<String>,
    /// The token to verify the new URL with, or else the current one.
    pub verify_token: Option<Redacted>,
    /// The new event types; empty for all types.
    pub events: Option<Vec<EventType>>,
    /// Whether to disable or enable it.
    pub disabled: Option<bool>,
}

/// A rotation of a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rotation {
    /// Whether to rotate even while the previous rotation is in progress.
    pub force: bool,
}

/// The events to replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replay {
    /// One event, by its `seq`.
    Event(u64),
    /// All events from this timestamp.
    Since(Timestamp),
}

impl Registration {
    /// Reads a document for an account with that rulebook. Returns the endpoint or all violations.
    pub fn read(document: &Document<'_>, rulebook: &str) -> Result<Self, Violations> {
        let root = document.root();
        let format = text(root, "format").and_then(|value| Format::parse(&value));
        let format = format.unwrap_or(Format::Galley);
        let also = |violations: &mut ViolationCollector| {
            let whatsapp = format == Format::Whatsapp;
            if whatsapp && Rulebook::by_name(rulebook) != Some(&WHATSAPP) {
                let message = "is only available to accounts with the rulebook `whatsapp`";
                report_format_violation(violations, "/format", message, "leave it out");
            }
            check_verify_token(violations, format, true, root);
            if !whatsapp && root.get("secret").is_some() {
                let message = "can only be set with the format `whatsapp`";
                report_format_violation(
                    violations,
                    "/secret",
                    message,
                    "leave it out; Galley generates one and returns it",
                );
            }
        };
        Reader::read(document, &REGISTRATION, |_| true, also)?;
        Ok(Self {
            url: text(root, "url").expect("the schema requires the field"),
            events: events(root).unwrap_or_default(),
            format,
            verify_token: text(root, "verify_token").map(Redacted),
            secret: text(root, "secret").map(Redacted),
        })
    }
}

impl Subscription {
    /// Reads a document. Returns the subscription, `None` if it has no URL, or all violations.
    pub fn read(document: &Document<'_>) -> Result<Option<Self>, Violations> {
        let root = document.root();
        let has_url = root.get("override_callback_uri").is_some();
        let also = |violations: &mut ViolationCollector| {
            check_verify_token(violations, Format::Whatsapp, has_url, root);
        };
        Reader::read(document, &SUBSCRIPTION, |_| true, also)?;
        let url = text(root, "override_callback_uri");
        let verify_token = text(root, "verify_token").map(Redacted);
        Ok(url.zip(verify_token).map(|(url, verify_token)| Self { url, verify_token }))
    }
}

impl Change {
    /// Reads a document for an endpoint of that format. Returns the change or all violations.
    pub fn read(document: &Document<'_>, format: Format) -> Result<Self, Violations> {
        let root = document.root();
        let also = |violations: &mut ViolationCollector| {
            if field_count(root, &CHANGE) == Some(0) {
                let hint = "send `url`, `verify_token`, `events` or `disabled`";
                report_document_violation(
                    violations,
                    Rule::NothingToChange,
                    "changes nothing",
                    hint,
                );
            }
            check_verify_token(violations, format, root.get("url").is_some(), root);
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

/// Checks that there is a token if Galley verifies the URL, and none otherwise.
fn check_verify_token(
    violations: &mut ViolationCollector,
    format: Format,
    has_url: bool,
    root: &Json<'_>,
) {
    let hint = "send the token with which the receiver compares `hub.verify_token`";
    match (format, root.get("verify_token")) {
        (Format::Whatsapp, None) if has_url && matches!(root, Json::Object(_)) => {
            report_format_violation(
                violations,
                "/verify_token",
                "is required for the format `whatsapp`",
                hint,
            );
        }
        (Format::Galley, Some(_)) => {
            let message = "is only used with the format `whatsapp`";
            report_format_violation(violations, "/verify_token", message, "leave it out");
        }
        _ => {}
    }
}

fn report_format_violation(
    violations: &mut ViolationCollector,
    pointer: &str,
    message: &str,
    hint: &str,
) {
    violations.add(|| Violation {
        pointer: pointer.to_owned(),
        rule: Rule::WebhookFormat,
        message: message.to_owned(),
        hint: Some(hint.to_owned()),
        span: None,
    });
}

impl Rotation {
    /// Reads a document. Returns the rotation or all violations.
    pub fn read(document: &Document<'_>) -> Result<Self, Violations> {
        Reader::read(document, &ROTATION, |_| true, |_| {})?;
        Ok(Self { force: flag(document.root(), "force").unwrap_or_default() })
    }
}

impl Replay {
    /// Reads a document. Returns the events to replay or all violations.
    pub fn read(document: &Document<'_>) -> Result<Self, Violations> {
        let root = document.root();
        Reader::read(
            document,
            &REPLAY,
            |_| true,
            |violations| {
                let message = match field_count(root, &REPLAY) {
                    Some(0) => "has neither `event` nor `since`",
                    Some(2..) => "has both `event` and `since`",
                    _ => return,
                };
                report_document_violation(
                    violations,
                    Rule::ReplayWhat,
                    message,
                    "send either `event` or `since`",
                );
            },
        )?;
        let since = || root.get("since").and_then(Json::as_str).and_then(timestamp::parse);
        let event = root.get("event").and_then(Json::as_positive_integer).map(Self::Event);
        Ok(event.or_else(|| since().map(Self::Since)).expect("the document has one of them"))
    }
}

/// The number of fields that the document has; `None` if it is not an object.
fn field_count(root: &Json<'_>, schema: &'static ObjectSchema) -> Option<usize> {
    let count = || schema.fields.iter().filter(|field| root.get(field.name).is_some()).count();
    matches!(root, Json::Object(_)).then(count)
}

fn report_document_violation(
    violations: &mut ViolationCollector,
    rule: Rule,
    message: &str,
    hint: &str,
) {
    violations.add(|| Violation {
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

/// The listed event types without duplicates.
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
