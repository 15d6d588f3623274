//! What is sent about endpoints that events are delivered to: the documents that register and
//! change one, rotate its secret, and have events delivered once more.

use jiff::Timestamp;

use crate::{
    json::{Document, Json},
    lifecycle::EventType,
    moment,
    reader::Reader,
    rulebook::{Field, Form, Part, Presence, Shape, Text},
    violation::{Report, Rule, Violation, Violations},
};

const fn url(presence: Presence) -> Field {
    Field {
        name: "url",
        presence,
        shape: Shape::Text(Text {
            max: 2_000,
            whatsapp_max: None,
            multiline: false,
            form: Form::Url,
        }),
        about: "Where events are sent. It begins with `https://`, unless the operator allows http.",
    }
}

const EVENTS: Field = Field {
    name: "events",
    presence: Presence::Optional,
    shape: Shape::Words(EventType::WORDS),
    about: "Which types of event are sent; an empty list, like none at all, means every type.",
};

/// The form of the document that registers an endpoint.
pub static REGISTRATION: Part =
    Part { title: "an endpoint", fields: &[url(Presence::Required), EVENTS] };

/// The form of the document that changes one.
pub static CHANGE: Part = Part {
    title: "a change of an endpoint",
    fields: &[
        url(Presence::Optional),
        EVENTS,
        Field {
            name: "disabled",
            presence: Presence::Optional,
            shape: Shape::Flag,
            about: "`true` switches it off; `false` switches it on again, and it goes on where it was.",
        },
    ],
};

/// The form of the document that rotates a secret.
pub static ROTATION: Part = Part {
    title: "a rotation",
    fields: &[Field {
        name: "force",
        presence: Presence::Optional,
        shape: Shape::Flag,
        about: "`true` rotates although the rotation before has not ended: the oldest secret is worth nothing from now on.",
    }],
};

/// The form of the document that has events delivered once more.
pub static REPLAY: Part = Part {
    title: "a replay",
    fields: &[
        Field {
            name: "event",
            presence: Presence::Optional,
            shape: Shape::Number,
            about: "The `seq` of one event.",
        },
        Field {
            name: "since",
            presence: Presence::Optional,
            shape: Shape::Text(Text {
                max: 40,
                whatsapp_max: None,
                multiline: false,
                form: Form::Moment,
            }),
            about: "Every event since this moment.",
        },
    ],
};

/// An endpoint to be registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registration {
    /// Where events are sent.
    pub url: String,
    /// Which types; none: all of them.
    pub events: Vec<EventType>,
}

/// What of an endpoint is to change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Another address.
    pub url: Option<String>,
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
    /// Reads the document: an endpoint, or everything that is wrong with it.
    pub fn read(document: &Document<'_>) -> Result<Self, Violations> {
        Reader::read(document, &REGISTRATION, |_| true, |_| {})?;
        let root = document.root();
        Ok(Self {
            url: text(root, "url").expect("the table asks for it"),
            events: events(root).unwrap_or_default(),
        })
    }
}

impl Change {
    /// Reads the document: a change, or everything that is wrong with it.
    pub fn read(document: &Document<'_>) -> Result<Self, Violations> {
        let root = document.root();
        Reader::read(
            document,
            &CHANGE,
            |_| true,
            |report| {
                if given(root, &CHANGE) == Some(0) {
                    let hint = "send `url`, `events` or `disabled`";
                    whole(report, Rule::NothingToChange, "changes nothing", hint);
                }
            },
        )?;
        Ok(Self { url: text(root, "url"), events: events(root), disabled: flag(root, "disabled") })
    }
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
        let since = || root.get("since").and_then(Json::as_text).and_then(moment::read);
        let event = root.get("event").and_then(Json::as_number).map(Self::Event);
        Ok(event.or_else(|| since().map(Self::Since)).expect("one of them is there"))
    }
}

/// How many of its fields the document has; none if it is no object.
fn given(root: &Json<'_>, part: &'static Part) -> Option<usize> {
    let count = || part.fields.iter().filter(|field| root.get(field.name).is_some()).count();
    matches!(root, Json::Object(_)).then(count)
}

/// Adds what is wrong with the document as a whole.
fn whole(report: &mut Report, rule: Rule, message: &str, hint: &str) {
    report.add(|| Violation {
        pointer: String::new(),
        rule,
        message: message.to_owned(),
        hint: Some(hint.to_owned()),
        span: None,
    });
}

fn text(root: &Json<'_>, key: &str) -> Option<String> {
    root.get(key).and_then(Json::as_text).map(str::to_owned)
}

fn flag(root: &Json<'_>, key: &str) -> Option<bool> {
    match root.get(key)? {
        Json::Flag(flag) => Some(*flag),
        _ => None,
    }
}

/// The types that are listed, each once.
fn events(root: &Json<'_>) -> Option<Vec<EventType>> {
    let Json::List(items) = root.get("events")? else { return None };
    let mut events = Vec::with_capacity(items.len());
    for event in items.iter().filter_map(|item| item.as_text().and_then(EventType::named)) {
        if !events.contains(&event) {
            events.push(event);
        }
    }
    Some(events)
}
