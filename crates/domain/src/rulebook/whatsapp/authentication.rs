//! Authentication templates, whose texts WhatsApp generates.

use super::{Category, Rule};
use crate::{
    rulebook::view::{DocumentView, ObjectView},
    violation::{TextViolation, ViolationCollector},
};

/// The components of an authentication template.
const COMPONENTS: &[&str] = &["BODY", "FOOTER", "BUTTONS"];

/// The fields that only authentication templates have.
const FIELDS: &[&str] = &["add_security_recommendation", "code_expiration_minutes"];

pub(super) fn check(document: &DocumentView<'_>, violations: &mut ViolationCollector) {
    match document.category {
        Some(Category::Authentication) => {
            document.components().for_each(|component| check_authentication(component, violations));
            check_otp_button(document, violations);
        }
        Some(_) => document.components().for_each(|component| check_other(component, violations)),
        None => {}
    }
}

fn check_authentication(component: ObjectView<'_>, violations: &mut ViolationCollector) {
    if let Some(component_type) = component.text("type")
        && !COMPONENTS.iter().any(|it| component.is(it))
    {
        component.report(violations, || {
            let message =
                format!("is a {component_type}, which AUTHENTICATION templates do not support");
            let hint = "remove it; BODY, FOOTER and BUTTONS are supported";
            TextViolation::new(Rule::ComponentUnfit, message).hint(hint)
        });
    }
    if has_text_field(component) && component.has("text") {
        // Replaces all other violations of the text and its samples.
        component.retract_field("text", violations);
        if component.is("BODY") {
            component.retract_field("example", violations);
        }
        component.report_field("text", violations, || {
            let message =
                "is not allowed in an AUTHENTICATION template: WhatsApp generates the text";
            TextViolation::new(Rule::AuthenticationText, message).hint("remove it")
        });
    }
    // The table rejects the `example` of a footer.
    if component.is("BODY") && component.has("example") {
        component.report_field("example", violations, || {
            let message =
                "is not allowed in an AUTHENTICATION template: WhatsApp generates the text";
            TextViolation::new(Rule::SamplesNotAllowed, message).hint("remove it")
        });
    }
}

/// Requires exactly one OTP button; `button-count` reports a second one.
fn check_otp_button(document: &DocumentView<'_>, violations: &mut ViolationCollector) {
    let hint = "an AUTHENTICATION template has exactly one button, of type OTP";
    for button in document.buttons().filter(|it| it.text("type").is_some() && !it.is("OTP")) {
        button.report(violations, || {
            TextViolation::new(Rule::AuthenticationButton, "is not an OTP button").hint(hint)
        });
    }
    if document.root.has("components") && document.component("BUTTONS").is_none() {
        document.root.report_field("components", violations, || {
            TextViolation::new(Rule::AuthenticationButton, "has no OTP button").hint(hint)
        });
    }
}

/// Templates of other categories contain their texts, and no fields for one-time codes.
fn check_other(component: ObjectView<'_>, violations: &mut ViolationCollector) {
    if has_text_field(component) && !component.has("text") {
        component.report_field("text", violations, || {
            let hint = "only AUTHENTICATION templates have no text of their own";
            TextViolation::new(Rule::Required, "is required").hint(hint)
        });
    }
    for field in FIELDS.iter().filter(|field| has_text_field(component) && component.has(field)) {
        component.report_field(field, violations, || {
            let message = "is allowed only in AUTHENTICATION templates";
            TextViolation::new(Rule::AuthenticationOnly, message).hint("remove it")
        });
    }
}

fn has_text_field(component: ObjectView<'_>) -> bool {
    component.is("BODY") || component.is("FOOTER")
}
