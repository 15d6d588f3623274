//! Headers: a text, an attachment, a place or a product.

use std::borrow::Cow;

use super::{
    HEADER_MAX, LONGEST,
    spot::Spot,
    words::{Limit, Words},
};
use crate::{
    document::Json,
    render::{
        ADDRESS_MAX, Filled,
        intake::Need,
        media::{self, Kind},
        message::{Location, Media, Parameter, Product},
        value, word,
    },
    rulebook::ParameterFormat,
    violation::{Rule, TextViolation, ViolationCollector},
};

/// The header with its values in place; nothing when it is of a kind that nobody knows.
pub(super) fn fill<'a>(
    component: &Json<'a>,
    format: ParameterFormat,
    spot: &Spot<'a, '_>,
    report: &mut ViolationCollector,
) -> Option<Filled<'a>> {
    let media = |attached: Option<Media<'a>>, parameter: fn(Media<'a>) -> Parameter<'a>| {
        let shown = attached.as_ref().and_then(|it| it.link.or(it.id)).map(Cow::Borrowed);
        Filled { text: shown, parameters: attached.map(parameter).into_iter().collect() }
    };
    Some(match word(component, "format")? {
        "TEXT" => {
            let max = Limit::Filled(HEADER_MAX);
            return Words { component, part: "header", format, max }.fill(spot, report);
        }
        "IMAGE" => media(attachment("image", Kind::Image, spot, report), |image| {
            Parameter::Image { image }
        }),
        "VIDEO" => media(attachment("video", Kind::Video, spot, report), |video| {
            Parameter::Video { video }
        }),
        // It is a film without sound.
        "GIF" => {
            media(attachment("animation", Kind::Video, spot, report), |gif| Parameter::Gif { gif })
        }
        "DOCUMENT" => media(attachment("document", Kind::Document, spot, report), |document| {
            Parameter::Document { document }
        }),
        "LOCATION" => location(spot, report).unwrap_or_default(),
        "PRODUCT" => product(spot, report).unwrap_or_default(),
        _ => return None,
    })
}

/// An attachment: its address by itself or, as on v1, in a list; or an object with that or with
/// its id.
fn attachment<'a>(
    what: &str,
    kind: Kind,
    spot: &Spot<'a, '_>,
    report: &mut ViolationCollector,
) -> Option<Media<'a>> {
    let need = || Need { what: format!("the address of the {what}"), sample: None };
    let check = |url: &str| address(url, what, kind);
    let is_document = kind == Kind::Document;
    // A name without its ending would not tell a device what to open the file with.
    let named = |url| {
        let told = is_document && media::kind(url) == Some(kind);
        if told { media::name(url) } else { None }
    };
    match spot.value() {
        None => spot.missing(need, report),
        Some(Json::String(_)) => {
            let link = spot.optional(check, report)?;
            return Some(Media { link: Some(link), id: None, filename: named(link) });
        }
        Some(Json::Array(items)) if matches!(&items[..], [Json::String(_)]) => {
            return attachment(what, kind, &spot.item(0), report);
        }
        Some(Json::Object(_)) => {
            let known: &[&str] =
                if is_document { &["link", "id", "filename"] } else { &["link", "id"] };
            spot.only(known, report);
            let (link, id) = (spot.key("link"), spot.key("id"));
            if link.value().is_none() && id.value().is_none() {
                link.missing(need, report);
            }
            if link.value().is_some() && id.value().is_some() {
                id.tell(report, || {
                    let message = "stands beside `link`; an attachment is named once";
                    TextViolation::new(Rule::ValueSuperfluous, message).hint("keep one of them")
                });
            }
            let link = link.optional(check, report);
            let id = id.optional(|id| value::plain(id, LONGEST), report);
            let filename = spot.key("filename");
            let filename = if is_document {
                filename.optional(|name| value::plain(name, LONGEST), report)
            } else {
                None
            };
            let filename = filename.map(Cow::Borrowed).or_else(|| link.and_then(named));
            return Some(Media { link, id, filename });
        }
        Some(_) => {
            let hint = "write its address, `{\"link\": \"https://…\"}` or `{\"id\": \"…\"}`";
            spot.wrong_type("a string or an object", hint, report);
        }
    }
    None
}

/// An address may end in anything, since the header says what it is; but not in something else.
fn address(url: &str, what: &str, kind: Kind) -> Vec<TextViolation> {
    let mut faults = value::address(url, ADDRESS_MAX);
    if faults.is_empty() && media::kind(url).is_some_and(|told| told != kind) {
        let message = format!("ends like something else than the {what} that the header shows");
        let hint = format!("give the address of a file that is of the kind {what}");
        faults.push(TextViolation::new(Rule::MediaKindDiffers, message).hint(hint));
    }
    faults
}

fn location<'a>(spot: &Spot<'a, '_>, report: &mut ViolationCollector) -> Option<Filled<'a>> {
    const FIELDS: [&str; 4] = ["latitude", "longitude", "name", "address"];
    let hint = "write `{\"latitude\": …, \"longitude\": …, \"name\": \"…\", \"address\": \"…\"}`";
    if !spot.is_object(hint, report) {
        return None;
    }
    spot.only(&FIELDS, report);
    let latitude = degrees(&spot.key("latitude"), 90.0, report);
    let longitude = degrees(&spot.key("longitude"), 180.0, report);
    let name = string(spot, "name", "what the place is called", report);
    let address = string(spot, "address", "the address of the place", report);
    let (name, address) = (name?, address?);
    let location = Location { latitude: latitude?, longitude: longitude?, name, address };
    Some(Filled {
        text: Some(format!("{name}, {address}").into()),
        parameters: vec![Parameter::Location { location }],
    })
}

/// A coordinate, as a number or as the text of one.
fn degrees(spot: &Spot<'_, '_>, most: f64, report: &mut ViolationCollector) -> Option<f64> {
    let number = match spot.value() {
        Some(Json::Number(number)) => number.as_f64(),
        Some(Json::String(text)) => text.parse::<f64>().ok().filter(|it| it.is_finite()),
        Some(_) => None,
        None => {
            let what = "a coordinate of the place".to_owned();
            spot.missing(|| Need { what, sample: Some("52.52") }, report);
            return None;
        }
    };
    let Some(number) = number else {
        spot.wrong_type("a number", "write it in degrees, as `52.52`", report);
        return None;
    };
    if number.abs() > most {
        spot.tell(report, || {
            let message = format!("is {number}; -{most} to {most} degrees are allowed");
            TextViolation::new(Rule::NumberRange, message).hint("write it in degrees, as `52.52`")
        });
    }
    Some(number)
}

fn product<'a>(spot: &Spot<'a, '_>, report: &mut ViolationCollector) -> Option<Filled<'a>> {
    const FIELDS: [&str; 2] = ["product_retailer_id", "catalog_id"];
    let hint = "write `{\"product_retailer_id\": \"…\", \"catalog_id\": \"…\"}`";
    if !spot.is_object(hint, report) {
        return None;
    }
    spot.only(&FIELDS, report);
    let product_retailer_id =
        string(spot, FIELDS[0], "the id of the product in its catalogue", report);
    let catalog_id = string(spot, FIELDS[1], "the id of the catalogue", report);
    let product = Product { product_retailer_id: product_retailer_id?, catalog_id: catalog_id? };
    Some(Filled {
        text: product_retailer_id.map(Cow::Borrowed),
        parameters: vec![Parameter::Product { product }],
    })
}

/// A string that an object has to hold.
pub(super) fn string<'a>(
    spot: &Spot<'a, '_>,
    key: &str,
    what: &str,
    report: &mut ViolationCollector,
) -> Option<&'a str> {
    let need = || Need { what: what.to_owned(), sample: None };
    spot.key(key).string(need, |value| value::plain(value, LONGEST), report)
}
