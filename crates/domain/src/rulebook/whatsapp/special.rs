//! Pieces that do not go with everything: which categories they are for, and what may stand
//! beside them.

use super::{
    Category::{self, Authentication, Marketing, Utility},
    Rule,
};
use crate::{
    rulebook::draft::{Draft, Piece},
    text::{Fault, longer_than},
    violation::{Report, Span},
};

/// A piece that asks something of its surroundings.
struct Special {
    seat: Seat,
    word: &'static str,
    categories: &'static [Category],
    /// A field of the document that lets the category be MARKETING, too.
    marketing_with: Option<&'static str>,
    /// The header formats that may stand with it; none named: any.
    headers: Option<&'static [&'static str]>,
    /// The components that may stand with it; none named: any.
    components: Option<&'static [&'static str]>,
    /// Whether it is the only button.
    alone: bool,
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
        body: 1_024,
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
    special(Seat::Button, "OTP", &[Authentication]),
    special(Seat::Button, "COPY_CODE", &[Marketing, Utility]),
    Special { headers: Some(&[]), alone: true, ..special(Seat::Button, "CATALOG", &[Marketing]) },
    Special { headers: Some(&["TEXT"]), alone: true, ..special(Seat::Button, "MPM", &[Marketing]) },
    Special {
        headers: Some(&["PRODUCT"]),
        body: 160,
        ..special(Seat::Button, "SPM", &[Marketing])
    },
    Special {
        marketing_with: Some("display_format"),
        ..special(Seat::Button, "ORDER_DETAILS", &[Utility])
    },
];

impl Special {
    /// The first such piece of a document.
    fn find<'d>(&self, draft: &Draft<'d>) -> Option<Piece<'d>> {
        match self.seat {
            Seat::Component => draft.component(self.word),
            Seat::Header => draft.component("HEADER").filter(|it| it.says("format", self.word)),
            Seat::Button => draft.buttons().find(|it| it.is(self.word)),
        }
    }
}

/// Authentication templates have a stricter check of their own.
pub(super) fn check(draft: &Draft<'_>, report: &mut Report) {
    if draft.category == Some(Authentication) {
        return;
    }
    for special in SPECIAL {
        if let Some(piece) = special.find(draft) {
            category(special, piece, draft, report);
            surroundings(special, draft, report);
            if special.alone && draft.buttons().nth(1).is_some() {
                piece.tell(report, || {
                    let message = format!("is a {} button among others", special.word);
                    Fault::new(Rule::ButtonAlone, message).hint("let it be the only button")
                });
            }
        }
    }
}

fn category(special: &Special, piece: Piece<'_>, draft: &Draft<'_>, report: &mut Report) {
    let Some(category) = draft.category else { return };
    let lifted = special.marketing_with.is_some_and(|field| draft.root.has(field));
    if special.categories.contains(&category) || (lifted && category == Marketing) {
        return;
    }
    piece.tell(report, || {
        let (word, found) = (special.word, category.word());
        let fit: Vec<&str> = special.categories.iter().map(|it| it.word()).collect();
        let message = format!("is of kind {word}, which a {found} template does not take");
        let mut hint = format!("leave it out, or make the category {}", fit.join(" or "));
        if let Some(field) = special.marketing_with.filter(|_| category == Marketing) {
            hint = format!("{hint}, or add `{field}`");
        }
        Fault::new(Rule::CategoryUnfit, message).hint(hint)
    });
}

fn surroundings(special: &Special, draft: &Draft<'_>, report: &mut Report) {
    let unfit = |piece: Piece<'_>, what: &str, fit: &[&str], report: &mut Report| {
        piece.tell(report, || {
            let message = format!("is a {what}, which does not go with {}", special.word);
            let hint = match fit {
                [] => "leave it out".to_owned(),
                fit => format!("leave it out; {} may stand there", fit.join(", ")),
            };
            Fault::new(Rule::ComponentUnfit, message).hint(hint)
        });
    };
    for component in draft.components() {
        let Some(word) = component.text("type") else { continue };
        let format = component.text("format").filter(|_| component.is("HEADER"));
        let one_of = |fit: &[&str], word: &str| fit.iter().any(|it| it.eq_ignore_ascii_case(word));
        match (special.components, special.headers, format) {
            (Some(fit), ..) if !one_of(fit, word) => unfit(component, word, fit, report),
            (_, Some(fit), Some(format)) if !one_of(fit, format) => {
                unfit(component, &format!("HEADER of format {format}"), fit, report);
            }
            _ => {}
        }
    }
    body(special, draft, report);
}

fn body(special: &Special, draft: &Draft<'_>, report: &mut Report) {
    let max = special.body;
    let Some(body) = draft.component("BODY").filter(|_| max < 1_024) else { return };
    let Some(text) = body.text("text").filter(|text| longer_than(text, max)) else { return };
    // Longer than any body may be: that has been told already.
    if longer_than(text, 1_024) {
        return;
    }
    body.tell_at("text", report, || {
        let length = text.chars().count();
        let message =
            format!("has {length} characters; with {} at most {max} are allowed", special.word);
        let hint = format!("shorten it by {}", length - max);
        Fault::new(Rule::TooLong, message).hint(hint).at(Span { start: max, end: length })
    });
}

/// A product is shown by its header and bought by its button; on a card an address may do as well.
pub(super) fn products(draft: &Draft<'_>, report: &mut Report) {
    let cards = draft.component("CAROUSEL").into_iter().flat_map(Piece::cards);
    for (message, is_card) in cards.map(|card| (card, true)).chain([(draft.root, false)]) {
        let header = message.component("HEADER").filter(|it| it.says("format", "PRODUCT"));
        let buttons = || message.component("BUTTONS").into_iter().flat_map(Piece::buttons);
        let buys = |it: &Piece<'_>| it.is("SPM");
        if let Some(button) = buttons().find(buys).filter(|_| header.is_none()) {
            button.tell(report, || {
                let message = "is an SPM button below a header that is no product";
                Fault::new(Rule::ProductHeader, message).hint("add a HEADER of format PRODUCT")
            });
        }
        let offers = |it: Piece<'_>| buys(&it) || (is_card && it.is("URL"));
        if let Some(header) = header.filter(|_| !buttons().any(offers)) {
            header.tell(report, || {
                let message = "is a product without a button that shows it";
                Fault::new(Rule::ProductHeader, message).hint("add an SPM button")
            });
        }
    }
}
