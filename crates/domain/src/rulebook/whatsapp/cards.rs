//! Carousels: a row of cards that all look alike.

use super::{
    ATTACHMENT, FieldType, MOST_CARDS, ObjectSchema, PRODUCT_HEADER, Required, Rule, StringFormat,
    TaggedList, TaggedObject, Variant, VariantContent, buttons::CARD_BUTTON, required, row,
    samples,
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
        FieldType::ObjectList(ObjectList { min: 2, max: MOST_CARDS, title: "card", item: &CARD }),
        "The cards, all with the same kind of header, the same kinds of buttons, and a body each or none.",
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
            needs: None,
        }),
        "The pieces of the card: a HEADER, BUTTONS, and a BODY if all cards have one.",
    )],
};

static CARD_COMPONENT: TaggedObject = TaggedObject {
    title: "component",
    tag: "type",
    about: "Which piece of the card this is.",
    variants: &[
        Variant { word: "HEADER", kind: VariantContent::Tagged(&CARD_HEADER) },
        Variant { word: "BODY", kind: VariantContent::Fields(&CARD_BODY) },
        Variant { word: "BUTTONS", kind: VariantContent::Fields(&CARD_BUTTONS) },
    ],
};

static CARD_HEADER: TaggedObject = TaggedObject {
    title: "header",
    tag: "format",
    about: "Whether the header is an attachment or a product.",
    variants: &[
        Variant { word: "IMAGE", kind: VariantContent::Fields(&IMAGE_CARD) },
        Variant { word: "VIDEO", kind: VariantContent::Fields(&VIDEO_CARD) },
        Variant { word: "PRODUCT", kind: VariantContent::Fields(&PRODUCT_HEADER) },
    ],
};

static IMAGE_CARD: ObjectSchema =
    ObjectSchema { title: "the HEADER of a card, of format IMAGE", fields: &[ATTACHMENT] };
static VIDEO_CARD: ObjectSchema =
    ObjectSchema { title: "the HEADER of a card, of format VIDEO", fields: &[ATTACHMENT] };

static CARD_BODY: ObjectSchema = ObjectSchema {
    title: "the BODY of a card",
    fields: &[
        Field {
            name: "text",
            presence: Required,
            shape: FieldType::String(row(160, true, StringFormat::CardMessage)),
            about: "The text of the card; may hold placeholders.",
        },
        samples(&super::BODY_EXAMPLE),
    ],
};

static CARD_BUTTONS: ObjectSchema = ObjectSchema {
    title: "the BUTTONS of a card",
    fields: &[required(
        "buttons",
        FieldType::TaggedList(TaggedList {
            min: 1,
            max: 2,
            item: &CARD_BUTTON,
            unique: false,
            needs: None,
        }),
        "The buttons, in the order they are shown.",
    )],
};

/// What cards have in common.
struct Look {
    header: Option<String>,
    body: bool,
    buttons: Vec<String>,
}

pub(super) fn check(draft: &DocumentView<'_>, report: &mut ViolationCollector) {
    let Some(carousel) = draft.component("CAROUSEL") else { return };
    let mut first: Option<Look> = None;
    for card in carousel.cards().filter(|card| card.has("components")) {
        for word in ["HEADER", "BUTTONS"] {
            if card.component(word).is_none() {
                card.tell_at("components", report, || {
                    let message = format!("holds no {word}, which every card needs");
                    TextViolation::new(Rule::CardIncomplete, message).hint(format!("add {word}"))
                });
            }
        }
        let look = look(card);
        let Some(first) = &first else {
            first = Some(look);
            continue;
        };
        if let Some(difference) = difference(first, &look) {
            card.tell(report, || {
                let message = format!("differs from the first card in {difference}");
                TextViolation::new(Rule::CardsDiffer, message).hint("make all cards alike")
            });
        }
    }
}

fn look(card: ObjectView<'_>) -> Look {
    let upper = |piece: ObjectView<'_>, field| piece.text(field).map(str::to_ascii_uppercase);
    let buttons = card.component("BUTTONS").into_iter().flat_map(ObjectView::buttons);
    Look {
        header: card.component("HEADER").and_then(|it| upper(it, "format")),
        body: card.component("BODY").is_some(),
        buttons: buttons.map(|it| upper(it, "type").unwrap_or_default()).collect(),
    }
}

/// In what a card differs. What one of them lacks altogether has been told already.
fn difference(first: &Look, other: &Look) -> Option<&'static str> {
    if first.header.is_some() && other.header.is_some() && first.header != other.header {
        return Some("the kind of its header");
    }
    let have_buttons = !first.buttons.is_empty() && !other.buttons.is_empty();
    if have_buttons && first.buttons != other.buttons {
        return Some("the kinds of its buttons or their order");
    }
    (first.body != other.body).then_some("whether it has a body")
}
