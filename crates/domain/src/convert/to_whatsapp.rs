//! Converts from `v1` to `whatsapp`, which has almost all features of `v1` under the same names. The
//! exceptions are free names, attachments of any type, and texts of AUTHENTICATION templates.

use super::{
    ConversionReport, Issue, Json, Member, SourceObject, member,
    source::{copied, object, to_owned},
    string,
};
use crate::{
    render::media::{self, Kind},
    rulebook::Category,
    validation::{languages::whatsapp, whatsapp_name},
    violation::truncated,
};

const OTP_HINT: &str = "use ONE_TAP or ZERO_TAP if your app reads the code";

/// A name that WhatsApp accepts. A name without any usable character is returned unchanged, and the
/// rulebook reports it.
pub(super) fn name(name: &str, report: &mut ConversionReport) -> String {
    let Some(changed) = whatsapp_name::adapted(name) else { return name.to_owned() };
    let message = format!("becomes `{}`", truncated(&changed));
    let hint =
        "use this name to send it, and make sure that no other template in this language has it";
    report.add(Issue::NameChanged, "/name", message, hint);
    changed
}

/// The closest language code of WhatsApp; unchanged if there is none.
pub(super) fn language(code: &str, report: &mut ConversionReport) -> String {
    let is_known = whatsapp::CODES.binary_search(&code).is_ok();
    let Some(nearest) = whatsapp::suggestion(code).filter(|_| !is_known) else {
        return code.to_owned();
    };
    let message = format!("becomes `{nearest}`: WhatsApp does not have `{code}`");
    let hint = "use another of WhatsApp's codes if this is not the language of the texts";
    report.add(Issue::LanguageChanged, "/language", message, hint);
    nearest.to_owned()
}

pub(super) fn components(
    source: &SourceObject<'_>,
    category: Category,
    report: &mut ConversionReport,
) -> Vec<Json<'static>> {
    let is_authentication = category == Category::Authentication;
    let mut components = Vec::new();
    for (index, component) in source.items("components").enumerate() {
        let component = if is_authentication {
            authentication_component(&component, report)
        } else {
            Some(self::component(&component, report))
        };
        if let Some(component) = component {
            components.push(component);
            report.components.push(index);
        }
    }
    if is_authentication {
        if !report.has(Issue::ButtonReplaced) {
            let message = "gets an OTP button of type COPY_CODE, which delivers the code";
            report.add(Issue::ButtonReplaced, "/components", message, OTP_HINT);
        }
        let button =
            object([member("type", string("OTP")), member("otp_type", string("COPY_CODE"))]);
        let buttons = member("buttons", Json::Array(vec![button]));
        components.push(object([member("type", string("BUTTONS")), buttons]));
    }
    components
}

fn component(source: &SourceObject<'_>, report: &mut ConversionReport) -> Json<'static> {
    let kind = source.text("type");
    match kind {
        "HEADER" if source.text("format") == "MEDIA" => attachment(source, report),
        "BUTTONS" => {
            let buttons: Vec<_> = source.items("buttons").map(|it| button(&it)).collect();
            report.buttons = (0..buttons.len()).collect();
            object([
                member("type", string(kind.to_owned())),
                member("buttons", Json::Array(buttons)),
            ])
        }
        _ => {
            let fields = ["type", "format", "text", "example"];
            object(fields.into_iter().filter_map(|field| copied(source, field)))
        }
    }
}

/// Converts a media header, whose format is the type of the file.
fn attachment(source: &SourceObject<'_>, report: &mut ConversionReport) -> Json<'static> {
    let url = source.field("example").text("media_url");
    let format = media::kind(url).map(|kind| match kind {
        Kind::Image => "IMAGE",
        Kind::Video => "VIDEO",
        Kind::Document => "DOCUMENT",
    });
    if format.is_none() {
        let message =
            format!("is MEDIA, and the file extension of `{}` is unknown", truncated(url));
        let hint = "write IMAGE, VIDEO or DOCUMENT";
        report.add(Issue::MediaFormatUnknown, source.field("format").pointer(), message, hint);
    }
    let url_field = source.field("example").field("media_url");
    let message = "is a URL; WhatsApp requires the handle of an uploaded sample";
    let hint = "upload the file and replace the URL in `header_handle` by its handle";
    report.add(Issue::SampleUpload, url_field.pointer(), message, hint);
    let handle = Json::Array(vec![string(url.to_owned())]);
    let format = format.map(|format| member("format", string(format)));
    let example = member("example", object([member("header_handle", handle)]));
    object([member("type", string("HEADER"))].into_iter().chain(format).chain([example]))
}

fn button(source: &SourceObject<'_>) -> Json<'static> {
    let mut fields: Vec<Member<'static>> = ["type", "text", "url", "phone_number"]
        .into_iter()
        .filter_map(|field| copied(source, field))
        .collect();
    // Both rulebooks accept a sample as a string and in a list.
    if source.get("example").is_some() {
        let example = source.as_written("example").map(to_owned);
        fields.extend(example.map(|example| member("example", example)));
    }
    object(fields)
}

/// Converts a component of an AUTHENTICATION template. WhatsApp generates its texts and allows one
/// button.
fn authentication_component(
    source: &SourceObject<'_>,
    report: &mut ConversionReport,
) -> Option<Json<'static>> {
    let kind = source.text("type");
    match kind {
        "BODY" => {
            let message = "is dropped: WhatsApp generates the text of AUTHENTICATION templates";
            let hint = "add its security recommendation with `add_security_recommendation`";
            report.add(Issue::TextOfWhatsapp, source.field("text").pointer(), message, hint);
            return Some(object([member("type", string("BODY"))]));
        }
        "BUTTONS" => source.items("buttons").for_each(|it| authentication_button(&it, report)),
        _ => {
            let message =
                format!("is a {kind}, which WhatsApp's AUTHENTICATION templates do not have");
            let hint = "the FOOTER of such a template can only state how long the code is valid";
            report.add(Issue::ComponentLost, source.pointer(), message, hint);
        }
    }
    None
}

/// Only the first `COPY_CODE` button is converted.
fn authentication_button(source: &SourceObject<'_>, report: &mut ConversionReport) {
    let kind = source.text("type");
    if kind == "COPY_CODE" && !report.has(Issue::ButtonReplaced) {
        let message = "becomes an OTP button of type COPY_CODE, which has no sample";
        report.add(Issue::ButtonReplaced, source.pointer(), message, OTP_HINT);
    } else {
        let message = format!("is a {kind} button in addition to the one that delivers the code");
        let hint = "an AUTHENTICATION template of WhatsApp has exactly one OTP button";
        report.add(Issue::ButtonLost, source.pointer(), message, hint);
    }
}
