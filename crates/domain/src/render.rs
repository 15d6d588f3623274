//! Rendering: the texts of a template with values in place, and the message that WhatsApp is sent.
//!
//! The template is walked part by part; each part says which values it takes, `Intake` fetches
//! them, and everything that is wrong is told at once. Values are data: one that holds `{{1}}` is
//! put in as it is.

mod buttons;
mod fill;
mod intake;
pub(crate) mod media;
mod message;
mod value;
mod whatsapp;

use std::borrow::Cow;

use serde::Serialize;

use crate::{
    document::{Document, Json},
    rulebook::{ObjectSchema, Rulebook, WHATSAPP},
    template::Template,
    validation::reader::Reader,
    violation::Violations,
};
use intake::{Intake, Need, Place};
pub use message::{Button, Message, Offer, Texts};
use message::{Component, Parameter};

// How long the texts may be once they are filled: what the rulebook says of the texts themselves.
// A test holds the two together.
const HEADER_MAX: usize = 1_024;
const BODY_MAX: usize = 4_096;
const ADDRESS_MAX: usize = 2_000;
const CODE_MAX: usize = 128;

/// What becomes of a template and its values; as JSON `{"texts":{…},"payload":{…}}`.
#[derive(Debug, Serialize)]
pub struct Rendered<'a> {
    /// What the customer reads.
    pub texts: Texts<'a>,
    /// What WhatsApp is sent; only the recipient is still to be added.
    pub payload: Message<'a>,
}

/// No table says what values look like: that is up to the template.
static VALUES: ObjectSchema = ObjectSchema { title: "the values of a template", fields: &[] };

/// Puts values into a template, or tells everything that is wrong with them.
///
/// They look like `{"header":["…"],"body":["…","…"],"buttons":{"1":"…"}}`: strings in the order of
/// the placeholders; for a media header the address of the attachment; for buttons, by their
/// number from 0, the end of the address or the code. What the template does not take is left out.
///
/// The rulebook is the one that the template was read by; its account knows it. One of `whatsapp`
/// takes more than the above: values by name in an object, `{"body":{"first_name":"…"}}`; for a
/// media header `"https://…"`, `{"link":"…"}` or `{"id":"…"}`; `"cards":[…]` with the same members
/// for each card; and `"offer"`, the moment when it ends.
pub fn render<'a>(
    template: &'a Template,
    rulebook: &Rulebook,
    values: &'a Document<'a>,
) -> Result<Rendered<'a>, Violations> {
    let content = Document::parse(template.content().as_bytes()).ok();
    let content = content.as_ref().map_or(&Json::Null, Document::root);
    let mut rendered = None;
    Reader::read(
        values,
        &VALUES,
        |_| false,
        |report| {
            if matches!(values.root(), Json::Object(_)) {
                rendered = Some(if *rulebook == WHATSAPP {
                    whatsapp::whole(template, content, values.root(), report)
                } else {
                    whole(template, content, Intake::new(values.root(), report))
                });
            }
        },
    )?;
    Ok(rendered.expect("values that are no object have been refused"))
}

fn whole<'a>(
    template: &'a Template,
    content: &Json<'a>,
    mut intake: Intake<'a, '_>,
) -> Rendered<'a> {
    let components = list(Some(content), "components");
    let component = |kind| components.iter().find(|it| word(it, "type") == Some(kind));
    intake.strangers();
    let header = header(component("HEADER"), &mut intake);
    let body = body(component("BODY"), &mut intake);
    let (buttons, taken) = buttons::fill(component("BUTTONS"), &mut intake);
    let mut parts = Vec::with_capacity(2 + taken.len());
    if !header.parameters.is_empty() {
        parts.push(Component::Header { parameters: header.parameters });
    }
    if !body.parameters.is_empty() {
        parts.push(Component::Body { parameters: body.parameters });
    }
    parts.extend(taken);
    Rendered {
        texts: Texts {
            header: header.text,
            body: body.text,
            footer: component("FOOTER").and_then(|footer| text(footer, "text")),
            buttons,
            ..Texts::default()
        },
        payload: Message::new(template, parts),
    }
}

/// A part of the template with its values in place.
#[derive(Default)]
struct Filled<'a> {
    text: Option<Cow<'a, str>>,
    parameters: Vec<Parameter<'a>>,
}

fn header<'a>(component: Option<&Json<'a>>, intake: &mut Intake<'a, '_>) -> Filled<'a> {
    let format = component.and_then(|header| word(header, "format"));
    let example = component.and_then(|header| header.get("example"));
    match format {
        Some("TEXT") => {
            let samples = list(example, "header_text");
            words("header", HEADER_MAX, component, samples, intake)
        }
        Some("MEDIA") => {
            let sample = example.and_then(|example| word(example, "media_url"));
            attachment(sample, intake)
        }
        _ => words("header", HEADER_MAX, None, &[], intake),
    }
}

fn body<'a>(component: Option<&Json<'a>>, intake: &mut Intake<'a, '_>) -> Filled<'a> {
    let example = component.and_then(|body| body.get("example"));
    let samples = match list(example, "body_text") {
        [Json::Array(samples)] => samples,
        _ => &[][..],
    };
    words("body", BODY_MAX, component, samples, intake)
}

/// A part that is a text, with a value for each of its placeholders.
fn words<'a>(
    member: &'static str,
    max: usize,
    component: Option<&Json<'a>>,
    samples: &[Json<'_>],
    intake: &mut Intake<'a, '_>,
) -> Filled<'a> {
    let text = component.and_then(|component| text(component, "text"));
    let count = text.as_deref().map_or(0, fill::placeholders);
    let Some(text) = text.as_deref().filter(|_| count > 0) else {
        intake.nothing(member);
        return Filled { text, parameters: Vec::new() };
    };
    let need = |index: usize| Need {
        what: format!("the value of `{{{{{}}}}}` in the {member}", index + 1),
        sample: samples.get(index).and_then(Json::as_str),
    };
    let values = intake.list(member, count, need, |value| value::plain(value, usize::MAX));
    let Some(values) = values.into_iter().collect::<Option<Vec<&str>>>() else {
        return Filled::default();
    };
    match fill::fill(text, &values, max) {
        Ok(filled) => Filled {
            text: Some(Cow::Owned(filled)),
            parameters: values.into_iter().map(Parameter::text).collect(),
        },
        Err(length) => {
            intake.faults(Place::Member(member), vec![value::too_long(length, max)]);
            Filled::default()
        }
    }
}

/// A header that is a file, with the address it is fetched from.
fn attachment<'a>(sample: Option<&str>, intake: &mut Intake<'a, '_>) -> Filled<'a> {
    let need = |_| Need { what: "the address of the attachment".to_owned(), sample };
    let values = intake.list("header", 1, need, |url| value::attachment(url, ADDRESS_MAX));
    let Some(url) = values.first().copied().flatten() else { return Filled::default() };
    Filled {
        text: Some(Cow::Borrowed(url)),
        parameters: media::parameter(url).into_iter().collect(),
    }
}

/// The items of a list. What a store kept met the rules of its day: whatever else stands there is
/// treated as absent.
fn list<'t, 'a>(object: Option<&'t Json<'a>>, key: &str) -> &'t [Json<'a>] {
    match object.and_then(|object| object.get(key)) {
        Some(Json::Array(items)) => items,
        _ => &[],
    }
}

/// A string to look at.
fn word<'t>(object: &'t Json<'_>, key: &str) -> Option<&'t str> {
    object.get(key)?.as_str()
}

/// A string to keep: borrowed from the template unless it held escapes.
fn text<'a>(object: &Json<'a>, key: &str) -> Option<Cow<'a, str>> {
    match object.get(key)? {
        Json::String(text) => Some(text.clone()),
        _ => None,
    }
}
