//! Checks that involve several fields, which the table cannot express.

use super::{
    Category, MAX_OFFER_COUPON_CHARS, MAX_TTL_SECONDS, Rule, authentication, buttons, cards,
    placement,
};
use crate::{
    document::{Json, text::longer_than},
    rulebook::{
        Check,
        view::{DocumentView, ObjectView},
    },
    violation::{TextViolation, ViolationCollector, truncated},
};

pub(super) const ALL: &[Check] = &[
    Check { name: "time to live", run: check_ttl },
    Check { name: "authentication templates", run: authentication::check },
    Check { name: "categories and combinations of components", run: placement::check },
    Check { name: "number of buttons", run: check_button_counts },
    Check { name: "order and labels of quick replies", run: check_quick_replies },
    Check { name: "flow and zero-tap buttons", run: check_single_buttons },
    Check { name: "products", run: placement::check_products },
    Check { name: "carousel cards", run: cards::check },
    Check { name: "limited-time offers", run: check_offer },
];

pub(super) const CREATION: &[Check] = &[Check { name: "sample handles", run: check_handles }];

/// Reports URLs instead of handles. A template that was read contains URLs, so an edit may, too.
fn check_handles(document: &DocumentView<'_>, violations: &mut ViolationCollector) {
    let is_url = |handle: &str| {
        let begins_with = |scheme: &str| {
            handle.get(..scheme.len()).is_some_and(|it| it.eq_ignore_ascii_case(scheme))
        };
        begins_with("http://") || begins_with("https://")
    };
    let headers = document.component_owners().filter_map(|it| it.component("HEADER"));
    for example in headers.filter_map(|it| it.object("example")) {
        for (_, url) in example.strings("header_handle").filter(|(handle, _)| is_url(handle)) {
            url.report(violations, || {
                let message = "is a URL; WhatsApp requires the handle of an uploaded file";
                let hint = "upload the file and use the `h` of the response";
                TextViolation::new(Rule::HandleForm, message).hint(hint)
            });
        }
    }
}

/// Category, minimum and maximum in seconds, and whether `-1` (30 days) is allowed.
const TTL_RANGES: &[(Category, i64, i64, bool)] = &[
    (Category::Authentication, 30, 900, true),
    (Category::Utility, 30, 43_200, true),
    (Category::Marketing, 43_200, MAX_TTL_SECONDS, false),
];

fn check_ttl(document: &DocumentView<'_>, violations: &mut ViolationCollector) {
    let seconds = document.root.get("message_send_ttl_seconds").and_then(Json::as_i64);
    let row = TTL_RANGES.iter().find(|(category, ..)| Some(*category) == document.category);
    let (Some(seconds), Some((category, min, max, allows_default))) = (seconds, row) else {
        return;
    };
    if (*min..=*max).contains(&seconds) || (seconds == -1 && *allows_default) {
        return;
    }
    // Replaces the violation of the table, whose range is that of all categories.
    document.root.retract_rule("message_send_ttl_seconds", Rule::NumberRange, violations);
    document.root.report_field("message_send_ttl_seconds", violations, || {
        let category = category.as_str();
        let message = format!("is {seconds}; {category} templates allow {min} to {max} seconds");
        let or = if *allows_default { ", or `-1` for 30 days" } else { "" };
        let hint = format!("use a number from {min} to {max}{or}");
        TextViolation::new(Rule::NumberRange, message).hint(hint)
    });
}

fn check_button_counts(document: &DocumentView<'_>, violations: &mut ViolationCollector) {
    for component in document.component_owners().filter_map(|it| it.component("BUTTONS")) {
        // Collected once, because the loop below iterates over them for each type.
        let present: Vec<ObjectView<'_>> = component.buttons().collect();
        for (button_type, max) in buttons::MAX_PER_TYPE {
            for extra in present.iter().filter(|it| it.is(button_type)).skip(*max) {
                extra.report(violations, || {
                    let message = format!("exceeds the limit of {max} for {button_type} buttons");
                    TextViolation::new(Rule::ButtonCount, message).hint("remove it")
                });
            }
        }
    }
}

fn check_quick_replies(document: &DocumentView<'_>, violations: &mut ViolationCollector) {
    let is_reply = |button: &ObjectView<'_>| button.is("QUICK_REPLY");
    let mut previous: Option<ObjectView<'_>> = None;
    let mut changes = 0;
    for button in document.buttons() {
        let differs = previous.is_some_and(|previous| is_reply(&previous) != is_reply(&button));
        changes += usize::from(differs);
        previous = Some(button);
        if changes == 2 {
            button.report(violations, || {
                let message = "breaks the order of the buttons: quick replies must be adjacent";
                let hint = "put all quick replies before or after the other buttons";
                TextViolation::new(Rule::QuickRepliesApart, message).hint(hint)
            });
            break;
        }
    }
    for buttons in document.component_owners().filter_map(|it| it.component("BUTTONS")) {
        check_reply_labels(buttons, violations);
    }
}

fn check_reply_labels(buttons: ObjectView<'_>, violations: &mut ViolationCollector) {
    let replies = || buttons.buttons().filter(|it| it.is("QUICK_REPLY"));
    for (number, reply) in replies().enumerate() {
        let Some(label) = reply.text("text") else { continue };
        if replies().take(number).any(|it| it.text("text") == Some(label)) {
            reply.report_field("text", violations, || {
                let message = format!("repeats the quick reply label `{}`", truncated(label));
                TextViolation::new(Rule::LabelRepeated, message).hint("use a different label")
            });
        }
    }
}

/// Checks that involve several fields of one button.
fn check_single_buttons(document: &DocumentView<'_>, violations: &mut ViolationCollector) {
    const SOURCES: [&str; 3] = ["flow_id", "flow_name", "flow_json"];
    for button in document.buttons() {
        let sources = SOURCES.iter().filter(|field| button.has(field)).count();
        if button.is("FLOW") && sources != 1 {
            button.report(violations, || {
                let message = format!("specifies {sources} flows; exactly one is required");
                let hint = "specify exactly one of `flow_id`, `flow_name` and `flow_json`";
                TextViolation::new(Rule::FlowSource, message).hint(hint)
            });
        }
        let refused = matches!(button.get("zero_tap_terms_accepted"), Some(Json::Bool(false)));
        if button.is("OTP") && button.field_equals("otp_type", "ZERO_TAP") && refused {
            button.report_field("zero_tap_terms_accepted", violations, || {
                let message = "is false; ZERO_TAP requires that you accept its terms";
                let hint = "use `true`, or the `otp_type` ONE_TAP or COPY_CODE";
                TextViolation::new(Rule::TermsNotAccepted, message).hint(hint)
            });
        }
    }
}

fn check_offer(document: &DocumentView<'_>, violations: &mut ViolationCollector) {
    let Some(offer) = document.component("LIMITED_TIME_OFFER") else { return };
    let details = offer.get("limited_time_offer");
    let expires = matches!(details.and_then(|it| it.get("has_expiration")), Some(Json::Bool(true)));
    let buttons = document.component("BUTTONS").unwrap_or(offer);
    let mut add = |object: ObjectView<'_>, message: &str, hint: &str| {
        object.report(violations, || TextViolation::new(Rule::OfferButtons, message).hint(hint));
    };
    let url_buttons = || document.buttons().filter(|it| it.is("URL"));
    if url_buttons().next().is_none() {
        add(buttons, "has no URL button, which an offer requires", "add a URL button");
    }
    for other in url_buttons().skip(1) {
        add(other, "is a second URL button in an offer", "keep one URL button");
    }
    let is_allowed =
        |it: &ObjectView<'_>| it.text("type").is_none() || it.is("URL") || it.is("COPY_CODE");
    for other in document.buttons().filter(|it| !is_allowed(it)) {
        let hint = "remove it; an offer has a URL button, and optionally a COPY_CODE button first";
        add(other, "is a button that offers do not support", hint);
    }
    let code = document.buttons().enumerate().find(|(_, it)| it.is("COPY_CODE"));
    match code {
        Some((index, code)) if index > 0 => {
            add(code, "is not the first button", "move the COPY_CODE button to the first position");
        }
        None if expires => {
            let hint = "add a COPY_CODE button in the first position, or remove `has_expiration`";
            add(buttons, "has no COPY_CODE button, which an offer that expires requires", hint);
        }
        _ => {}
    }
    if let Some((_, code)) = code {
        check_offer_coupon(code, violations);
    }
}

fn check_offer_coupon(button: ObjectView<'_>, violations: &mut ViolationCollector) {
    let code = match button.get("example") {
        Some(Json::Array(codes)) => codes.first().and_then(Json::as_str),
        code => code.and_then(Json::as_str),
    };
    let too_long = |code: &&str| longer_than(code, MAX_OFFER_COUPON_CHARS);
    let Some(code) = code.filter(too_long) else { return };
    // Replaces the violation of the table, which allows longer codes.
    button.retract_rule("example", Rule::TooLong, violations);
    button.report_field("example", violations, || {
        let length = code.chars().count();
        let message = format!(
            "has {length} characters; at most {MAX_OFFER_COUPON_CHARS} are allowed in an offer"
        );
        let hint = format!("shorten it to {MAX_OFFER_COUPON_CHARS} characters");
        TextViolation::new(Rule::TooLong, message).hint(hint)
    });
}
