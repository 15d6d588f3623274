//! The values that a message was translated into, and the way back: violations of values become
//! violations of the message.

use super::{
    findings::Findings,
    refusal::{RefusalCode, SendViolation},
};
use crate::{
    document::{Json, pointer::is_within},
    violation::{Rule, Violation, Violations},
};

/// Values for the renderer, and what the translation found.
pub(super) struct Translation<'d> {
    pub(super) values: Json<'d>,
    pub(super) findings: Findings,
    pub(super) origins: Vec<Origin>,
    /// Pointers to values that are missing because the message has a violation there.
    pub(super) reported: Vec<String>,
}

/// Where a value comes from.
pub(super) struct Origin {
    /// The pointer to the value.
    pub(super) value: String,
    /// The pointer in the message.
    pub(super) pointer: String,
    /// The component, for messages.
    pub(super) label: String,
    /// The value, for messages.
    pub(super) subject: String,
    pub(super) kind: OriginKind,
}

/// What a value is, as far as the codes depend on it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum OriginKind {
    /// A part of a text or URL that is filled.
    FilledText,
    /// A code to copy or to enter.
    Code,
    Other,
}

impl Translation<'_> {
    /// All violations: those of the translation and those that the renderer found in the values.
    pub(super) fn into_findings(mut self, violations: Option<&Violations>) -> Findings {
        let mut findings = std::mem::take(&mut self.findings);
        if let Some(violations) = violations {
            let is_new = |it: &&Violation| !self.is_reported(it);
            findings.extend(violations.listed().iter().filter(is_new).map(|it| self.origin(it)));
            findings.count_omitted(violations.omitted());
        }
        findings
    }

    /// Whether the translation has reported already why a value is missing.
    fn is_reported(&self, violation: &Violation) -> bool {
        violation.rule == Rule::ValueMissing
            && self.reported.iter().any(|it| is_within(&violation.pointer, it))
    }

    /// The violation at the origin of its value.
    fn origin(&self, violation: &Violation) -> SendViolation {
        let origins = self.origins.iter().filter(|it| is_within(&violation.pointer, &it.value));
        let Some(origin) = origins.max_by_key(|it| it.value.len()) else {
            let message = format!("template: {}", violation.message);
            let pointer = "/template".to_owned();
            return SendViolation {
                pointer,
                code: code(violation.rule, OriginKind::Other),
                message,
            };
        };
        let inside = &violation.pointer[origin.value.len()..];
        let (label, message) = (&origin.label, &violation.message);
        let message = match inside.rsplit('/').next() {
            None | Some("") => format!("{label}: {} {message}", origin.subject),
            Some(field) => format!("{label}: `{field}` {message}"),
        };
        let pointer = format!("{}{inside}", origin.pointer);
        SendViolation { pointer, code: code(violation.rule, origin.kind), message }
    }
}

/// Meta's code for a violation of a value.
fn code(rule: Rule, kind: OriginKind) -> RefusalCode {
    match rule {
        Rule::ValueMissing => RefusalCode::ParameterMissing,
        Rule::MediaKindDiffers | Rule::PartUnknown => RefusalCode::ParameterFormat,
        Rule::TooLong if kind == OriginKind::FilledText => RefusalCode::TextTooLong,
        Rule::Empty | Rule::ControlCharacter | Rule::ValueLineBreak | Rule::ValueSpaces
            if kind != OriginKind::Other =>
        {
            RefusalCode::ParameterText
        }
        _ => RefusalCode::ParameterInvalid,
    }
}
