//! Violations of a single string, before the reader adds the pointer, and helpers for messages.

use std::borrow::Cow;

use super::{Rule, Span};
use crate::document::text::longer_than;

/// A violation found in a string; the reader adds the pointer.
#[derive(Debug)]
pub(crate) struct TextViolation {
    pub(crate) rule: Rule,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    pub(crate) span: Option<Span>,
}

impl TextViolation {
    pub(crate) fn new(rule: Rule, message: impl Into<String>) -> Self {
        Self { rule, message: message.into(), hint: None, span: None }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn at(mut self, span: Span) -> Self {
        self.span = Some(span);
        self
    }
}

/// The longest text that a message quotes whole.
const MAX_QUOTED_CHARS: usize = 40;

/// The hint that suggests a valid value or placeholder; `None` if it is too long to be quoted whole.
pub(crate) fn did_you_mean(suggestion: &str) -> Option<String> {
    let is_quotable = !longer_than(suggestion, MAX_QUOTED_CHARS);
    is_quotable.then(|| format!("did you mean `{suggestion}`?"))
}

/// Text from the document, truncated so that it can be quoted in a message.
pub(crate) fn truncated(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(MAX_QUOTED_CHARS) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

/// A number with its noun: `1 item`, `2 items`.
pub(crate) fn pluralized(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// The verb that agrees with a number: `1 is`, `2 are`.
pub(crate) fn is_or_are(count: usize) -> &'static str {
    if count == 1 { "is" } else { "are" }
}
