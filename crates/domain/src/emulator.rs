//! The emulator: accounts whose reviews a script decides on a virtual clock, with faults and a
//! sandbox for messages. This module holds the pure decisions.

pub mod actions;
pub mod authentication;
pub mod clock;
pub mod duration;
pub mod failures;
pub mod faults;
mod glob;
pub mod messages;
pub mod recipients;
pub mod rules;
pub mod script;
pub mod suffixes;

use jiff::SignedDuration;

use crate::{
    document::Json,
    rulebook::{FieldType, StringFormat, StringRule},
    violation::{Rule, Violation, ViolationCollector},
};

pub use glob::Glob;

/// How an emulator account behaves. It is set when the account is created and never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EmulatorKind {
    /// Whether it also does what Meta does and Galley deliberately does not.
    pub faithful: bool,
}

impl EmulatorKind {
    /// The stored and displayed value.
    pub const fn as_str(self) -> &'static str {
        if self.faithful { "faithful" } else { "standard" }
    }

    /// Parses a value that [`as_str`](Self::as_str) returns.
    pub fn parse(value: &str) -> Option<Self> {
        [true, false].map(|faithful| Self { faithful }).into_iter().find(|it| it.as_str() == value)
    }
}

/// How long a faithful account locks the name of a deleted approved template, on its clock.
pub const NAME_LOCK: SignedDuration = SignedDuration::from_secs(30 * duration::DAY_SECONDS);

/// How long the links to samples of a faithful account are valid, on its clock.
pub const SAMPLE_LINK_LIFETIME: SignedDuration =
    SignedDuration::from_secs(14 * duration::DAY_SECONDS);

/// How long the cursors of a faithful account are valid, on its clock.
pub const CURSOR_LIFETIME: SignedDuration = SignedDuration::from_secs(60 * 60);

/// Adds a violation of an emulator document.
fn report(
    violations: &mut ViolationCollector,
    pointer: String,
    rule: Rule,
    message: impl Into<String>,
    hint: &str,
) {
    violations.add(|| Violation {
        pointer,
        rule,
        message: message.into(),
        hint: Some(hint.to_owned()),
        span: None,
    });
}

/// A string field of an emulator document.
const fn string(max: usize, format: StringFormat) -> FieldType {
    FieldType::String(StringRule { max, whatsapp_max: None, multiline: false, format })
}

/// The string in a member of an object.
fn text<'j>(object: &'j Json<'_>, key: &str) -> Option<&'j str> {
    object.get(key).and_then(Json::as_str)
}
