//! Pieces that do not go with everything: which categories they are for, and what may stand
//! beside them.

use super::{
    BODY_MAX,
    Category::{self, Authentication, Marketing, Utility},
    Rule,
};
use crate::{
    document::text::longer_than,
    rulebook::view::{DocumentView, ObjectView},
    violation::{Span, TextViolation, ViolationCollector},
};

/// A piece that asks something of its surroundings.
struct Special {
    seat: Seat,
    word: &'static str,
    categories: &'static [Category],
    /// A field of the document that lets the category be MARKETING, too, and formats of headers that
    /// do.
    marketing_with: Option<(&'static str, &'static [&'static str])>,
    /// The header formats that may stand with it; none named: any.
    headers: Option<&'static [&'static str]>,
    /// The components that may stand with it; none named: any.
    components: Option<&'static [&'static str]>,
    /// Whether it is the only button.
    alone: bool,
    /// Whether it needs a header.
    below_header: bool,
    /// How many characters the body may have then.
    body: usize,
}

/// What kind of piece it is.
enum Seat {
    Component,
    Header,
    Button,
}

const fn special(seat: Seat, word: &'static str, categories: &'static [Category]) -> Special {
    let (headers, components) = (None, None);
    Special {
        seat,
        word,
        categories,
        marketing_with: None,
        headers,
        components,
        alone: false,
        below_header: false,
        body: BODY_MAX,
    }
}

const SPECIAL: &[Special] = &[
    Special {
        components: Some(&["BODY", "CAROUSEL"]),
        ..special(Seat::Component, "CAROUSEL", &[Marketing])
    },
    Special {
        headers: Some(&["IMAGE", "VIDEO"]),
        components: Some(&["HEADER", "BODY", "BUTTONS", "LIMITED_TIME_OFFER"]),
        body: 600,
        ..special(Seat::Component, "LIMITED_TIME_OFFER", &[Marketing])
    },
    special(Seat::Component, "CALL_PERMISSION_REQUEST", &[Utility, Marketing]),
    special(Seat::Header, "LOCATION", &[Utility, Marketing]),
    special(Seat::Header, "PRODUCT", &[Marketing]),
    special(Seat::Header, "GIF", &[Marketing]),
    special(Seat::Button, "OTP", &[Authentication]),
    special(Seat::Button, "COPY_CODE", &[Marketing, Utility]),
    Special { headers: Some(&[]), alone: true, ..special(Seat::Button, "CATALOG", &[Marketing]) },
    Special {
        headers: Some(&["TEXT"]),
        alone: true,
        below_header: true,
        ..special(Seat::Button, "MPM", &[Marketing])
    },
    Special {
        headers: Some(&["PRODUCT"]),
        body: 160,
        ..special(Seat::Button, "SPM", &[Marketing])
    },
    Special {
        // A button that checks out stands below a picture of what is bought.
        marketing_with: Some(("display_format", &["IMAGE", "VIDEO"])),
        ..special(Seat::Button, "ORDER_DETAILS", &[Utility])
    },
];

impl Special {
    /// The first such piece of a document.
    fn find<'d>(&self, draft: &DocumentView<'d>) -> Option<ObjectView<'d>> {
        match self.seat {
            Seat::Component => draft.component(self.word),
            Seat::Header => draft.component("HEADER").filter(|it| it.says("format", self.word)),
            Seat::Button => draft.buttons().find(|it| it.is(self.word)),
        }
    }
}

/// Authentication templates have a stricter check of their own.
pub(super) fn check(draft: &DocumentView<'_>, report: &mut ViolationCollector) {
    if draft.category == Some(Authentication) {
        return;
    }
    for special in SPECIAL {
        if let Some(piece) = special.find(draft) {
            category(special, piece, draft, report);
            surroundings(special, draft, report);
            if special.alone && draft.buttons().nth(1).is_some() {
                piece.tell(report, || {
                    let message = format!("is of kind {}, and not the only button", special.word);
                    TextViolation::new(Rule::ButtonAlone, message).hint("let it be the only button")
                });
            }
            if special.below_header && draft.component("HEADER").is_none() {
                piece.tell(report, || {
                    let message = format!("is of kind {}, which needs a header", special.word);
                    let fit = special.headers.unwrap_or_default().join(" or ");
                    let hint = format!("add a HEADER of format {fit}");
                    TextViolation::new(Rule::HeaderMissing, message).hint(hint)
                });
            }
        }
    }
}

fn category(
    special: &Special,
    piece: ObjectView<'_>,
    draft: &DocumentView<'_>,
    report: &mut ViolationCollector,
) {
    let Some(category) = draft.category else { return };
    let header = draft.component("HEADER");
    let lifted = special.marketing_with.is_some_and(|(field, formats)| {
        let shown = |header: ObjectView<'_>| formats.iter().any(|it| header.says("format", it));
        draft.root.has(field) || header.is_some_and(shown)
    });
    if special.categories.contains(&category) || (lifted && category == Marketing) {
        return;
    }
    piece.tell(report, || {
        let (word, found) = (special.word, category.as_str());
        let fit: Vec<&str> = special.categories.iter().map(|it| it.as_str()).collect();
        let message = format!("is of kind {word}, which {found} templates do not take");
        let mut hint = format!("leave it out, or make the category {}", fit.join(" or "));
        if let Some((field, formats)) = special.marketing_with.filter(|_| category == Marketing) {
            let formats = formats.join(" or ");
            hint = format!("{hint}, or add `{field}` or a HEADER of format {formats}");
        }
        TextViolation::new(Rule::CategoryUnfit, message).hint(hint)
    });
}

fn surroundings(special: &Special, draft: &DocumentView<'_>, report: &mut ViolationCollector) {
    let unfit =
        |piece: ObjectView<'_>, what: &str, fit: &[&str], report: &mut ViolationCollector| {
            piece.tell(report, || {
                let message = format!("is of kind {what}, which does not go with {}", special.word);
                let hint = match fit {
                    [] => "leave it out".to_owned(),
                    fit => format!("leave it out; {} may stand there", fit.join(", ")),
                };
                TextViolation::new(Rule::ComponentUnfit, message).hint(hint)
            });
        };
    for component in draft.components() {
        let Some(word) = component.text("type") else { continue };
        let format = component.text("format").filter(|_| component.is("HEADER"));
        let one_of = |fit: &[&str], word: &str| fit.iter().any(|it| it.eq_ignore_ascii_case(word));
        match (special.components, special.headers, format) {
            (Some(fit), ..) if !one_of(fit, word) => unfit(component, word, fit, report),
            (_, Some(fit), Some(format)) if !one_of(fit, format) => {
                unfit(component, &format!("HEADER {format}"), fit, report);
            }
            _ => {}
        }
    }
    body(special, draft, report);
}

fn body(special: &Special, draft: &DocumentView<'_>, report: &mut ViolationCollector) {
    let max = special.body;
    let Some(body) = draft.component("BODY").filter(|_| max < BODY_MAX) else { return };
    let Some(text) = body.text("text").filter(|text| longer_than(text, max)) else { return };
    // Longer than any body may be: that has been told already.
    if longer_than(text, BODY_MAX) {
        return;
    }
    body.tell_at("text", report, || {
        let length = text.chars().count();
        let message =
            format!("has {length} characters; with {} at most {max} are allowed", special.word);
        let hint = format!("shorten it by {}", length - max);
        TextViolation::new(Rule::TooLong, message).hint(hint).at(Span { start: max, end: length })
    });
}

/// A product is shown by its header and bought by its button; on a card an address may do as well.
pub(super) fn products(draft: &DocumentView<'_>, report: &mut ViolationCollector) {
    for (number, holder) in draft.holders().enumerate() {
        // The message itself comes first.
        let is_card = number > 0;
        let header = holder.component("HEADER").filter(|it| it.says("format", "PRODUCT"));
        let buttons = || holder.component("BUTTONS").into_iter().flat_map(ObjectView::buttons);
        let buys = |it: &ObjectView<'_>| it.is("SPM");
        if let Some(button) = buttons().find(buys).filter(|_| header.is_none()) {
            button.tell(report, || {
                let message = "is an SPM button below a header that is no product";
                TextViolation::new(Rule::ProductHeader, message)
                    .hint("add a HEADER of format PRODUCT")
            });
        }
        let offers = |it: ObjectView<'_>| buys(&it) || (is_card && it.is("URL"));
        if let Some(header) = header.filter(|_| !buttons().any(offers)) {
            header.tell(report, || {
                let message = "is a product without a button that shows it";
                TextViolation::new(Rule::ProductHeader, message).hint("add an SPM button")
            });
        }
        if is_card && header.is_some() {
            product_card(holder, report);
        }
    }
}

/// The card of a product has one button and nothing else to say.
fn product_card(card: ObjectView<'_>, report: &mut ViolationCollector) {
    if let Some(body) = card.component("BODY") {
        body.tell(report, || {
            let message = "is a BODY, which the card of a product does not have";
            TextViolation::new(Rule::ComponentUnfit, message).hint("leave it out")
        });
    }
    let mut buttons = card.component("BUTTONS").into_iter().flat_map(ObjectView::buttons);
    if let Some(second) = buttons.nth(1) {
        second.tell(report, || {
            let message = "is a second button on the card of a product";
            TextViolation::new(Rule::ButtonAlone, message).hint("keep one of them, SPM or URL")
        });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::{document::Document, rulebook::WHATSAPP, template::Template};

    /// The rules that a template of these pieces breaks.
    fn broken(category: Category, components: &[Value]) -> Vec<Rule> {
        let document = json!({"name": "n", "language": "en", "category": category.as_str(),
            "components": components})
        .to_string();
        let verdict = Template::read(&Document::parse(document.as_bytes()).unwrap(), &WHATSAPP);
        verdict.err().map(|it| it.listed().iter().map(|it| it.rule).collect()).unwrap_or_default()
    }

    fn header(format: &str) -> Value {
        match format {
            "TEXT" => json!({"type": "HEADER", "format": format, "text": "h"}),
            "LOCATION" | "PRODUCT" => json!({"type": "HEADER", "format": format}),
            _ => json!({"type": "HEADER", "format": format, "example": {"header_handle": "h"}}),
        }
    }

    /// The piece itself, as a component.
    fn piece(special: &Special) -> Value {
        match special.seat {
            Seat::Component => json!({"type": special.word}),
            Seat::Header => header(special.word),
            Seat::Button => json!({"type": "BUTTONS", "buttons": [{"type": special.word}]}),
        }
    }

    fn body(length: usize) -> Value {
        json!({"type": "BODY", "text": "b".repeat(length)})
    }

    #[test]
    fn each_row_holds_for_categories_bodies_and_company() {
        for special in SPECIAL {
            let (word, piece) = (special.word, piece(special));
            for category in [Marketing, Utility] {
                let rules = broken(category, &[body(1), piece.clone()]);
                let unfit = !special.categories.contains(&category);
                assert_eq!(rules.contains(&Rule::CategoryUnfit), unfit, "{word} {category:?}");
            }
            let bodies = |length| broken(Marketing, &[body(length), piece.clone()]);
            assert!(!bodies(special.body).contains(&Rule::TooLong), "{word}");
            assert!(bodies(special.body + 1).contains(&Rule::TooLong), "{word}");
            let lacks = |rules: Vec<Rule>| rules.contains(&Rule::HeaderMissing);
            assert_eq!(lacks(bodies(1)), special.below_header, "{word}");
            if let Seat::Button = special.seat {
                let reply = json!({"type": "QUICK_REPLY", "text": "t"});
                let two = json!({"type": "BUTTONS", "buttons": [piece["buttons"][0], reply]});
                let alone = broken(Marketing, &[body(1), two]).contains(&Rule::ButtonAlone);
                assert_eq!(alone, special.alone, "{word}");
            }
        }
    }

    #[test]
    fn each_row_holds_for_headers_and_components() {
        const FORMATS: [&str; 7] =
            ["TEXT", "IMAGE", "VIDEO", "DOCUMENT", "GIF", "LOCATION", "PRODUCT"];
        for special in SPECIAL.iter().filter(|it| !matches!(it.seat, Seat::Header)) {
            let (word, piece) = (special.word, piece(special));
            let may = |component: &str| special.components.is_none_or(|it| it.contains(&component));
            for format in FORMATS {
                let rules = broken(Marketing, &[body(1), header(format), piece.clone()]);
                // What a product asks for itself is no matter of this row.
                let fits = special.headers.is_none_or(|it| it.contains(&format)) && may("HEADER");
                assert_eq!(!rules.contains(&Rule::ComponentUnfit), fits, "{word} {format}");
            }
            let footer = json!({"type": "FOOTER", "text": "f"});
            let rules = broken(Marketing, &[body(1), footer, piece]);
            assert_eq!(!rules.contains(&Rule::ComponentUnfit), may("FOOTER"), "{word}");
        }
    }
}
