//! Where the values of a proof come from: from the client, or from the samples of the document.

use super::text::TextValues;
use crate::{document::Json, render::whatsapp::authentication::SAMPLE_CODE};

/// The values of a message or of one of its cards.
#[derive(Clone, Copy)]
pub(super) enum Source<'v> {
    /// The samples of the document.
    Samples,
    /// What the client has sent; `None` if it has sent nothing for this part.
    Sent(Option<&'v Json<'v>>),
}

impl<'v> Source<'v> {
    /// The member that the client has sent. `None` with [`Source::Samples`], too.
    pub(super) fn sent(self, key: &str) -> Option<&'v Json<'v>> {
        match self {
            Self::Samples => None,
            Self::Sent(values) => values?.get(key),
        }
    }

    /// The values for the text of a component. `member` is `header` or `body`.
    pub(super) fn text_values(self, component: &'v Json<'v>, member: Member) -> TextValues<'v> {
        match self {
            Self::Samples => TextValues::samples(component, member.samples()),
            Self::Sent(_) => TextValues::sent(self.sent(member.name())),
        }
    }

    /// The values for the button at this index: a sample in its `example`, or what was sent.
    pub(super) fn button_value(self, button: &'v Json<'v>, index: usize) -> Option<&'v str> {
        let value = match self {
            Self::Samples => button.get("example")?,
            Self::Sent(_) => self.sent("buttons")?.get(itoa::Buffer::new().format(index))?,
        };
        one_string(value).filter(|value| !value.trim().is_empty())
    }

    /// The values of a card.
    pub(super) fn card(self, index: usize) -> Self {
        match self {
            Self::Samples => Self::Samples,
            Self::Sent(_) => Self::Sent(match self.sent("cards") {
                Some(Json::Array(cards)) => cards.get(index),
                _ => None,
            }),
        }
    }

    /// The one-time code of an AUTHENTICATION template.
    pub(super) fn code(self) -> Option<&'v str> {
        match self {
            Self::Samples => Some(SAMPLE_CODE),
            Self::Sent(_) => one_string(self.sent("body")?),
        }
    }
}

/// The components whose texts have placeholders.
#[derive(Clone, Copy)]
pub(super) enum Member {
    Header,
    Body,
}

impl Member {
    fn name(self) -> &'static str {
        match self {
            Self::Header => "header",
            Self::Body => "body",
        }
    }

    /// The fields of `example` with numbered and with named samples.
    fn samples(self) -> [&'static str; 2] {
        match self {
            Self::Header => ["header_text", "header_text_named_params"],
            Self::Body => ["body_text", "body_text_named_params"],
        }
    }
}

/// A string, or the first item of a list.
pub(super) fn one_string<'v>(value: &'v Json<'v>) -> Option<&'v str> {
    match value {
        Json::Array(items) => items.first()?.as_str(),
        value => value.as_str(),
    }
}
