//! What no row of the table can say, because it is about several pieces at once.

use super::{
    CODE_MAX, Category, LONGEST_LIFE, OFFER_CODE_MAX, Rule, authentication, buttons, cards,
    placement,
};
use crate::{
    document::{Json, text::longer_than},
    rulebook::{
        Check,
        view::{DocumentView, ObjectView},
    },
    violation::{TextViolation, ViolationCollector, shortened},
};

pub(super) const ALL: &[Check] = &[
    Check { name: "time to live", run: lifetime },
    Check { name: "authentication", run: authentication::check },
    Check { name: "special pieces", run: placement::check },
    Check { name: "counts of buttons", run: counts },
    Check { name: "order and labels of quick replies", run: quick_replies },
    Check { name: "flows and one-time codes", run: single_buttons },
    Check { name: "products", run: placement::products },
    Check { name: "cards", run: cards::check },
    Check { name: "limited-time offers", run: offer },
];

/// From, to, and whether `-1` stands for 30 days.
const LIFETIMES: &[(Category, i64, i64, bool)] = &[
    (Category::Authentication, 30, 900, true),
    (Category::Utility, 30, 43_200, true),
    (Category::Marketing, 43_200, LONGEST_LIFE, false),
];

fn lifetime(draft: &DocumentView<'_>, report: &mut ViolationCollector) {
    let seconds = draft.root.get("message_send_ttl_seconds").and_then(Json::as_i64);
    // What lies outside of every range has been told already.
    let Some(seconds) = seconds.filter(|it| (-1..=LONGEST_LIFE).contains(it)) else { return };
    let row = LIFETIMES.iter().find(|(category, ..)| Some(*category) == draft.category);
    let Some((category, least, most, forever)) = row else { return };
    if (*least..=*most).contains(&seconds) || (seconds == -1 && *forever) {
        return;
    }
    draft.root.tell_at("message_send_ttl_seconds", report, || {
        let word = category.as_str();
        let message = format!("is {seconds}; {word} templates live for {least} to {most} seconds");
        let or = if *forever { ", or `-1` for 30 days" } else { "" };
        TextViolation::new(Rule::NumberRange, message).hint(format!("write {least} to {most}{or}"))
    });
}

fn counts(draft: &DocumentView<'_>, report: &mut ViolationCollector) {
    for row in draft.holders().filter_map(|it| it.component("BUTTONS")) {
        // They are asked for each kind, and looked up once.
        let row: Vec<ObjectView<'_>> = row.buttons().collect();
        for (word, most) in buttons::MOST {
            if let Some(extra) = row.iter().filter(|it| it.is(word)).nth(*most) {
                extra.tell(report, || {
                    let message =
                        format!("is one {word} button too many; at most {most} may stand here");
                    TextViolation::new(Rule::ButtonCount, message).hint("remove it")
                });
            }
        }
    }
}

fn quick_replies(draft: &DocumentView<'_>, report: &mut ViolationCollector) {
    let is_reply = |button: &ObjectView<'_>| button.is("QUICK_REPLY");
    let mut before: Option<ObjectView<'_>> = None;
    let mut turns = 0;
    for button in draft.buttons() {
        turns += usize::from(before.is_some_and(|before| is_reply(&before) != is_reply(&button)));
        before = Some(button);
        if turns == 2 {
            button.tell(report, || {
                let message = "parts the quick replies from each other or stands between them";
                let hint = "put all quick replies before or behind the other buttons";
                TextViolation::new(Rule::QuickRepliesApart, message).hint(hint)
            });
            break;
        }
    }
    for buttons in draft.holders().filter_map(|it| it.component("BUTTONS")) {
        labels(buttons, report);
    }
}

fn labels(buttons: ObjectView<'_>, report: &mut ViolationCollector) {
    let replies = || buttons.buttons().filter(|it| it.is("QUICK_REPLY"));
    for (number, reply) in replies().enumerate() {
        let Some(label) = reply.text("text") else { continue };
        if replies().take(number).any(|it| it.text("text") == Some(label)) {
            reply.tell_at("text", report, || {
                let message = format!("is a second quick reply `{}`", shortened(label));
                TextViolation::new(Rule::LabelRepeated, message).hint("write another label")
            });
        }
    }
}

/// What is to be said about the fields of one button.
fn single_buttons(draft: &DocumentView<'_>, report: &mut ViolationCollector) {
    const SOURCES: [&str; 3] = ["flow_id", "flow_name", "flow_json"];
    for button in draft.buttons() {
        let sources = SOURCES.iter().filter(|field| button.has(field)).count();
        if button.is("FLOW") && sources != 1 {
            button.tell(report, || {
                let message = format!("names {sources} flows; exactly one is needed");
                let hint = "give `flow_id`, `flow_name` or `flow_json`, one of them";
                TextViolation::new(Rule::FlowSource, message).hint(hint)
            });
        }
        let refused = matches!(button.get("zero_tap_terms_accepted"), Some(Json::Bool(false)));
        if button.is("OTP") && button.says("otp_type", "ZERO_TAP") && refused {
            button.tell_at("zero_tap_terms_accepted", report, || {
                let message = "is false; ZERO_TAP is only there for those who accept its terms";
                let hint = "write `true`, or take ONE_TAP or COPY_CODE";
                TextViolation::new(Rule::TermsNotAccepted, message).hint(hint)
            });
        }
    }
}

fn offer(draft: &DocumentView<'_>, report: &mut ViolationCollector) {
    let Some(offer) = draft.component("LIMITED_TIME_OFFER") else { return };
    let details = offer.get("limited_time_offer");
    let ends = matches!(details.and_then(|it| it.get("has_expiration")), Some(Json::Bool(true)));
    let place = draft.component("BUTTONS").unwrap_or(offer);
    let mut tell = |place: ObjectView<'_>, message: &str, hint: &str| {
        place.tell(report, || TextViolation::new(Rule::OfferButtons, message).hint(hint));
    };
    let links = || draft.buttons().filter(|it| it.is("URL"));
    if links().next().is_none() {
        tell(place, "holds no URL button, which an offer needs", "add a URL button");
    }
    // A third address is one too many everywhere, and told there.
    if let Some(second) = links().nth(1) {
        tell(second, "is a second URL button below an offer", "keep one of them");
    }
    let known =
        |it: &ObjectView<'_>| it.text("type").is_none() || it.is("URL") || it.is("COPY_CODE");
    for other in draft.buttons().filter(|it| !known(it)) {
        let hint = "leave it out: an offer has a URL button, and a COPY_CODE button before it";
        tell(other, "is a button that an offer does not have", hint);
    }
    let code = draft.buttons().enumerate().find(|(_, it)| it.is("COPY_CODE"));
    match code {
        Some((index, code)) if index > 0 => {
            tell(code, "stands behind another button", "put the COPY_CODE button first");
        }
        None if ends => {
            let hint = "put a COPY_CODE button first, or leave out `has_expiration`";
            tell(place, "holds no COPY_CODE button, which an offer that ends needs", hint);
        }
        _ => {}
    }
    if let Some((_, code)) = code {
        code_of_offer(code, report);
    }
}

fn code_of_offer(button: ObjectView<'_>, report: &mut ViolationCollector) {
    let code = match button.get("example") {
        Some(Json::Array(codes)) => codes.first().and_then(Json::as_str),
        code => code.and_then(Json::as_str),
    };
    let too_long = |code: &&str| longer_than(code, OFFER_CODE_MAX) && !longer_than(code, CODE_MAX);
    let Some(code) = code.filter(too_long) else { return };
    button.tell_at("example", report, || {
        let length = code.chars().count();
        let message =
            format!("has {length} characters; below an offer at most {OFFER_CODE_MAX} are allowed");
        let hint = format!("shorten it by {}", length - OFFER_CODE_MAX);
        TextViolation::new(Rule::TooLong, message).hint(hint)
    });
}
