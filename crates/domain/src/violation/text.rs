//! Violations of a single string, before the reader adds the pointer, and text quoted in messages.

use std::borrow::Cow;

use super::{Rule, Span};

/// One thing wrong with a string; the reader adds the place.
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

/// A caller's own words, short enough to be repeated in a message.
pub(crate) fn shortened(text: &str) -> Cow<'_, str> {
    const LONGEST: usize = 40;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}
