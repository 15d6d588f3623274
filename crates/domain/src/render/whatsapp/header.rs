//! Headers: a text, an attachment, a location or a product.

use std::borrow::Cow;

use super::{
    HEADER_MAX, NAME_MAX,
    text::{LengthLimit, TextTemplate},
};
use crate::{
    document::Json,
    render::{
        ADDRESS_MAX, Filled,
        media::{self, Kind},
        message::{Location, Media, Parameter, Product},
        str_field, value,
        value_reader::{ExpectedValue, ValueReader},
    },
    rulebook::ParameterFormat,
    violation::{Rule, TextViolation, ViolationCollector},
};

/// The header filled with its values; `None` if its format is unknown.
pub(super) fn fill<'a>(
    component: &Json<'a>,
    format: ParameterFormat,
    values: &ValueReader<'a, '_>,
    violations: &mut ViolationCollector,
) -> Option<Filled<'a>> {
    let media = |attached: Option<Media<'a>>, parameter: fn(Media<'a>) -> Parameter<'a>| {
        let shown = attached.as_ref().and_then(|it| it.link.or(it.id)).map(Cow::Borrowed);
        Filled { text: shown, parameters: attached.map(parameter).into_iter().collect() }
    };
    Some(match str_field(component, "format")? {
        "TEXT" => {
            let max = LengthLimit::FilledText(HEADER_MAX);
            let text = TextTemplate { component, name: "header", format, max };
            return text.fill(values, violations);
        }
        "IMAGE" => media(attachment("image", Kind::Image, values, violations), |image| {
            Parameter::Image { image }
        }),
        "VIDEO" => media(attachment("video", Kind::Video, values, violations), |video| {
            Parameter::Video { video }
        }),
        // A GIF is sent as a video without sound.
        "GIF" => media(attachment("animation", Kind::Video, values, violations), |gif| {
            Parameter::Gif { gif }
        }),
        "DOCUMENT" => {
            media(attachment("document", Kind::Document, values, violations), |document| {
                Parameter::Document { document }
            })
        }
        "LOCATION" => location(values, violations).unwrap_or_default(),
        "PRODUCT" => product(values, violations).unwrap_or_default(),
        _ => return None,
    })
}

/// An attachment: its URL as a string or, as with `v1`, in a list; or an object with its URL or
/// its id.
fn attachment<'a>(
    what: &str,
    kind: Kind,
    values: &ValueReader<'a, '_>,
    violations: &mut ViolationCollector,
) -> Option<Media<'a>> {
    let expected = || ExpectedValue { description: format!("the URL of the {what}"), sample: None };
    let check = |url: &str| check_url(url, what, kind);
    let is_document = kind == Kind::Document;
    // Without an extension, the recipient's device would not know how to open the file.
    let name_in_url = |url| {
        let has_extension = is_document && media::kind(url) == Some(kind);
        if has_extension { media::file_name(url) } else { None }
    };
    match values.value() {
        None => values.report_missing(expected, violations),
        Some(Json::String(_)) => {
            let link = values.optional_string(check, violations)?;
            return Some(Media { link: Some(link), id: None, filename: name_in_url(link) });
        }
        Some(Json::Array(items)) if matches!(&items[..], [Json::String(_)]) => {
            return attachment(what, kind, &values.item(0), violations);
        }
        Some(Json::Object(_)) => {
            let known: &[&str] =
                if is_document { &["link", "id", "filename"] } else { &["link", "id"] };
            values.reject_unknown_members(known, violations);
            let (link, id) = (values.field("link"), values.field("id"));
            if link.value().is_none() && id.value().is_none() {
                link.report_missing(expected, violations);
            }
            if link.value().is_some() && id.value().is_some() {
                id.report(violations, || {
                    let message = "cannot be combined with `link`";
                    TextViolation::new(Rule::ValueSuperfluous, message).hint("remove one of them")
                });
            }
            let link = link.optional_string(check, violations);
            let id = id.optional_string(|id| value::check_text(id, NAME_MAX), violations);
            let filename = values.field("filename");
            let filename = if is_document {
                filename.optional_string(|name| value::check_text(name, NAME_MAX), violations)
            } else {
                None
            };
            let filename = filename.map(Cow::Borrowed).or_else(|| link.and_then(name_in_url));
            return Some(Media { link, id, filename });
        }
        Some(_) => {
            let hint = "write its URL, `{\"link\": \"https://…\"}` or `{\"id\": \"…\"}`";
            values.report_wrong_type("a string or an object", hint, violations);
        }
    }
    None
}

/// Checks the URL of an attachment. It needs no extension, because the template determines the type,
/// but its extension must not be that of another type.
fn check_url(url: &str, what: &str, kind: Kind) -> Vec<TextViolation> {
    let mut found = value::check_url(url, ADDRESS_MAX);
    if found.is_empty() && media::kind(url).is_some_and(|it| it != kind) {
        let message = format!(
            "has the file extension of another type; the header takes a file of type {what}"
        );
        let hint = format!("use the URL of a file of type {what}");
        found.push(TextViolation::new(Rule::MediaKindDiffers, message).hint(hint));
    }
    found
}

fn location<'a>(
    values: &ValueReader<'a, '_>,
    violations: &mut ViolationCollector,
) -> Option<Filled<'a>> {
    const FIELDS: [&str; 4] = ["latitude", "longitude", "name", "address"];
    let hint = "write `{\"latitude\": …, \"longitude\": …, \"name\": \"…\", \"address\": \"…\"}`";
    if !values.expect_object(hint, violations) {
        return None;
    }
    values.reject_unknown_members(&FIELDS, violations);
    let latitude = degrees(&values.field("latitude"), 90.0, violations);
    let longitude = degrees(&values.field("longitude"), 180.0, violations);
    let name = required_string(values, "name", "the name of the location", violations);
    let address = required_string(values, "address", "the address of the location", violations);
    let (name, address) = (name?, address?);
    let location = Location { latitude: latitude?, longitude: longitude?, name, address };
    Some(Filled {
        text: Some(format!("{name}, {address}").into()),
        parameters: vec![Parameter::Location { location }],
    })
}

/// A coordinate, as a number or as a string that contains one.
fn degrees(
    value: &ValueReader<'_, '_>,
    max: f64,
    violations: &mut ViolationCollector,
) -> Option<f64> {
    let number = match value.value() {
        Some(Json::Number(number)) => number.as_f64(),
        Some(Json::String(text)) => text.parse::<f64>().ok().filter(|it| it.is_finite()),
        Some(_) => None,
        None => {
            let description = "a coordinate of the location".to_owned();
            value.report_missing(
                || ExpectedValue { description, sample: Some("52.52") },
                violations,
            );
            return None;
        }
    };
    let Some(number) = number else {
        value.report_wrong_type("a number", "write it in degrees, such as `52.52`", violations);
        return None;
    };
    if number.abs() > max {
        value.report(violations, || {
            let message = format!("is {number}; -{max} to {max} degrees are allowed");
            TextViolation::new(Rule::NumberRange, message)
                .hint("write it in degrees, such as `52.52`")
        });
    }
    Some(number)
}

fn product<'a>(
    values: &ValueReader<'a, '_>,
    violations: &mut ViolationCollector,
) -> Option<Filled<'a>> {
    const FIELDS: [&str; 2] = ["product_retailer_id", "catalog_id"];
    let hint = "write `{\"product_retailer_id\": \"…\", \"catalog_id\": \"…\"}`";
    if !values.expect_object(hint, violations) {
        return None;
    }
    values.reject_unknown_members(&FIELDS, violations);
    let product_retailer_id =
        required_string(values, FIELDS[0], "the id of the product in its catalogue", violations);
    let catalog_id = required_string(values, FIELDS[1], "the id of the catalogue", violations);
    let product = Product { product_retailer_id: product_retailer_id?, catalog_id: catalog_id? };
    Some(Filled {
        text: product_retailer_id.map(Cow::Borrowed),
        parameters: vec![Parameter::Product { product }],
    })
}

/// A required string member.
pub(super) fn required_string<'a>(
    object: &ValueReader<'a, '_>,
    key: &str,
    description: &str,
    violations: &mut ViolationCollector,
) -> Option<&'a str> {
    let expected = || ExpectedValue { description: description.to_owned(), sample: None };
    let check = |value: &str| value::check_text(value, NAME_MAX);
    object.field(key).required_string(expected, check, violations)
}
