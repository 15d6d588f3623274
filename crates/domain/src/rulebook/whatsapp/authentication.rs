//! Authentication templates: WhatsApp writes their texts itself.

use super::{Category, Rule};
use crate::{
    rulebook::view::{DocumentView, ObjectView},
    violation::{TextViolation, ViolationCollector},
};

/// What an authentication template is made of.
const COMPONENTS: &[&str] = &["BODY", "FOOTER", "BUTTONS"];

/// The fields that only such a template has.
const FIELDS: &[&str] = &["add_security_recommendation", "code_expiration_minutes"];

pub(super) fn check(draft: &DocumentView<'_>, report: &mut ViolationCollector) {
    match draft.category {
        Some(Category::Authentication) => {
            draft.components().for_each(|component| of_them(component, report));
            one_code(draft, report);
        }
        Some(_) => draft.components().for_each(|component| of_others(component, report)),
        None => {}
    }
}

fn of_them(component: ObjectView<'_>, report: &mut ViolationCollector) {
    if let Some(word) = component.text("type")
        && !COMPONENTS.iter().any(|it| component.is(it))
    {
        component.tell(report, || {
            let message =
                format!("is of kind {word}, which an AUTHENTICATION template does not have");
            let hint = "leave it out: there are only BODY, FOOTER and BUTTONS";
            TextViolation::new(Rule::ComponentUnfit, message).hint(hint)
        });
    }
    if is_written(component) && component.has("text") {
        // What else is wrong with it, or lacks beside it, does not matter.
        component.take_back("text", report);
        if component.is("BODY") {
            component.take_back("example", report);
        }
        component.tell_at("text", report, || {
            let message = "is written by WhatsApp in an AUTHENTICATION template";
            TextViolation::new(Rule::AuthenticationText, message).hint("leave it out")
        });
    }
    // The table refuses that of a footer.
    if component.is("BODY") && component.has("example") {
        component.tell_at("example", report, || {
            let message = "stands in an AUTHENTICATION template, whose texts WhatsApp writes";
            TextViolation::new(Rule::SamplesNotAllowed, message).hint("leave it out")
        });
    }
}

/// Exactly one button, which hands over the code. A second one is counted elsewhere.
fn one_code(draft: &DocumentView<'_>, report: &mut ViolationCollector) {
    let hint = "an AUTHENTICATION template has one OTP button and no other";
    for button in draft.buttons().filter(|it| it.text("type").is_some() && !it.is("OTP")) {
        button.tell(report, || {
            TextViolation::new(Rule::AuthenticationButton, "is no OTP button").hint(hint)
        });
    }
    if draft.root.has("components") && draft.component("BUTTONS").is_none() {
        draft.root.tell_at("components", report, || {
            TextViolation::new(Rule::AuthenticationButton, "holds no OTP button").hint(hint)
        });
    }
}

/// Every other template brings its own texts, and none of what belongs to codes.
fn of_others(component: ObjectView<'_>, report: &mut ViolationCollector) {
    if is_written(component) && !component.has("text") {
        component.tell_at("text", report, || {
            let hint = "only an AUTHENTICATION template goes without";
            TextViolation::new(Rule::Required, "is required").hint(hint)
        });
    }
    for field in FIELDS.iter().filter(|field| is_written(component) && component.has(field)) {
        component.tell_at(field, report, || {
            let message = "belongs to AUTHENTICATION templates";
            TextViolation::new(Rule::AuthenticationOnly, message).hint("leave it out")
        });
    }
}

fn is_written(component: ObjectView<'_>) -> bool {
    component.is("BODY") || component.is("FOOTER")
}
