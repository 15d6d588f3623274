//! What is worth a warning in several fields at once.

use super::buttons;
use crate::{
    document::Json,
    rulebook::view::{DocumentView, ObjectView},
    violation::{TextWarning, WarningRule, Warnings},
};

/// How many cards define a row of products.
const PRODUCT_CARDS: usize = 2;

pub(super) fn look(draft: &DocumentView<'_>, warnings: &mut Warnings) {
    for holder in draft.holders() {
        for button in holder.component("BUTTONS").into_iter().flat_map(ObjectView::buttons) {
            label(button, warnings);
            code(button, warnings);
        }
    }
    product_cards(draft, warnings);
}

/// A label that nobody will see.
fn label(button: ObjectView<'_>, warnings: &mut Warnings) {
    let Some(label) = button.text("text") else { return };
    let row = buttons::FIXED_LABELS.iter().find(|(word, _)| button.is(word));
    let Some((word, shown)) = row.filter(|(_, shown)| !shown.eq_ignore_ascii_case(label)) else {
        return;
    };
    let message = format!("is not shown: WhatsApp has a label of its own for {word} buttons");
    let hint = format!("leave it out, or write `{shown}`");
    button.warn("text", warnings, TextWarning::new(WarningRule::LabelNotShown, message, hint));
}

/// A sample that could not be sent.
fn code(button: ObjectView<'_>, warnings: &mut Warnings) {
    let sample = match button.get("example").filter(|_| button.is("COPY_CODE")) {
        Some(Json::Array(samples)) => samples.first().and_then(Json::as_str),
        sample => sample.and_then(Json::as_str),
    };
    let plain = |sample: &str| sample.bytes().all(|it| it.is_ascii_alphanumeric());
    if sample.is_some_and(|sample| !plain(sample)) {
        let message = "holds something else than letters from `A` to `Z` and digits: no such code can be sent";
        let note = TextWarning::new(
            WarningRule::CodeSample,
            message,
            "write one like those to come: `SAVE25`",
        );
        button.warn("example", warnings, note);
    }
}

fn product_cards(draft: &DocumentView<'_>, warnings: &mut Warnings) {
    let Some(carousel) = draft.component("CAROUSEL") else { return };
    let shows_product = |card: ObjectView<'_>| {
        card.component("HEADER").is_some_and(|header| header.says("format", "PRODUCT"))
    };
    let count = carousel.cards().count();
    if count > PRODUCT_CARDS && carousel.cards().all(shows_product) {
        let message = format!("holds {count} cards of products; {PRODUCT_CARDS} define them all");
        let hint = format!("remove {}: a message may carry 2 to 10 of them", count - PRODUCT_CARDS);
        carousel.warn(
            "cards",
            warnings,
            TextWarning::new(WarningRule::ProductCards, message, hint),
        );
    }
}
