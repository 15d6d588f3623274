//! The document of a fault.

use jiff::SignedDuration;

use super::{
    super::{Glob, duration, failures, report, string, text},
    Call, Fault, FaultEffect, FaultKind, Frequency, MAX_DELAY, MAX_TIMES, Share,
};
use crate::{
    document::{Document, Json},
    rulebook::{Field, FieldType, ObjectSchema, Presence, StringFormat},
    validation::reader::Reader,
    violation::{Rule, ViolationCollector, Violations},
};

/// The schema of the document.
pub static FAULT: ObjectSchema = ObjectSchema {
    title: "a fault",
    fields: &[
        Field {
            name: "call",
            presence: Presence::Required,
            field_type: FieldType::Choice(Call::VALUES),
            about: "The call that the fault strikes.",
        },
        Field {
            name: "name",
            presence: Presence::Optional,
            field_type: string(512, StringFormat::Free),
            about: "The names of the templates whose calls it strikes: `*` stands for any characters, `?` for one. If absent, all calls; not with the calls `list` and `upload`.",
        },
        Field {
            name: "times",
            presence: Presence::Optional,
            field_type: FieldType::Integer(1, MAX_TIMES as i64),
            about: "It strikes the next so many matching calls.",
        },
        Field {
            name: "share",
            presence: Presence::Optional,
            field_type: FieldType::AnyJson(32),
            about: "It strikes this share of the matching calls, from 0.000001 to 1, evenly distributed and always the same ones.",
        },
        Field {
            name: "kind",
            presence: Presence::Required,
            field_type: FieldType::Choice(FaultKind::VALUES),
            about: "What happens to the call.",
        },
        Field {
            name: "code",
            presence: Presence::Optional,
            field_type: FieldType::Integer(0, 9_999_999),
            about: "The code or subcode of the error; only with the kind `error` (default 2).",
        },
        Field {
            name: "delay",
            presence: Presence::Optional,
            field_type: string(40, StringFormat::Free),
            about: "How late the response comes, at most `30s`; with the kind `delay`, and only then.",
        },
    ],
};

impl Fault {
    /// Reads a document. Returns the fault or all violations.
    pub fn read(document: &Document<'_>) -> Result<Self, Violations> {
        let root = document.root();
        let json = Reader::read(document, &FAULT, |_| true, |violations| check(root, violations))?;
        let times = number(root, "times").map(Frequency::Times);
        Ok(Self {
            call: text(root, "call").and_then(Call::parse).expect("the schema lists the calls"),
            name: text(root, "name").map(Glob::new),
            frequency: times
                .or_else(|| share(root).map(Frequency::Share))
                .expect("the check requires one of them"),
            effect: text(root, "kind")
                .and_then(FaultKind::parse)
                .and_then(|kind| FaultEffect::new(kind, number(root, "code"), delay(root)))
                .expect("the check requires code and delay as the kind needs them"),
            json,
        })
    }

    /// Restores a stored fault from [`Fault::as_json`].
    pub fn restore(json: &str) -> Option<Self> {
        Self::read(&Document::parse(json.as_bytes()).ok()?).ok()
    }
}

/// Checks what the schema cannot express.
fn check(root: &Json<'_>, violations: &mut ViolationCollector) {
    if !matches!(root, Json::Object(_)) {
        return;
    }
    check_frequency(root, violations);
    check_kind(root, violations);
    let call = text(root, "call").and_then(Call::parse);
    if let Some(call) = call.filter(|call| !call.has_name() && root.get("name").is_some()) {
        let message = format!("does not select calls of `{}`", call.as_str());
        report(violations, "/name".to_owned(), Rule::FaultFields, message, "leave it out");
    }
}

fn check_frequency(root: &Json<'_>, violations: &mut ViolationCollector) {
    let message = match (root.get("times"), root.get("share")) {
        (None, None) => Some("has neither `times` nor `share`"),
        (Some(_), Some(_)) => Some("has both `times` and `share`"),
        _ => None,
    };
    if let Some(message) = message {
        let hint = "send either `times` or `share`";
        report(violations, String::new(), Rule::FaultFields, message, hint);
    }
    if root.get("share").is_some() && share(root).is_none() {
        let message = "is not a number from 0.000001 to 1";
        let hint = "write 0.5 for every second call, 1 for every call";
        report(violations, "/share".to_owned(), Rule::FaultShare, message, hint);
    }
}

fn check_kind(root: &Json<'_>, violations: &mut ViolationCollector) {
    let call = text(root, "call").and_then(Call::parse);
    let Some(kind) = text(root, "kind").and_then(FaultKind::parse) else { return };
    if let Some(call) = call.filter(|call| !kind.fits(*call)) {
        let kinds = FaultKind::VALUES
            .iter()
            .filter(|value| FaultKind::parse(value).is_some_and(|kind| kind.fits(call)));
        let kinds: Vec<&str> = kinds.copied().collect();
        let message = format!("`{}` does not strike the call `{}`", kind.as_str(), call.as_str());
        let hint = format!("write one of {}", kinds.join(", "));
        report(violations, "/kind".to_owned(), Rule::FaultKind, message, &hint);
    }
    for (field, owner) in [("code", FaultKind::Error), ("delay", FaultKind::Delay)] {
        if root.get(field).is_some() && kind != owner {
            let message = format!("is only used with the kind `{}`", owner.as_str());
            report(violations, format!("/{field}"), Rule::FaultFields, message, "leave it out");
        }
    }
    if kind == FaultKind::Delay && root.get("delay").is_none() {
        let message = "is required with the kind `delay`";
        report(violations, "/delay".to_owned(), Rule::FaultFields, message, "write it like `5s`");
    }
    if kind == FaultKind::Error
        && number(root, "code").is_some_and(|code| failures::find(code).is_none())
    {
        let message = "is not a code that a fault can provoke";
        let hint = "write one of the codes or subcodes that the emulator reference lists";
        report(violations, "/code".to_owned(), Rule::FaultCode, message, hint);
    }
    let written = text(root, "delay").filter(|text| !text.trim().is_empty());
    if let Some(Err(violation)) =
        written.map(|text| duration::check(text, SignedDuration::ZERO, MAX_DELAY))
    {
        let hint = "write it like `5s`, at most `30s`";
        report(violations, "/delay".to_owned(), violation.rule, violation.message, hint);
    }
}

/// A whole number that the schema has checked or reports.
fn number(root: &Json<'_>, key: &str) -> Option<u32> {
    root.get(key).and_then(Json::as_i64).and_then(|number| u32::try_from(number).ok())
}

fn delay(root: &Json<'_>) -> Option<SignedDuration> {
    text(root, "delay").and_then(duration::parse)
}

fn share(root: &Json<'_>) -> Option<Share> {
    match root.get("share")? {
        Json::Number(number) => number.as_f64().and_then(Share::new),
        _ => None,
    }
}
