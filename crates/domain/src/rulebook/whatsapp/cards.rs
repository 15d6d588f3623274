//! Carousels: a row of cards with the same layout.

use super::{
    ATTACHMENT, FieldType, MAX_CARDS, ObjectSchema, PRODUCT_HEADER, Required, Rule, StringFormat,
    TaggedList, TaggedObject, Variant, VariantContent, buttons::CARD_BUTTON, required, samples,
    string,
};
use crate::{
    rulebook::{
        Field, ObjectList,
        view::{DocumentView, ObjectView},
    },
    violation::{TextViolation, ViolationCollector},
};

pub(super) static CAROUSEL: ObjectSchema = ObjectSchema {
    title: "a CAROUSEL component",
    fields: &[required(
        "cards",
        FieldType::ObjectList(ObjectList { min: 2, max: MAX_CARDS, title: "card", item: &CARD }),
        "The cards. All have the same header format and the same button types, and either all or none have a body.",
    )],
};

static CARD: ObjectSchema = ObjectSchema {
    title: "a card",
    fields: &[required(
        "components",
        FieldType::TaggedList(TaggedList {
            min: 0,
            max: 3,
            item: &CARD_COMPONENT,
            unique: true,
            required: None,
        }),
        "The components of the card: a HEADER, BUTTONS, and a BODY if all cards have one.",
    )],
};

static CARD_COMPONENT: TaggedObject = TaggedObject {
    title: "component",
    tag: "type",
    about: "The type of the component.",
    variants: &[
        Variant { value: "HEADER", content: VariantContent::Tagged(&CARD_HEADER) },
        Variant { value: "BODY", content: VariantContent::Fields(&CARD_BODY) },
        Variant { value: "BUTTONS", content: VariantContent::Fields(&CARD_BUTTONS) },
    ],
};

static CARD_HEADER: TaggedObject = TaggedObject {
    title: "header",
    tag: "format",
    about: "The type of the header: an attachment or a product.",
    variants: &[
        Variant { value: "IMAGE", content: VariantContent::Fields(&IMAGE_CARD) },
        Variant { value: "VIDEO", content: VariantContent::Fields(&VIDEO_CARD) },
        Variant { value: "PRODUCT", content: VariantContent::Fields(&PRODUCT_HEADER) },
    ],
};

static IMAGE_CARD: ObjectSchema =
    ObjectSchema { title: "a card's HEADER of format IMAGE", fields: &[ATTACHMENT] };
static VIDEO_CARD: ObjectSchema =
    ObjectSchema { title: "a card's HEADER of format VIDEO", fields: &[ATTACHMENT] };

static CARD_BODY: ObjectSchema = ObjectSchema {
    title: "a card's BODY",
    fields: &[
        Field {
            name: "text",
            presence: Required,
            field_type: FieldType::String(string(160, true, StringFormat::Message)),
            about: "The text of the card. May contain placeholders.",
        },
        samples(&super::BODY_EXAMPLE),
    ],
};

static CARD_BUTTONS: ObjectSchema = ObjectSchema {
    title: "a card's BUTTONS",
    fields: &[required(
        "buttons",
        FieldType::TaggedList(TaggedList {
            min: 1,
            max: 2,
            item: &CARD_BUTTON,
            unique: false,
            required: None,
        }),
        "The buttons, in display order.",
    )],
};

/// What all cards of a carousel have in common.
struct CardLayout {
    header: Option<String>,
    body: bool,
    buttons: Vec<String>,
}

pub(super) fn check(document: &DocumentView<'_>, violations: &mut ViolationCollector) {
    let Some(carousel) = document.component("CAROUSEL") else { return };
    let mut first: Option<CardLayout> = None;
    for card in carousel.cards().filter(|card| card.has("components")) {
        for required in ["HEADER", "BUTTONS"] {
            if card.component(required).is_none() {
                card.report_field("components", violations, || {
                    let message = format!("has no {required} component, which every card requires");
                    TextViolation::new(Rule::CardIncomplete, message)
                        .hint(format!("add a {required} component"))
                });
            }
        }
        let layout = layout(card);
        let Some(first) = &first else {
            first = Some(layout);
            continue;
        };
        let differences = differences(first, &layout);
        if !differences.is_empty() {
            card.report(violations, || {
                let differences = differences.join(" and ");
                let message = format!("differs from the first card in {differences}");
                TextViolation::new(Rule::CardsDiffer, message)
                    .hint("use the same layout for all cards")
            });
        }
    }
}

fn layout(card: ObjectView<'_>) -> CardLayout {
    let upper = |object: ObjectView<'_>, field| object.text(field).map(str::to_ascii_uppercase);
    let buttons = card.component("BUTTONS").into_iter().flat_map(ObjectView::buttons);
    CardLayout {
        header: card.component("HEADER").and_then(|it| upper(it, "format")),
        body: card.component("BODY").is_some(),
        buttons: buttons.map(|it| upper(it, "type").unwrap_or_default()).collect(),
    }
}

/// How a card differs from the first one. A missing component is reported separately.
fn differences(first: &CardLayout, other: &CardLayout) -> Vec<&'static str> {
    let have_header = first.header.is_some() && other.header.is_some();
    let have_buttons = !first.buttons.is_empty() && !other.buttons.is_empty();
    let differences = [
        (have_header && first.header != other.header, "the format of its header"),
        (have_buttons && first.buttons != other.buttons, "the types or the order of its buttons"),
        (first.body != other.body, "whether it has a body"),
    ];
    differences.into_iter().filter(|(differs, _)| *differs).map(|(_, what)| what).collect()
}
