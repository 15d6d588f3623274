//! Renders a template with values: the texts that the recipient sees and the message to send to
//! WhatsApp.
//!
//! The renderer goes through the components of the template. For each of them, a `ValueReader`
//! reads the values that it takes, and every violation is collected. Values are data: a value that
//! contains `{{1}}` is inserted unchanged.

mod buttons;
pub(crate) mod fill;
pub(crate) mod media;
mod message;
mod value;
mod value_reader;
pub(crate) mod whatsapp;

use std::borrow::Cow;

use serde::Serialize;

use crate::{
    document::{Document, Json},
    rulebook::{ObjectSchema, Rulebook, WHATSAPP},
    template::Template,
    validation::reader::Reader,
    violation::{ViolationCollector, Violations},
};
pub use message::{Button, Message, Offer, Texts};
use message::{Component, Parameter};
use value_reader::{ExpectedValue, ValueReader};

// Maximum lengths of the filled texts, in characters. They equal the rulebook's limits for the
// texts themselves; a test compares them.
const HEADER_MAX: usize = 1_024;
const BODY_MAX: usize = 4_096;
const ADDRESS_MAX: usize = 2_000;
const CODE_MAX: usize = 128;

/// The members of the values document.
const MEMBERS: [&str; 3] = ["header", "body", "buttons"];

/// A rendered template; as JSON `{"texts":{…},"payload":{…}}`.
#[derive(Debug, Serialize)]
pub struct Rendered<'a> {
    /// The texts that the recipient sees.
    pub texts: Texts<'a>,
    /// The message for WhatsApp's API, complete except for the recipient.
    pub payload: Message<'a>,
}

/// The schema of values is empty: the template determines which values are expected.
static VALUES: ObjectSchema = ObjectSchema { title: "the values of a template", fields: &[] };

/// Renders a template with values, or returns every violation of the values.
///
/// Values look like `{"header":["…"],"body":["…","…"],"buttons":{"1":"…"}}`. `header` and `body`
/// list strings in the order of the placeholders; for a media header, the URL of the attachment.
/// `buttons` has a button's index, counted from 0, as key and the end of its URL or its code as
/// value. Values that the template does not take must be left out.
///
/// `rulebook` is the rulebook of the template's account. `whatsapp` accepts more: values by name
/// in an object, `{"body":{"first_name":"…"}}`; for a media header `"https://…"`, `{"link":"…"}`
/// or `{"id":"…"}`; `"cards":[…]` with the same members for each card; and `"offer"`, the
/// timestamp at which the offer ends.
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
        |violations| {
            if matches!(values.root(), Json::Object(_)) {
                let values = ValueReader::root(values.root());
                rendered = Some(if *rulebook == WHATSAPP {
                    whatsapp::render(template, content, &values, violations)
                } else {
                    render_v1(template, content, &values, violations)
                });
            }
        },
    )?;
    Ok(rendered.expect("the reader rejects values that are not an object"))
}

/// Fills a template of the `whatsapp` rulebook with values that this crate has built: an object as
/// [`render`] describes it.
pub(crate) fn fill_whatsapp<'a>(
    template: &'a Template,
    content: &Json<'a>,
    values: &'a Json<'a>,
) -> Result<Texts<'a>, Violations> {
    let mut violations = ViolationCollector::default();
    let rendered = whatsapp::render(template, content, &ValueReader::root(values), &mut violations);
    violations.into_result(Some(rendered.texts))
}

/// What is wrong with a URL in a message, if anything.
pub(crate) fn url_problem(url: &str) -> Option<String> {
    value::check_url(url, ADDRESS_MAX).into_iter().next().map(|it| it.message)
}

fn render_v1<'a>(
    template: &'a Template,
    content: &Json<'a>,
    values: &ValueReader<'a, '_>,
    violations: &mut ViolationCollector,
) -> Rendered<'a> {
    let components = array_field(Some(content), "components");
    let component = |kind| components.iter().find(|it| str_field(it, "type") == Some(kind));
    values.reject_unknown_members(&MEMBERS, violations);
    let header = header(component("HEADER"), &values.field("header"), violations);
    let body = body(component("BODY"), &values.field("body"), violations);
    let (buttons, button_parameters) =
        buttons::fill(component("BUTTONS"), &values.field("buttons"), violations);
    let mut sent = Vec::with_capacity(2 + button_parameters.len());
    if !header.parameters.is_empty() {
        sent.push(Component::Header { parameters: header.parameters });
    }
    if !body.parameters.is_empty() {
        sent.push(Component::Body { parameters: body.parameters });
    }
    sent.extend(button_parameters);
    Rendered {
        texts: Texts {
            header: header.text,
            body: body.text,
            footer: component("FOOTER").and_then(|footer| text_field(footer, "text")),
            buttons,
            ..Texts::default()
        },
        payload: Message::new(template, sent),
    }
}

/// A component with its values filled in.
#[derive(Default)]
struct Filled<'a> {
    text: Option<Cow<'a, str>>,
    parameters: Vec<Parameter<'a>>,
}

fn header<'a>(
    component: Option<&Json<'a>>,
    values: &ValueReader<'a, '_>,
    violations: &mut ViolationCollector,
) -> Filled<'a> {
    let format = component.and_then(|header| str_field(header, "format"));
    let example = component.and_then(|header| header.get("example"));
    match format {
        Some("TEXT") => {
            let samples = array_field(example, "header_text");
            fill_text("header", HEADER_MAX, component, samples, values, violations)
        }
        Some("MEDIA") => {
            let sample = example.and_then(|example| str_field(example, "media_url"));
            attachment(sample, values, violations)
        }
        _ => fill_text("header", HEADER_MAX, None, &[], values, violations),
    }
}

fn body<'a>(
    component: Option<&Json<'a>>,
    values: &ValueReader<'a, '_>,
    violations: &mut ViolationCollector,
) -> Filled<'a> {
    let example = component.and_then(|body| body.get("example"));
    let samples = match array_field(example, "body_text") {
        [Json::Array(samples)] => samples,
        _ => &[][..],
    };
    fill_text("body", BODY_MAX, component, samples, values, violations)
}

/// Fills the text of a component with one value for each placeholder.
fn fill_text<'a>(
    member: &'static str,
    max: usize,
    component: Option<&Json<'a>>,
    samples: &[Json<'_>],
    values: &ValueReader<'a, '_>,
    violations: &mut ViolationCollector,
) -> Filled<'a> {
    let text = component.and_then(|component| text_field(component, "text"));
    let count = text.as_deref().map_or(0, fill::placeholder_count);
    let Some(text) = text.as_deref().filter(|_| count > 0) else {
        values.expect_nothing("this template does not take values here", violations);
        return Filled { text, parameters: Vec::new() };
    };
    if !values.expect_array("write a list of strings", violations) {
        return Filled::default();
    }
    let expected = |index: usize| ExpectedValue {
        description: format!("the value of `{{{{{}}}}}` in the {member}", index + 1),
        sample: samples.get(index).and_then(Json::as_str),
    };
    let check = |value: &str| value::check_text(value, usize::MAX);
    let Some(strings) = values.strings(count, expected, check, violations) else {
        return Filled::default();
    };
    match fill::fill(text, &strings, max) {
        Ok(filled) => Filled {
            text: Some(Cow::Owned(filled)),
            parameters: strings.into_iter().map(Parameter::text).collect(),
        },
        Err(length) => {
            values.report(violations, || value::filled_text_too_long(length, max));
            Filled::default()
        }
    }
}

/// A header that is a file at a URL.
fn attachment<'a>(
    sample: Option<&str>,
    values: &ValueReader<'a, '_>,
    violations: &mut ViolationCollector,
) -> Filled<'a> {
    if !values.expect_array("write a list of strings", violations) {
        return Filled::default();
    }
    let expected =
        |_| ExpectedValue { description: "the URL of the attachment".to_owned(), sample };
    let check = |url: &str| value::check_attachment_url(url, ADDRESS_MAX);
    let urls = values.strings(1, expected, check, violations).unwrap_or_default();
    let Some(url) = urls.first().copied() else { return Filled::default() };
    Filled {
        text: Some(Cow::Borrowed(url)),
        parameters: media::parameter(url).into_iter().collect(),
    }
}

// Helpers for stored templates. A stored template met the rules of its time: a value of an
// unexpected type is treated as absent.

/// The items of an array.
pub(crate) fn array_field<'t, 'a>(object: Option<&'t Json<'a>>, key: &str) -> &'t [Json<'a>] {
    match object.and_then(|object| object.get(key)) {
        Some(Json::Array(items)) => items,
        _ => &[],
    }
}

/// A string to compare.
pub(crate) fn str_field<'t>(object: &'t Json<'_>, key: &str) -> Option<&'t str> {
    object.get(key)?.as_str()
}

/// A string to return, borrowed from the template unless it has escapes.
fn text_field<'a>(object: &Json<'a>, key: &str) -> Option<Cow<'a, str>> {
    match object.get(key)? {
        Json::String(text) => Some(text.clone()),
        _ => None,
    }
}
