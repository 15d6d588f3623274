//! Reads a message for WhatsApp's Cloud API, checks it against the live version of a template, and
//! fills in the texts that the recipient reads.
//!
//! [`crate::render`] turns values into a message; this module does the inverse. It translates the
//! parameters of the message back into values and lets the renderer fill them in, so that both have
//! the same texts and limits. Where Meta's answer to a faulty message is known from the field, the
//! code and the first words of the details equal it.

mod buttons;
mod cards;
mod expected;
mod findings;
mod message;
mod parameters;
mod position;
mod refusal;
mod tap_target;
mod translation;
mod translator;

pub use message::Message;
pub use refusal::{Filled, Refusal, RefusalCode, SendViolation};

use crate::{
    document::{Document, Json},
    render,
    template::{
        Template,
        lifecycle::{Hold, State},
    },
};
use expected::Expected;

/// Checks a message against the live version of its template. Returns the texts that the recipient
/// reads, or every violation in document order.
pub fn check(template: &Template, message: &Message<'_>) -> Result<Filled, Refusal> {
    let content = Document::parse(template.content().as_bytes()).ok();
    let content = content.as_ref().map_or(&Json::Null, Document::root);
    let expected = Expected::of(template, content);
    let translation = translator::translate(&expected, message.components());
    let texts = render::fill_whatsapp(template, content, &translation.values).map(|texts| {
        serde_json::to_string(&texts).expect("texts have string keys and no failing values")
    });
    let (texts, violations) = match texts {
        Ok(texts) => (Some(texts), None),
        Err(violations) => (None, Some(violations)),
    };
    let findings = translation.into_findings(violations.as_ref());
    findings.into_result(message.root(), texts.map(|texts| Filled { texts }))
}

/// The version of a template to send, given the state of the template with this name in this
/// language; `None` if there is no such template.
pub fn live_version(name: &str, language: &str, state: Option<&State>) -> Result<u64, Refusal> {
    let hold = state.and_then(|state| state.hold);
    if hold == Some(Hold::Paused) {
        let details = format!(
            "template name ({name}) in {language} is paused, so it cannot be sent; resume it or wait until the pause ends"
        );
        return Err(Refusal::of_template(RefusalCode::TemplatePaused, details));
    }
    if hold == Some(Hold::Disabled) {
        let details = format!(
            "template name ({name}) in {language} is disabled, so it can never be sent again"
        );
        return Err(Refusal::of_template(RefusalCode::TemplateDisabled, details));
    }
    state.and_then(State::live_version).ok_or_else(|| {
        let details = match state {
            None => format!("template name ({name}) does not exist in {language}"),
            Some(state) => format!(
                "template name ({name}) does not exist in {language}: it has no approved version, its status is {}",
                state.status().as_str()
            ),
        };
        Refusal::of_template(RefusalCode::TemplateUnknown, details)
    })
}
