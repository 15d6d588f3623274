//! Warnings that involve several fields.

use super::buttons;
use crate::{
    document::{Json, emoji::count_emoji},
    rulebook::{
        Category,
        view::{DocumentView, ObjectView},
    },
    violation::{TextWarning, WarningRule, Warnings},
};

/// The number of cards that define a carousel of products.
const PRODUCT_CARDS: usize = 2;

/// WhatsApp is reported to reject bodies with more emoji than this.
const MAX_EMOJI: usize = 10;

/// The same for UTILITY templates.
const MAX_UTILITY_EMOJI: usize = 6;

pub(super) fn collect(document: &DocumentView<'_>, warnings: &mut Warnings) {
    let is_utility = document.category == Some(Category::Utility);
    let max_emoji = if is_utility { MAX_UTILITY_EMOJI } else { MAX_EMOJI };
    for holder in document.component_owners() {
        if let Some(body) = holder.component("BODY") {
            check_emoji(body, max_emoji, warnings);
        }
        for button in holder.component("BUTTONS").into_iter().flat_map(ObjectView::buttons) {
            check_label(button, warnings);
            check_coupon_sample(button, warnings);
        }
    }
    check_product_cards(document, warnings);
}

/// Warns about a body with many emoji.
fn check_emoji(body: ObjectView<'_>, max: usize, warnings: &mut Warnings) {
    let text = body.text("text").filter(|text| !text.is_ascii()).unwrap_or_default();
    let count = count_emoji(text);
    if count > max {
        let message = format!("contains {count} emoji");
        let hint = format!("use at most {max}: WhatsApp is reported to reject more");
        body.warn("text", warnings, TextWarning::new(WarningRule::ManyEmoji, message, hint));
    }
}

/// Warns about a label that WhatsApp replaces by its own.
fn check_label(button: ObjectView<'_>, warnings: &mut Warnings) {
    let Some(label) = button.text("text") else { return };
    let row = buttons::FIXED_LABELS.iter().find(|(button_type, _)| button.is(button_type));
    let Some((button_type, shown)) = row.filter(|(_, shown)| !shown.eq_ignore_ascii_case(label))
    else {
        return;
    };
    let message = format!("is not shown: WhatsApp uses its own label for {button_type} buttons");
    let hint = format!("remove it, or use `{shown}`");
    button.warn("text", warnings, TextWarning::new(WarningRule::LabelNotShown, message, hint));
}

/// Warns about a sample that is not a valid coupon code.
fn check_coupon_sample(button: ObjectView<'_>, warnings: &mut Warnings) {
    let sample = match button.get("example").filter(|_| button.is("COPY_CODE")) {
        Some(Json::Array(samples)) => samples.first().and_then(Json::as_str),
        sample => sample.and_then(Json::as_str),
    };
    let is_valid = |sample: &str| sample.bytes().all(|it| it.is_ascii_alphanumeric());
    if sample.is_some_and(|sample| !is_valid(sample)) {
        let message = "contains characters other than ASCII letters and digits, so WhatsApp would not send it";
        let note = TextWarning::new(
            WarningRule::CodeSample,
            message,
            "use a realistic code such as `SAVE25`",
        );
        button.warn("example", warnings, note);
    }
}

fn check_product_cards(document: &DocumentView<'_>, warnings: &mut Warnings) {
    let Some(carousel) = document.component("CAROUSEL") else { return };
    let shows_product = |card: ObjectView<'_>| {
        card.component("HEADER").is_some_and(|header| header.field_equals("format", "PRODUCT"))
    };
    let count = carousel.cards().count();
    if count > PRODUCT_CARDS && carousel.cards().all(shows_product) {
        let message =
            format!("has {count} product cards; {PRODUCT_CARDS} are enough to define the carousel");
        let hint = format!("remove {}; a message can still contain 2 to 10", count - PRODUCT_CARDS);
        carousel.warn(
            "cards",
            warnings,
            TextWarning::new(WarningRule::ProductCards, message, hint),
        );
    }
}
