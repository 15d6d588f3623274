//! From `whatsapp` to `v1`, which has less: four components, four buttons, numbered placeholders,
//! and one kind of attachment.

use super::{
    Issue, Json, Ledger, Member, Piece, member,
    piece::{copied, items, object, owned},
    text,
};
use crate::{
    render::media::{self, Kind},
    rulebook::{ParameterFormat, StringFormat, StringRule},
    validation::{formats::check, languages, placeholders},
    violation::shortened,
};

/// What `v1` takes for the address of a sample.
const ADDRESS: StringRule =
    StringRule { max: 2_000, whatsapp_max: None, multiline: false, format: StringFormat::Url };

/// WhatsApp's own label of a `COPY_CODE` button.
const COPY_LABEL: &str = "Copy offer code";

/// A language with its region, if there is a usual one.
pub(super) fn language(code: &str, ledger: &mut Ledger) -> String {
    let mut faults = Vec::new();
    languages::check(code, &mut faults);
    if faults.is_empty() {
        return code.to_owned();
    }
    let Some(nearest) = languages::suggestion(code) else { return code.to_owned() };
    let message = format!("becomes `{nearest}`: on v1 a language has a region");
    let hint = "write another region if that is not the one of the texts";
    ledger.note(Issue::LanguageChanged, "/language", message, hint);
    nearest
}

pub(super) fn components(source: &Piece<'_>, ledger: &mut Ledger) -> Vec<Json<'static>> {
    settings(source, &["parameter_format", "components"], ledger);
    let named = source.text("parameter_format") == ParameterFormat::Named.as_str();
    let format = if named { ParameterFormat::Named } else { ParameterFormat::Positional };
    let mut made = Vec::new();
    for (index, piece) in source.items("components").iter().enumerate() {
        if let Some(component) = component(piece, format, ledger) {
            made.push(component);
            ledger.components.push(index);
        }
    }
    made
}

fn component(
    piece: &Piece<'_>,
    format: ParameterFormat,
    ledger: &mut Ledger,
) -> Option<Json<'static>> {
    match (piece.text("type"), piece.text("format")) {
        ("HEADER", "TEXT") => Some(words(piece, "header_text", format, ledger)),
        ("HEADER", "IMAGE") => Some(attachment(piece, Kind::Image, ledger)),
        ("HEADER", "VIDEO") => Some(attachment(piece, Kind::Video, ledger)),
        ("HEADER", "DOCUMENT") => Some(attachment(piece, Kind::Document, ledger)),
        ("BODY", _) => {
            if piece.get("text").is_none() {
                let message = "is written by WhatsApp; v1 takes it from the template";
                let hint = "write the message, with `{{1}}` for the code and a sample of it";
                ledger.note(Issue::TextMissing, piece.place("text"), message, hint);
            }
            Some(words(piece, "body_text", format, ledger))
        }
        ("FOOTER", _) => {
            settings(piece, &["type", "text"], ledger);
            let footer = || object(["type", "text"].iter().filter_map(|it| copied(piece, it)));
            piece.get("text").map(|_| footer())
        }
        ("BUTTONS", _) => buttons(piece, format, ledger),
        (kind, format) => {
            let of = if format.is_empty() { String::new() } else { format!(" of format {format}") };
            let message = format!("is a {kind}{of}, which v1 does not have");
            let hint = "say it in the body, or leave the template where it is";
            ledger.note(Issue::ComponentLost, &*piece.pointer, message, hint);
            None
        }
    }
}

/// Points at everything that stands beside what is taken over: none of it has a place.
fn settings(piece: &Piece<'_>, taken: &[&str], ledger: &mut Ledger) {
    for (field, value) in piece.members().filter(|(field, _)| !taken.contains(field)) {
        // What is switched off is as good as not there.
        if !matches!(value, Json::Bool(false)) {
            let message = "is a setting that v1 does not have";
            ledger.note(Issue::SettingLost, piece.place(field), message, "nothing replaces it");
        }
    }
}

/// A text with the samples of its placeholders, which have numbers from now on.
fn words(
    piece: &Piece<'_>,
    samples: &'static str,
    format: ParameterFormat,
    ledger: &mut Ledger,
) -> Json<'static> {
    settings(piece, &["type", "format", "text", "example"], ledger);
    let fields = ["type", "format", "text"].into_iter().filter_map(|field| copied(piece, field));
    let mut fields: Vec<Member<'static>> = fields.collect();
    let example = piece.below("example");
    let values = match format {
        ParameterFormat::Positional => example.get(samples).map(owned),
        ParameterFormat::Named => {
            let names = placeholders::names(piece.text("text"));
            let numbered = numbered(piece, &names, ledger);
            if let Some(field) = fields.iter_mut().find(|it| it.key == "text") {
                field.value = text(numbered);
            }
            let given = items(example.get(&format!("{samples}_named_params")));
            let value = |name: &&str| {
                let sample = given
                    .iter()
                    .find(|it| it.get("param_name").and_then(Json::as_str) == Some(*name));
                sample?.get("example").map(owned)
            };
            let values: Vec<Json<'static>> = names.iter().filter_map(value).collect();
            let nested = samples == "body_text";
            let list = |values| if nested { vec![Json::Array(values)] } else { values };
            (!values.is_empty()).then(|| Json::Array(list(values)))
        }
    };
    let example = values.map(|values| member("example", object([member(samples, values)])));
    object(fields.into_iter().chain(example))
}

/// The text with numbers in the place of names.
fn numbered(piece: &Piece<'_>, names: &[&str], ledger: &mut Ledger) -> String {
    let mut numbered = piece.text("text").to_owned();
    let mut told = Vec::new();
    for (index, name) in names.iter().enumerate() {
        let number = format!("{{{{{}}}}}", index + 1);
        numbered = numbered.replace(&format!("{{{{{name}}}}}"), &number);
        told.push(format!("`{{{{{name}}}}}` becomes `{number}`"));
    }
    if !told.is_empty() {
        let hint = "give values in the order of the numbers";
        ledger.note(Issue::PlaceholdersNumbered, piece.place("text"), told.join(", "), hint);
    }
    numbered
}

fn attachment(piece: &Piece<'_>, kind: Kind, ledger: &mut Ledger) -> Json<'static> {
    settings(piece, &["type", "format", "example"], ledger);
    let fields = [member("type", text("HEADER")), member("format", text("MEDIA"))];
    let place = piece.place("example/header_handle");
    let handle = items(piece.below("example").get("header_handle")).first();
    let handle = handle.and_then(Json::as_str).unwrap_or_default();
    let mut faults = Vec::new();
    check(&ADDRESS, handle, &mut faults);
    if !faults.is_empty() {
        let message = "is a handle; v1 takes the address of a sample";
        let hint = "write the address of a file in `example.media_url`";
        ledger.note(Issue::SampleAddress, place, message, hint);
        return object(fields);
    }
    if media::kind(handle) != Some(kind) {
        let format = piece.text("format");
        let message =
            format!("does not end like a {format}, and v1 has no other way to say that it is one");
        let hint = "take an address with an ending, such as `.jpg`, `.mp4` or `.pdf`";
        ledger.note(Issue::MediaKindUntold, place, message, hint);
    }
    let example = object([member("media_url", text(handle.to_owned()))]);
    object(fields.into_iter().chain([member("example", example)]))
}

fn buttons(
    piece: &Piece<'_>,
    format: ParameterFormat,
    ledger: &mut Ledger,
) -> Option<Json<'static>> {
    let mut made = Vec::new();
    for (index, button) in piece.items("buttons").iter().enumerate() {
        if let Some(button) = self::button(button, format, ledger) {
            made.push(button);
            ledger.buttons.push(index);
        }
    }
    let buttons = || [member("type", text("BUTTONS")), member("buttons", Json::Array(made))];
    (!ledger.buttons.is_empty()).then(|| object(buttons()))
}

fn button(
    piece: &Piece<'_>,
    format: ParameterFormat,
    ledger: &mut Ledger,
) -> Option<Json<'static>> {
    let kind = piece.text("type");
    let copied = |fields: &[&'static str]| -> Vec<Member<'static>> {
        fields.iter().filter_map(|field| copied(piece, field)).collect()
    };
    match kind {
        "QUICK_REPLY" | "PHONE_NUMBER" => {
            let fields = ["type", "text", "phone_number"];
            settings(piece, &fields, ledger);
            Some(object(copied(&fields)))
        }
        "URL" => Some(address(piece, copied(&["type", "text"]), format, ledger)),
        "COPY_CODE" => {
            settings(piece, &["type", "text", "example"], ledger);
            if piece.text("text") != COPY_LABEL {
                let message = "is a label of its own; v1 has none for the button";
                ledger.note(Issue::LabelLost, piece.place("text"), message, "nothing replaces it");
            }
            let sample = items(piece.get("example")).first().map(owned);
            let sample = sample.map(|sample| member("example", sample));
            Some(object(copied(&["type"]).into_iter().chain(sample)))
        }
        _ => {
            let message = format!("is a {kind} button, which v1 does not have");
            let hint =
                "those behind it move up; v1 has QUICK_REPLY, URL, PHONE_NUMBER and COPY_CODE";
            ledger.note(Issue::ButtonLost, &*piece.pointer, message, hint);
            None
        }
    }
}

/// A button that leads to an address, whose end is numbered if it is a placeholder.
fn address(
    piece: &Piece<'_>,
    mut fields: Vec<Member<'static>>,
    format: ParameterFormat,
    ledger: &mut Ledger,
) -> Json<'static> {
    settings(piece, &["type", "text", "url", "example"], ledger);
    let url = piece.text("url");
    let base = placeholders::base(url, format);
    let numbered = base.map_or(url.to_owned(), |base| format!("{base}{{{{1}}}}"));
    if numbered != url {
        let name = shortened(&url[base.map_or(0, str::len)..]).into_owned();
        let message = format!("`{name}` becomes `{{{{1}}}}`");
        let hint = "give the end of the address by the number of the button";
        ledger.note(Issue::PlaceholdersNumbered, piece.place("url"), message, hint);
    }
    fields.push(member("url", text(numbered)));
    // A sample stands by itself or in a list; either is taken on both sides.
    let example = piece.as_written("example").filter(|_| base.is_some()).map(owned);
    fields.extend(example.map(|example| member("example", example)));
    object(fields)
}
