//! Carousels: a row of cards that all look alike.

use super::{
    ATTACHMENT, Form, Kind, List, MOST_CARDS, PRODUCT_HEADER, Part, Required, Rule, Shape, Tagged,
    Variant, buttons::CARD_BUTTON, required, row, samples,
};
use crate::{
    rulebook::{
        Field, Parts,
        draft::{Draft, Piece},
    },
    text::Fault,
    violation::Report,
};

pub(super) static CAROUSEL: Part = Part {
    title: "a CAROUSEL component",
    fields: &[required(
        "cards",
        Shape::Parts(Parts { min: 2, max: MOST_CARDS, title: "card", item: &CARD }),
        "The cards, all with the same kind of header, the same kinds of buttons, and a body each or none.",
    )],
};

static CARD: Part = Part {
    title: "a card",
    fields: &[required(
        "components",
        Shape::List(List { min: 0, max: 3, item: &CARD_COMPONENT, unique: true, needs: None }),
        "The pieces of the card: a HEADER, BUTTONS, and a BODY if all cards have one.",
    )],
};

static CARD_COMPONENT: Tagged = Tagged {
    title: "component",
    tag: "type",
    about: "Which piece of the card this is.",
    variants: &[
        Variant { word: "HEADER", kind: Kind::Tagged(&CARD_HEADER) },
        Variant { word: "BODY", kind: Kind::Part(&CARD_BODY) },
        Variant { word: "BUTTONS", kind: Kind::Part(&CARD_BUTTONS) },
    ],
};

static CARD_HEADER: Tagged = Tagged {
    title: "header",
    tag: "format",
    about: "Whether the header is an attachment or a product.",
    variants: &[
        Variant { word: "IMAGE", kind: Kind::Part(&IMAGE_CARD) },
        Variant { word: "VIDEO", kind: Kind::Part(&VIDEO_CARD) },
        Variant { word: "PRODUCT", kind: Kind::Part(&PRODUCT_HEADER) },
    ],
};

static IMAGE_CARD: Part =
    Part { title: "the HEADER of a card, of format IMAGE", fields: &[ATTACHMENT] };
static VIDEO_CARD: Part =
    Part { title: "the HEADER of a card, of format VIDEO", fields: &[ATTACHMENT] };

static CARD_BODY: Part = Part {
    title: "the BODY of a card",
    fields: &[
        Field {
            name: "text",
            presence: Required,
            shape: Shape::Text(row(160, true, Form::CardMessage)),
            about: "The text of the card; may hold placeholders.",
        },
        samples(&super::BODY_EXAMPLE),
    ],
};

static CARD_BUTTONS: Part = Part {
    title: "the BUTTONS of a card",
    fields: &[required(
        "buttons",
        Shape::List(List { min: 1, max: 2, item: &CARD_BUTTON, unique: false, needs: None }),
        "The buttons, in the order they are shown.",
    )],
};

/// What cards have in common.
struct Look {
    header: Option<String>,
    body: bool,
    buttons: Vec<String>,
}

pub(super) fn check(draft: &Draft<'_>, report: &mut Report) {
    let Some(carousel) = draft.component("CAROUSEL") else { return };
    let mut first: Option<Look> = None;
    for card in carousel.cards().filter(|card| card.has("components")) {
        for word in ["HEADER", "BUTTONS"] {
            if card.component(word).is_none() {
                card.tell_at("components", report, || {
                    let message = format!("holds no {word}, which every card needs");
                    Fault::new(Rule::CardIncomplete, message).hint(format!("add {word}"))
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
                Fault::new(Rule::CardsDiffer, message).hint("make all cards alike")
            });
        }
    }
}

fn look(card: Piece<'_>) -> Look {
    let upper = |piece: Piece<'_>, field| piece.text(field).map(str::to_ascii_uppercase);
    let buttons = card.component("BUTTONS").into_iter().flat_map(Piece::buttons);
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
