//! From `v1` to `whatsapp`: nearly all of it is there under the same name. What is not are free
//! names, attachments of any kind, and AUTHENTICATION templates with a text of their own.

use super::{
    Issue, Json, Ledger, Member, Piece, member,
    piece::{copied, object, owned},
    text,
};
use crate::{
    render::media::{self, Kind},
    rulebook::Category,
    validation::languages::whatsapp,
    violation::shortened,
};

/// Letters of Latin alphabets, and what they are without their marks.
const LETTERS: &[(&str, &str)] = &[
    ("àáâãäåāăą", "a"),
    ("æ", "ae"),
    ("çćĉċč", "c"),
    ("ďđð", "d"),
    ("èéêëēĕėęě", "e"),
    ("ĝğġģ", "g"),
    ("ĥħ", "h"),
    ("ìíîïĩīĭįı", "i"),
    ("ĵ", "j"),
    ("ķ", "k"),
    ("ĺļľŀł", "l"),
    ("ñńņňŋ", "n"),
    ("òóôõöøōŏőơ", "o"),
    ("œ", "oe"),
    ("ŕŗř", "r"),
    ("śŝşšș", "s"),
    ("ß", "ss"),
    ("ţťŧț", "t"),
    ("þ", "th"),
    ("ùúûüũūŭůűųư", "u"),
    ("ŵ", "w"),
    ("ýÿŷ", "y"),
    ("źżž", "z"),
];

const OTP_HINT: &str = "take ONE_TAP or ZERO_TAP if an app of yours takes the code";

/// A name as WhatsApp takes it. One of which nothing would be left stays as it is, and is told by
/// the rulebook.
pub(super) fn name(name: &str, ledger: &mut Ledger) -> String {
    let fits = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '_';
    if name.chars().all(fits) {
        return name.to_owned();
    }
    let lower = without_marks(&name.to_lowercase());
    let words = lower.split(|it: char| !fits(it)).filter(|word| !word.is_empty());
    let changed = words.collect::<Vec<_>>().join("_");
    if changed.is_empty() {
        return name.to_owned();
    }
    let message = format!("becomes `{}`", shortened(&changed));
    let hint = "send it by that name, and see that no other template of the language has it";
    ledger.note(Issue::NameChanged, "/name", message, hint);
    changed
}

/// A name in small letters that keeps the letter where it loses the mark.
fn without_marks(lower: &str) -> String {
    let mut plain = String::with_capacity(lower.len());
    for letter in lower.chars().filter(|it| !matches!(it, '\u{300}'..='\u{36f}')) {
        match LETTERS.iter().find(|(marked, _)| marked.contains(letter)) {
            Some((_, without)) => plain.push_str(without),
            None => plain.push(letter),
        }
    }
    plain
}

/// One of WhatsApp's codes, if there is one near.
pub(super) fn language(code: &str, ledger: &mut Ledger) -> String {
    let known = whatsapp::CODES.binary_search(&code).is_ok();
    let Some(nearest) = whatsapp::suggestion(code).filter(|_| !known) else {
        return code.to_owned();
    };
    let message = format!("becomes `{nearest}`: WhatsApp has no `{code}`");
    let hint = "write another of WhatsApp's codes if that is not the language of the texts";
    ledger.note(Issue::LanguageChanged, "/language", message, hint);
    nearest.to_owned()
}

pub(super) fn components(
    source: &Piece<'_>,
    category: Category,
    ledger: &mut Ledger,
) -> Vec<Json<'static>> {
    let hands_over_a_code = category == Category::Authentication;
    let mut made = Vec::new();
    for (index, piece) in source.items("components").iter().enumerate() {
        let component =
            if hands_over_a_code { of_code(piece, ledger) } else { Some(component(piece, ledger)) };
        if let Some(component) = component {
            made.push(component);
            ledger.components.push(index);
        }
    }
    if hands_over_a_code {
        if !ledger.has(Issue::ButtonReplaced) {
            let message = "gets an OTP button of type COPY_CODE, which hands over the code";
            ledger.note(Issue::ButtonReplaced, "/components", message, OTP_HINT);
        }
        let button = object([member("type", text("OTP")), member("otp_type", text("COPY_CODE"))]);
        let buttons = member("buttons", Json::Array(vec![button]));
        made.push(object([member("type", text("BUTTONS")), buttons]));
    }
    made
}

fn component(piece: &Piece<'_>, ledger: &mut Ledger) -> Json<'static> {
    let kind = piece.text("type");
    match kind {
        "HEADER" if piece.text("format") == "MEDIA" => attachment(piece, ledger),
        "BUTTONS" => {
            let buttons = piece.items("buttons");
            ledger.buttons = (0..buttons.len()).collect();
            let buttons = buttons.iter().map(button).collect();
            object([member("type", text(kind.to_owned())), member("buttons", Json::Array(buttons))])
        }
        _ => {
            let fields = ["type", "format", "text", "example"];
            object(fields.into_iter().filter_map(|field| copied(piece, field)))
        }
    }
}

/// A header that says what kind of file it shows.
fn attachment(piece: &Piece<'_>, ledger: &mut Ledger) -> Json<'static> {
    let url = piece.below("example").text("media_url");
    let format = media::kind(url).map(|kind| match kind {
        Kind::Image => "IMAGE",
        Kind::Video => "VIDEO",
        Kind::Document => "DOCUMENT",
    });
    if format.is_none() {
        let message = format!("is MEDIA, and the ending of `{}` tells no kind", shortened(url));
        let hint = "write IMAGE, VIDEO or DOCUMENT";
        ledger.note(Issue::MediaFormatUnknown, piece.place("format"), message, hint);
    }
    let place = piece.place("example/media_url");
    let message = "is an address; WhatsApp takes the handle of a sample that was uploaded";
    let hint = "upload the file and write its handle in `header_handle`, where the address is now";
    ledger.note(Issue::SampleUpload, place, message, hint);
    let handle = Json::Array(vec![text(url.to_owned())]);
    let format = format.map(|format| member("format", text(format)));
    let example = member("example", object([member("header_handle", handle)]));
    object([member("type", text("HEADER"))].into_iter().chain(format).chain([example]))
}

fn button(piece: &Piece<'_>) -> Json<'static> {
    let mut fields: Vec<Member<'static>> = ["type", "text", "url", "phone_number"]
        .into_iter()
        .filter_map(|field| copied(piece, field))
        .collect();
    // A sample stands by itself or in a list; either is taken on both sides.
    if piece.get("example").is_some() {
        let example = piece.as_written("example").map(owned);
        fields.extend(example.map(|example| member("example", example)));
    }
    object(fields)
}

/// WhatsApp writes the texts of these itself, and has one button for them.
fn of_code(piece: &Piece<'_>, ledger: &mut Ledger) -> Option<Json<'static>> {
    let kind = piece.text("type");
    match kind {
        "BODY" => {
            let message = "is left out: WhatsApp writes the text of AUTHENTICATION templates";
            let hint = "ask for its advice on secrecy with `add_security_recommendation`";
            ledger.note(Issue::TextOfWhatsapp, piece.place("text"), message, hint);
            return Some(object([member("type", text("BODY"))]));
        }
        "BUTTONS" => piece.items("buttons").iter().for_each(|it| button_of_code(it, ledger)),
        _ => {
            let message =
                format!("is a {kind}, which WhatsApp's AUTHENTICATION templates do not have");
            let hint = "a FOOTER there says for how long the code is good, and nothing else";
            ledger.note(Issue::ComponentLost, &*piece.pointer, message, hint);
        }
    }
    None
}

/// Of all buttons only the first that copies a code stays.
fn button_of_code(piece: &Piece<'_>, ledger: &mut Ledger) {
    let kind = piece.text("type");
    if kind == "COPY_CODE" && !ledger.has(Issue::ButtonReplaced) {
        let message = "becomes an OTP button of type COPY_CODE, which has no sample";
        ledger.note(Issue::ButtonReplaced, &*piece.pointer, message, OTP_HINT);
    } else {
        let message = format!("is a {kind} button beside the one that hands over the code");
        let hint = "an AUTHENTICATION template of WhatsApp has one OTP button and no other";
        ledger.note(Issue::ButtonLost, &*piece.pointer, message, hint);
    }
}
